//! `stagedoor doctor --deep`: what is broken is found on both engines, and each mend works as it is written.

use backup::{Finding, inspect};
use domain::Timestamp;
use serde_json::{Value, json};
use server::cli::ROUTER_MENDS;
use store::{StoreError, Tx};
use testkit::{Request, Setup, World, both};

use crate::fixture::Fixture;

async fn examine(world: &World) -> Vec<Finding> {
    let now = Timestamp::from_millis(world.now_ms());
    inspect(world.target(), now).await.expect("the store is examined")
}

/// The names of the sentences that are not true.
async fn broken(world: &World) -> Vec<&'static str> {
    let findings = examine(world).await.into_iter();
    findings.filter(|finding| !finding.contradictions.is_empty()).map(|finding| finding.name).collect()
}

/// Runs statements while the service is stopped.
async fn run(world: &World, statements: &[impl AsRef<str>]) {
    world.stop().await;
    let store = world.open_store().await;
    for sql in statements {
        // The engines keep the texts of statements.
        let sql: &'static str = sql.as_ref().to_owned().leak();
        let done = store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await).await;
        done.unwrap_or_else(|error: StoreError| panic!("{error}"));
    }
    store.close().await;
    world.restart().await;
}

/// The calls of a mend: `POST /path and DELETE and PUT /path`.
fn calls(mend: &str) -> Vec<(String, String)> {
    let (mut methods, mut calls) = (Vec::new(), Vec::new());
    for word in mend.split_whitespace() {
        match word {
            "GET" | "POST" | "PUT" | "PATCH" | "DELETE" => methods.push(word.to_owned()),
            path if path.starts_with('/') => {
                let path = path.trim_end_matches(['.', ',', ':', ';']);
                calls.extend(methods.drain(..).map(|method| (method, path.to_owned())));
            }
            _ => {}
        }
    }
    calls
}

/// The statements of a mend.
fn statements(mend: &str) -> Vec<&str> {
    let begins = ["UPDATE ", "DELETE FROM "].iter().filter_map(|word| mend.find(word)).min();
    begins.map_or(Vec::new(), |at| mend[at..].split("; ").collect())
}

async fn call(world: &World, method: &str, path: &str, body: Option<Value>) -> Value {
    let request = match method {
        "POST" => Request::post(path),
        "PUT" => Request::put(path),
        _ => Request::delete(path),
    };
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    world.operator(request).await.content()
}

/// A world with something of everything that is broken below.
async fn filled(world: &World) -> Fixture {
    let fixture = Fixture::set_up(world).await;
    for (follower, date) in [("byeol", "2026-01-01T00:00:00Z"), ("spare-person", "2026-01-02T00:00:00Z")] {
        let path = format!("/platform/v1/channels/haneul/followers/{follower}");
        call(world, "PUT", &path, Some(json!({ "createdDate": date }))).await;
    }
    world.put_live("haneul", &live()).await.content();
    let webhook = "/platform/v1/applications/publisher/webhook";
    call(world, "PUT", webhook, Some(json!({ "url": "https://games.example/drops" }))).await;
    for claim in ["claim-1", "claim-2", "claim-3"] {
        world.advance(std::time::Duration::from_secs(5));
        let body = json!({ "claimId": claim, "campaignId": "voyage", "rewardId": fixture.publisher.next_reward(),
            "channelId": "byeol" });
        world.claim(&body).await.content();
    }
    put_state(world, &fixture, "FULFILLED").await;
    fixture
}

fn live() -> Value {
    json!({ "concurrentUserCount": 7, "adult": false, "liveTitle": "별", "tags": [] })
}

async fn put_state(world: &World, fixture: &Fixture, state: &str) {
    let body = json!({ "claimIds": ["claim-1"], "fulfillmentState": state });
    world.update_claims(&fixture.publisher.app, &body).await.content();
}

/// What breaks each sentence.
const DAMAGE: [(&str, &str); 10] = [
    (
        "follower-counts",
        "UPDATE channels SET follower_count = follower_count + 1 WHERE channel_id = 'haneul'",
    ),
    ("list-counts", "DELETE FROM list_blocks WHERE channel_id = 'haneul' AND list = 'FOLLOWERS'"),
    (
        "counts",
        "INSERT INTO watched_minutes (campaign_id, channel_id, minutes) VALUES ('voyage', 'byeol', -5)",
    ),
    ("token-families", "DELETE FROM refresh_tokens WHERE client_id = 'bot'"),
    ("secrets", "DELETE FROM application_secrets WHERE client_id = 'spare'"),
    (
        "webhook-secrets",
        "DELETE FROM webhook_secrets WHERE webhook_id =
            (SELECT webhook_id FROM webhooks WHERE client_id = 'webhook-owner')",
    ),
    ("claim-states", "UPDATE reward_claims SET fulfillment_state = 'CLAIMED' WHERE claim_id = 'claim-1'"),
    (
        "delivery-claims",
        "UPDATE webhook_deliveries SET claim_id = 'gone' WHERE webhook_id =
            (SELECT webhook_id FROM webhooks WHERE client_id = 'webhook-owner')",
    ),
    ("claim-messages", "DELETE FROM webhook_deliveries WHERE claim_id = 'claim-3'"),
    ("live-ranks", "UPDATE live_spans SET closed_at = 1"),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_damage_is_found_and_each_mend_works_as_it_is_written() {
    both(Setup::default(), |world| async move {
        let fixture = filled(&world).await;
        assert_eq!(broken(&world).await, <[&str; 0]>::default());
        run(&world, &DAMAGE.map(|(_, sql)| sql)).await;
        let found = broken(&world).await;
        let missed: Vec<_> = DAMAGE.iter().filter(|(name, _)| !found.contains(name)).collect();
        assert!(missed.is_empty() && found.len() == DAMAGE.len(), "{missed:?} of {found:?}");

        let findings = examine(&world).await;
        let mend = |name: &str| {
            let finding = findings.iter().find(|finding| finding.name == name).expect("the sentence");
            finding.mend.clone()
        };
        // Every statement, and every call, in the words of the mend.
        let with_statements = ["follower-counts", "list-counts", "counts", "delivery-claims"].map(mend);
        let all: Vec<_> = with_statements.iter().flat_map(|mend| statements(mend)).collect();
        assert!(all.len() >= 5, "{all:?}");
        run(&world, &all).await;
        let mut secret_id = String::new();
        for name in ["token-families", "secrets", "webhook-secrets", "live-ranks"] {
            for (method, path) in calls(&mend(name)) {
                let client = if name == "webhook-secrets" { "webhook-owner" } else { "spare" };
                let client = if name == "token-families" { "bot" } else { client };
                let path = path.replace("{clientId}", client).replace("{channelId}", "haneul");
                let path = path.replace("{secretId}", &secret_id);
                let done = call(&world, &method, &path, (method == "PUT").then(live)).await;
                secret_id = done["secretId"].as_str().unwrap_or_default().to_owned();
            }
        }
        assert_eq!(
            calls(&mend("claim-states")),
            [("PUT".to_owned(), "/open/v1/drops/reward-claims".to_owned())]
        );
        put_state(&world, &fixture, "FULFILLED").await;
        assert_eq!(broken(&world).await, ["claim-messages"], "its claim stays without a message");
        let read = world.reward_claims(&fixture.publisher.app, "claimId=claim-3").await.content();
        assert_eq!(read["data"][0]["claimId"], "claim-3");
        world.advance(std::time::Duration::from_secs(31 * 86_400));
        assert!(!broken(&world).await.contains(&"claim-messages"), "it is old");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_a_mend_is_one_of_the_router() {
    both(Setup::default(), |world| async move {
        let endpoints = web::endpoints();
        let mends = examine(&world).await.into_iter().map(|finding| finding.mend);
        let mends = mends.chain(ROUTER_MENDS.iter().map(|(_, _, mend)| (*mend).to_owned()));
        let mut found = 0;
        for mend in mends {
            for (method, path) in calls(&mend) {
                let exists = endpoints.iter().any(|known| (known.method, known.path) == (&*method, &*path));
                assert!(exists, "{method} {path} of: {mend}");
                found += 1;
            }
        }
        assert!(found > 10, "{found}");
    })
    .await;
}

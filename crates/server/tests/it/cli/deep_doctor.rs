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
    put_webhook(world).await;
    for claim in ["claim-1", "claim-2", "claim-3"] {
        world.advance(std::time::Duration::from_secs(5));
        let body = json!({ "claimId": claim, "campaignId": "voyage", "rewardId": fixture.publisher.next_reward(),
            "channelId": "byeol" });
        world.claim(&body).await.content();
    }
    put_state(world, &fixture, "FULFILLED").await;
    fixture
}

const WEBHOOK: &str = "/platform/v1/applications/publisher/webhook";

async fn put_webhook(world: &World) {
    call(world, "PUT", WEBHOOK, Some(json!({ "url": "https://games.example/drops" }))).await;
}

/// The ids and claims of the messages of the publisher.
async fn messages(world: &World) -> Vec<(Value, Value)> {
    let listed = world.operator(Request::get(format!("{WEBHOOK}/deliveries"))).await.content();
    let listed = listed["data"].as_array().expect("messages").iter();
    listed.map(|message| (message["messageId"].clone(), message["claimId"].clone())).collect()
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
    (
        "claim-messages",
        "DELETE FROM webhook_deliveries WHERE webhook_id =
            (SELECT webhook_id FROM webhooks WHERE client_id = 'publisher')",
    ),
    ("live-ranks", "UPDATE live_spans SET closed_at = 1"),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_damage_is_found_and_each_mend_works_as_it_is_written() {
    both(Setup::default(), |world| async move {
        let fixture = filled(&world).await;
        assert_eq!(broken(&world).await, <[&str; 0]>::default());
        let before = messages(&world).await;
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
        // Every message of a webhook is gone, and the owner puts it again.
        put_webhook(&world).await;
        assert_eq!(broken(&world).await, ["claim-messages"]);
        let mend = mend("claim-messages");
        let (typed, body) = mend.split_at(mend.find("{\"").expect("a body"));
        let body = serde_json::from_str(body).expect("JSON");
        let (method, path) = calls(typed).pop().expect("a call");
        let sent = call(&world, &method, &path.replace("{clientId}", "publisher"), Some(body)).await;
        assert_eq!(sent, json!({ "resentCount": 3, "complete": true }));
        assert_eq!(broken(&world).await, <[&str; 0]>::default());
        assert_eq!(messages(&world).await, before, "each has its id again");
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

/// A row that others name, the sentence of its loss, the path of the call that makes it again, and the body.
fn lost_rows() -> [(&'static str, &'static str, &'static str, &'static str, Value); 4] {
    [
        (
            "channels WHERE channel_id = 'byeol'",
            "followers.follower_channel_id = byeol: no such row in channels",
            "channelId",
            "byeol",
            json!({ "channelName": "별" }),
        ),
        (
            "applications WHERE client_id = 'publisher'",
            "webhooks.client_id = publisher: no such row in applications",
            "clientId",
            "publisher",
            json!({ "name": "Publisher", "redirectUris": ["http://localhost/callback"], "scopes": ["드롭스"],
                "organizationId": "publisher" }),
        ),
        (
            "organizations WHERE organization_id = 'webhook-owner'",
            "applications.organization_id = webhook-owner: no such row in organizations",
            "organizationId",
            "webhook-owner",
            json!({ "organizationName": "바다 게임즈", "verified": true }),
        ),
        (
            "categories WHERE category_id = 'star-voyage'",
            "drops_campaigns.category_id = star-voyage: no such row in categories",
            "categoryId",
            "star-voyage",
            json!({ "categoryType": "GAME", "categoryValue": "별의 항해" }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_named_and_gone_is_made_again_by_the_call_of_the_mend() {
    both(Setup::default(), |world| async move {
        filled(&world).await;
        for (row, words, id, value, body) in lost_rows() {
            world.stop().await;
            store::testing::run_unchecked(world.target(), &format!("DELETE FROM {row}")).await;
            let findings = examine(&world).await;
            let finding = findings.iter().find(|found| found.name == "foreign-keys").expect("the sentence");
            assert!(finding.contradictions.iter().any(|name| name == words), "{:?}", finding.contradictions);
            world.restart().await;
            let calls = calls(&finding.mend);
            let template = format!("{{{id}}}");
            let (method, path) = calls.iter().find(|(_, path)| path.contains(&template)).expect("a call");
            call(&world, method, &path.replace(&template, value), Some(body)).await;
            assert!(!broken(&world).await.contains(&"foreign-keys"), "{row}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_without_their_message_are_mended_as_it_is_written() {
    both(Setup::default(), |world| async move {
        filled(&world).await;
        world.stop().await;
        let lost = "
            INSERT INTO webhook_attempts (webhook_id, message_id, number, began_at, duration_ms, status, excerpt)
            SELECT webhook_id, message_id, 7, 1, 1, 200, '' FROM webhook_deliveries;
            DELETE FROM webhook_deliveries";
        store::testing::run_unchecked(world.target(), lost).await;
        world.restart().await;
        let findings = examine(&world).await;
        let mend = |name: &str| &findings.iter().find(|found| found.name == name).expect("the sentence").mend;
        let (_, body) = mend("claim-messages").split_at(mend("claim-messages").find("{\"").expect("a body"));
        let body = serde_json::from_str(body).expect("JSON");
        assert_eq!(call(&world, "POST", &format!("{WEBHOOK}/resend"), Some(body)).await["resentCount"], 3);
        let listed = world.operator(Request::get(format!("{WEBHOOK}/deliveries"))).await.content();
        for message in listed["data"].as_array().expect("messages") {
            assert!(message["attemptCount"].as_i64() >= Some(7), "the next attempt is the eighth: {message}");
        }

        world.stop().await;
        let mut typed = statements(mend("attempt-messages")).join("; ");
        store::testing::run_unchecked(world.target(), &typed).await;
        assert_eq!(broken(&world).await, <[&str; 0]>::default());
        store::testing::run_unchecked(
            world.target(),
            "DELETE FROM claim_changes; DELETE FROM reward_claims; UPDATE webhook_deliveries SET attempts = 1",
        )
        .await;
        assert_eq!(broken(&world).await.last_chunk(), Some(&["delivery-claims", "delivery-attempts"]));
        typed = [statements(mend("delivery-attempts")), statements(mend("delivery-claims"))].concat().join("; ");
        store::testing::run_unchecked(world.target(), &typed).await;
        assert_eq!(broken(&world).await, <[&str; 0]>::default());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_mend_makes_a_loss_permanent_or_glues_a_full_stop_to_what_is_typed() {
    both(Setup::default(), |world| async move {
        filled(&world).await;
        let mends = examine(&world).await.into_iter().map(|finding| finding.mend);
        let mends: Vec<_> = mends.chain(ROUTER_MENDS.iter().map(|(_, _, mend)| (*mend).to_owned())).collect();
        for mend in &mends {
            let is_glued = |word: &str| word.starts_with('/') && word.ends_with(['.', ',', ':', ';']);
            assert!(!mend.split_whitespace().any(is_glued), "{mend}");
            assert!(!statements(mend).iter().any(|sql| sql.contains(". ") || sql.ends_with('.')), "{mend}");
        }
        world.stop().await;
        let damage = "ALTER TABLE followers RENAME COLUMN newest_rank TO old_rank; UPDATE channels SET follower_count = 7";
        store::testing::run_unchecked(world.target(), damage).await;
        let findings = examine(&world).await;
        let found = |name: &str| findings.iter().find(|found| found.name == name).expect("the sentence");
        assert!(!found("follower-counts").contradictions.is_empty());
        for finding in findings.iter().filter(|found| found.name != "pages") {
            assert!(finding.mend.starts_with("Mend first what cannot be read"), "{}", finding.mend);
        }
        let (pages, is_sqlite) = (found("pages"), matches!(world.target(), store::Target::Sqlite { .. }));
        let place = if is_sqlite { "stagedoor restore BACKUP --data FOLDER" } else { "--database-url URL" };
        assert!(pages.mend.ends_with(place), "{}", pages.mend);
        assert_eq!(pages.sentence.contains("pg_amcheck"), !is_sqlite, "{}", pages.sentence);
        assert!(pages.contradictions.iter().any(|name| name.starts_with("followers: ")), "{:?}", pages.contradictions);
    })
    .await;
}

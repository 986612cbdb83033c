//! Credentials that the operator revokes: single secrets, and all credentials of an application.

use std::time::Duration;

use domain::Timestamp;
use serde_json::{Value, json};
use testkit::{
    Api, Application, Engine, Request, Response, Setup, Socket, Tokens, both, patiently, while_running,
};

use crate::fixture::Fixture;

const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;
/// The promised delay on other nodes, and on sockets.
const WITHIN: Duration = Duration::from_secs(2);

fn real_time() -> Setup {
    Setup { system_clock: true, ..Setup::default() }
}

fn secrets_of(client_id: &str) -> String {
    format!("/platform/v1/applications/{client_id}/secrets")
}

fn disabled(client_id: &str) -> String {
    format!("/platform/v1/applications/{client_id}/disabled")
}

async fn secrets(api: &Api, client_id: &str) -> Vec<Value> {
    let content = api.operator(Request::get(secrets_of(client_id))).await.content();
    content["data"].as_array().expect("a list").clone()
}

fn id(secret: &Value) -> &str {
    secret["secretId"].as_str().expect("a text")
}

async fn delete_secret(api: &Api, client_id: &str, secret_id: &str) -> Response {
    api.operator(Request::delete(format!("{}/{secret_id}", secrets_of(client_id)))).await
}

/// Adds a secret to the application, and returns the application with it, and the secret's id.
async fn another_secret(api: &Api, app: &Application) -> (Application, String) {
    let before = secrets(api, &app.client_id).await;
    let made = api.operator(Request::post(secrets_of(&app.client_id))).await.content();
    let secret = made["clientSecret"].as_str().expect("a text").to_owned();
    let after = secrets(api, &app.client_id).await;
    let new = after.iter().find(|secret| before.iter().all(|other| id(other) != id(secret)));
    (Application { client_secret: secret, ..app.clone() }, id(new.expect("one more")).to_owned())
}

/// The status of a handshake's refusal.
async fn handshake(url: &str) -> u16 {
    match Socket::connect(url).await {
        Ok(_) => 101,
        Err(refused) => refused.status,
    }
}

async fn token_is_refused_within_two_seconds(api: &Api, token: &str) {
    while_running(WITHIN, async {
        while api.me(token).await.status == 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("refused within two seconds");
    api.me(token).await.assert_refused(401, "INVALID_TOKEN");
}

async fn is_refused_within_two_seconds(api: &Api, app: &Application) {
    while_running(WITHIN, async {
        while api.channels(app, "channelIds=haneul").await.status == 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("refused within two seconds");
    for _ in 0..20 {
        api.channels(app, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_listed_with_their_last_characters_and_uses() {
    both(Setup::default(), |world| async move {
        let Fixture { app, secret_id, .. } = Fixture::set_up(&world).await;
        let made = Timestamp::from_millis(world.now_ms()).rfc3339();
        let (another, another_id) = another_secret(&world, &app).await;
        world.advance(Duration::from_secs(5));
        let used = Timestamp::from_millis(world.now_ms()).rfc3339();
        world.channels(&another, "channelIds=haneul").await.content();
        let listed = patiently("the use is written", async {
            loop {
                let listed = secrets(&world, "bot").await;
                if listed.iter().any(|secret| secret["lastUsedDate"] == used) {
                    return listed;
                }
                world.advance(Duration::from_secs(60));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let last = |secret: &str| secret[secret.len() - 4..].to_owned();
        assert_eq!(listed.len(), 2);
        let listed =
            |wanted: &str| listed.iter().find(|secret| id(secret) == wanted).expect("listed").clone();
        assert_eq!(listed(&secret_id)["lastCharacters"], last(&app.client_secret));
        assert_eq!(
            listed(&another_id),
            json!({
                "secretId": another_id, "lastCharacters": last(&another.client_secret), "createdDate": made,
                "lastUsedDate": used, "expiresDate": null,
            })
        );
        let text = world.operator(Request::get(secrets_of("bot"))).await;
        assert!(!text.text().contains(&another.client_secret[..8]));
        world.operator(Request::get(secrets_of("missing"))).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_secret_ends_its_session_urls_and_sessions() {
    both(real_time(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let (leaked, leaked_id) = another_secret(&world, &app).await;
        let mut kept = world.open_client_session(&app).await;
        let mut users = world.open_user_session(&tokens.access).await;
        let ended = world.open_client_session(&leaked).await;
        let url = world.client_session_url(&leaked).await.content();
        let url = url["url"].as_str().expect("a text").to_owned();
        let good = world.client_session_url(&app).await.content();

        assert_eq!(delete_secret(&world, "bot", &leaked_id).await.text(), NOTHING);
        world.channels(&leaked, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
        world.refresh(&leaked, &tokens.refresh).await.assert_refused(401, "INVALID_CLIENT");
        assert_eq!(handshake(&url).await, 401);
        assert_eq!(ended.closed().await.1, "revoked");
        // Session URLs and sessions of the other secret stay valid, and so do users.
        Socket::open(good["url"].as_str().expect("a text")).await;
        world.subscribe(&tokens.access, "chat", kept.session_key()).await.content();
        kept.system("subscribed").await;
        world.subscribe(&tokens.access, "chat", users.session_key()).await.content();
        users.system("subscribed").await;
        world.me(&tokens.access).await.content();

        // A repeated deletion, and a secret that never existed.
        assert_eq!(delete_secret(&world, "bot", &leaked_id).await.text(), NOTHING);
        assert_eq!(delete_secret(&world, "bot", "unknown").await.text(), NOTHING);
        delete_secret(&world, "missing", "unknown").await.assert_refused(404, "NOT_FOUND");
        assert_eq!(secrets(&world, "bot").await.len(), 1);
        // Secrets of another application are not deleted.
        let spare = secrets(&world, "spare").await;
        assert_eq!(delete_secret(&world, "bot", id(&spare[0])).await.text(), NOTHING);
        assert_eq!(secrets(&world, "spare").await, spare);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_expires_at_its_date() {
    both(Setup::default(), |world| async move {
        let Fixture { app, secret_id, .. } = Fixture::set_up(&world).await;
        let (next, _) = another_secret(&world, &app).await;
        let put = async |date: Value| {
            let target = format!("{}/{secret_id}", secrets_of("bot"));
            world.operator(Request::put(target).json(&json!({ "expiresDate": date }))).await
        };
        let later = Timestamp::from_millis(world.now_ms() + 60_000).rfc3339();
        assert_eq!(put(json!(later)).await.text(), NOTHING);
        let listed = secrets(&world, "bot").await;
        let timed = listed.iter().find(|secret| id(secret) == secret_id).expect("listed");
        assert_eq!(timed["expiresDate"], later);
        world.channels(&app, "channelIds=haneul").await.content();
        let url = world.client_session_url(&app).await.content();
        world.advance(Duration::from_millis(59_999));
        world.channels(&app, "channelIds=haneul").await.content();
        world.advance(Duration::from_millis(1));
        world.channels(&app, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
        assert_eq!(handshake(url["url"].as_str().expect("a text")).await, 401);
        world.channels(&next, "channelIds=haneul").await.content();
        assert_eq!(secrets(&world, "bot").await.len(), 1);
        put(json!(null)).await.assert_refused(404, "NOT_FOUND");
        put(json!("tomorrow"))
            .await
            .assert_refused(400, &crate::fixture::wrong("expiresDate", "RFC 3339 형식의 날짜여야 합니다."));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_deleted_or_an_application_disabled_on_one_node_is_refused_on_another() {
    both(real_time(), |world| async move {
        if world.engine() == Engine::Sqlite {
            return; // An SQLite file belongs to one node.
        }
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = world.another_node().await;
        let (leaked, leaked_id) = another_secret(&world, &app).await;
        let socket = elsewhere.open_client_session(&leaked).await;
        elsewhere.channels(&leaked, "channelIds=haneul").await.content();
        elsewhere.channels(&app, "channelIds=haneul").await.content();
        elsewhere.me(&tokens.access).await.content();
        delete_secret(&world, "bot", &leaked_id).await.content();
        is_refused_within_two_seconds(&elsewhere, &leaked).await;
        assert_eq!(socket.closed().await.1, "revoked");

        let socket = elsewhere.open_user_session(&tokens.access).await;
        world.operator(Request::put(disabled("bot"))).await.content();
        token_is_refused_within_two_seconds(&elsewhere, &tokens.access).await;
        is_refused_within_two_seconds(&elsewhere, &app).await;
        assert_eq!(socket.closed().await.1, "revoked");
        node.stop().await;
    })
    .await;
}

/// Many callers use the secret while it is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_secret_is_refused_after_the_answer_to_its_deletion() {
    both(real_time(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        for _ in 0..5 {
            let (leaked, leaked_id) = another_secret(&world, &app).await;
            let callers: Vec<_> = (0..8)
                .map(|_| {
                    let (world, leaked) = (world.clone(), leaked.clone());
                    tokio::spawn(async move {
                        let mut urls = Vec::new();
                        loop {
                            let answer = world.client_session_url(&leaked).await;
                            match answer.status {
                                200 => {
                                    urls.push(answer.content()["url"].as_str().expect("a text").to_owned())
                                }
                                429 => {}
                                _ => return urls,
                            }
                        }
                    })
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(30)).await;
            delete_secret(&world, "bot", &leaked_id).await.content();
            world.channels(&leaked, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
            for caller in callers {
                for url in patiently("the callers are refused", caller).await.expect("no panic") {
                    assert_eq!(handshake(&url).await, 401);
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enabled_application_is_restored_unchanged() {
    both(real_time(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        let user = world.open_user_session(&tokens.access).await;
        let client = world.open_client_session(&app).await;
        let url = world.user_session_url(&tokens.access).await.content();
        let code = world.consent(&app, &streamer, "state").await;
        for _ in 0..2 {
            assert_eq!(world.operator(Request::put(disabled("bot"))).await.text(), NOTHING);
        }
        world.channels(&app, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
        world.exchange(&app, &code, "state").await.assert_refused(401, "INVALID_CLIENT");
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        assert_eq!(user.closed().await.1, "revoked");
        assert_eq!(client.closed().await.1, "revoked");
        assert_eq!(handshake(url["url"].as_str().expect("a text")).await, 401);
        let address =
            "/account-interlock?clientId=bot&redirectUri=http%3A%2F%2F127.0.0.1%3A9999%2Fcallback&state=s";
        assert_eq!(world.browser().open(address).await.response.status, 400);
        let listed = world.operator(Request::get("/platform/v1/applications?size=1")).await.content();
        assert_eq!(listed["data"][0]["clientId"], "bot");
        assert!(listed["data"][0]["disabledDate"].is_string());
        // A PUT does not enable the application.
        world.application("bot").replace().await;
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");

        for _ in 0..2 {
            assert_eq!(world.operator(Request::delete(disabled("bot"))).await.text(), NOTHING);
        }
        world.channels(&app, "channelIds=haneul").await.content();
        world.me(&tokens.access).await.content();
        world.exchange(&app, &code, "state").await.content();
        world.open_user_session(&tokens.access).await;
        for request in [Request::put(disabled("missing")), Request::delete(disabled("missing"))] {
            world.operator(request).await.assert_refused(404, "NOT_FOUND");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_application_loses_all_its_data() {
    both(real_time(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let user = world.open_user_session(&tokens.access).await;
        let target = |id: &str| format!("/platform/v1/applications/{id}");
        for id in ["bot", "bot", "webhook-owner", "unknown"] {
            assert_eq!(world.operator(Request::delete(target(id))).await.text(), NOTHING);
        }
        world.channels(&app, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        assert_eq!(user.closed().await.1, "revoked");
        world.operator(Request::get(target("bot"))).await.assert_refused(404, "NOT_FOUND");
        world.operator(Request::post(target("bot") + "/restore")).await.assert_refused(404, "NOT_FOUND");
        world
            .operator(Request::get(target("webhook-owner") + "/webhook"))
            .await
            .assert_refused(404, "NOT_FOUND");
        // The id is free for a new application.
        let body = json!({ "name": "bot", "redirectUris": [app.redirect_uri], "scopes": [] });
        let new = patiently("the id is free", async {
            loop {
                let answer = world.operator(Request::put(target("bot")).json(&body)).await;
                match answer.status {
                    200 => return answer.content(),
                    _ => assert!(answer.message().contains("clientId: "), "{}", answer.text()),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
        assert!(new["clientSecret"].is_string());
        world.channels(&app, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
    })
    .await;
}

/// A thief refreshes and exchanges continuously while all tokens are ended: nothing survives.
#[tokio::test(flavor = "multi_thread")]
async fn all_tokens_of_an_application_end_and_never_come_back() {
    both(real_time(), |world| async move {
        let Fixture { app, streamer, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let path = "/platform/v1/applications/bot";
        let other = world.application("other").create().await;
        let others = world.sign_in(&other, &streamer).await;
        let code = world.consent(&app, &viewer, "s").await;
        let chains: Vec<_> =
            futures_util::future::join_all((0..4).map(|_| world.sign_in(&app, &viewer))).await;
        let socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        let affected = world.operator(Request::get(format!("{path}/tokens"))).await.content();
        assert_eq!(affected, json!({ "userCount": 2, "sessionCount": 1 }));
        let thieves: Vec<_> = chains
            .into_iter()
            .map(|mut tokens| {
                let (world, app) = (world.clone(), app.clone());
                tokio::spawn(async move {
                    for _ in 0..30 {
                        let next = world.refresh(&app, &tokens.refresh).await;
                        if next.status != 200 {
                            break;
                        }
                        tokens = Tokens::of(&next.content());
                    }
                    tokens
                })
            })
            .collect();
        world.operator(Request::delete(format!("{path}/tokens"))).await.content();
        let mut stolen = vec![tokens.clone()];
        for thief in thieves {
            stolen.push(thief.await.expect("it ends"));
        }
        for state in ["PUT", "DELETE"] {
            world.operator(Request::new(state, format!("{path}/disabled"))).await.content();
        }
        for tokens in &stolen {
            let refused = world.me(&tokens.access).await;
            refused.assert_refused(401, "INVALID_TOKEN");
            assert_eq!(refused.header("stagedoor-reason"), Some("token-revoked"));
            world.refresh(&app, &tokens.refresh).await.assert_refused(401, "INVALID_TOKEN");
        }
        assert_eq!(world.exchange(&app, &code, "s").await.status, 400);
        assert_eq!(socket.closed().await.1, "revoked");
        // Others go on, and so do the people of the application after their next sign-in.
        world.me(&others.access).await.content();
        let fresh = world.sign_in(&app, &streamer).await;
        world.me(&fresh.access).await.content();
        // A stolen refresh token that comes back ends nothing of the new sign-in.
        world.refresh(&app, &tokens.refresh).await.assert_refused(401, "INVALID_TOKEN");
        world.me(&fresh.access).await.content();
        world
            .operator(Request::delete("/platform/v1/applications/missing/tokens"))
            .await
            .assert_refused(404, "NOT_FOUND");
    })
    .await;
}

/// Sessions connect continuously while their application is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn no_session_outlives_its_application() {
    both(real_time(), |world| async move {
        for round in 0..5 {
            let app = world.application(&format!("app-{round}")).with("quota", false).create().await;
            let callers: Vec<_> = (0..6)
                .map(|_| {
                    let (world, app) = (world.clone(), app.clone());
                    tokio::spawn(async move {
                        let answer = world.client_session_url(&app).await;
                        if answer.status == 200 {
                            let url = answer.content()["url"].as_str().expect("a text").to_owned();
                            handshake(&url).await;
                        }
                    })
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(3)).await;
            let target = format!("/platform/v1/applications/app-{round}");
            world.operator(Request::delete(target)).await.content();
            for caller in callers {
                // The socket may be closed before `connected`.
                drop(caller.await);
            }
            let connected = format!("/platform/v1/sessions?clientId=app-{round}&connected=true");
            let left = world.operator(Request::get(connected)).await.content();
            assert_eq!(left["data"], json!([]), "round {round}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_are_listed_page_by_page() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let list = async |query: &str| {
            world.operator(Request::get(format!("/platform/v1/applications{query}"))).await
        };
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let page = list(&format!("?size=2{next}")).await.content();
            for item in page["data"].as_array().expect("a list") {
                found.push(item["clientId"].as_str().expect("a text").to_owned());
            }
            match page["page"]["next"].as_str() {
                Some(cursor) => next = format!("&next={cursor}"),
                None => break,
            }
        }
        assert_eq!(found, ["bot", "publisher", "spare", "webhook-owner"]);
        let found_one = list("?organizationId=webhook-owner").await.content();
        assert_eq!(found_one["data"].as_array().map(Vec::len), Some(1));
        assert_eq!(found_one["data"][0]["organizationId"], "webhook-owner");
        assert_eq!(list("?size=0").await.status, 400);
        assert_eq!(list("?size=101").await.status, 400);
        assert_eq!(list("?next=x").await.status, 400);
        assert_eq!(list("?organizationId=x%20y").await.status, 400);
    })
    .await;
}

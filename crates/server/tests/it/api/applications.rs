//! Applications over the platform API, and the deletion of unused ones
//! (`docs/spec/authorization.md#unused-applications`).

use std::time::Duration;

use domain::Timestamp;
use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both, patiently};

use crate::fixture::Fixture;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;

async fn show(world: &World, client_id: &str) -> Response {
    world.operator(Request::get(format!("/platform/v1/applications/{client_id}"))).await
}

async fn restore(world: &World, client_id: &str) -> Response {
    world.operator(Request::post(format!("/platform/v1/applications/{client_id}/restore"))).await
}

/// Advances the clock by minutes until the jobs have had the expected effect.
async fn until(world: &World, client_id: &str, what: &str, happened: impl Fn(&Response) -> bool) -> Response {
    patiently(what, async {
        loop {
            let answer = show(world, client_id).await;
            if happened(&answer) {
                return answer;
            }
            world.advance(Duration::from_secs(60));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

fn date(world: &World) -> String {
    Timestamp::from_millis(world.now_ms()).rfc3339()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_returned_as_it_was_put_without_its_secrets() {
    both(Setup::default(), |world| async move {
        let organization = json!({ "organizationName": "게임즈", "verified": true });
        world.operator(Request::put("/platform/v1/organizations/games").json(&organization)).await.content();
        let made = date(&world);
        let app = world
            .application("full")
            .redirect_uris(&["https://b.example/", "https://a.example/"])
            .with("name", "이름")
            .with("scopes", json!(["드롭스", "유저 정보 조회"]))
            .with("organizationId", "games")
            .with("profile", "observed")
            .with("quota", false)
            .create()
            .await;
        let shown = show(&world, "full").await;
        assert_eq!(
            shown.content(),
            json!({
                "clientId": "full", "name": "이름", "redirectUris": ["https://a.example/", "https://b.example/"],
                "scopes": ["유저 정보 조회", "드롭스"], "organizationId": "games", "ownerChannelId": null, "profile": "observed",
                "quota": false, "quotaPercent": null, "homepageUrl": null, "termsUrl": null, "privacyUrl": null, "hasLogo": false,
                "createdDate": made, "lastUsedDate": made, "deletedDate": null, "disabledDate": null, "disabledBy": [],
                "notices": [],
            })
        );
        assert!(!shown.text().contains(&app.client_secret));
        world.application("bare").create().await;
        let bare = show(&world, "bare").await.content();
        assert_eq!(
            (&bare["organizationId"], &bare["profile"], &bare["quota"]),
            (&Value::Null, &Value::Null, &json!(true))
        );
        show(&world, "missing").await.assert_refused(404, "NOT_FOUND");
        restore(&world, "missing").await.assert_refused(404, "NOT_FOUND");
        assert_eq!(show(&world, "x%20y").await.status, 400);
        assert_eq!(restore(&world, "x%20y").await.status, 400);
        let body = json!({ "name": "x", "redirectUris": [], "scopes": [], "quota": "no" });
        let put = world.operator(Request::put("/platform/v1/applications/x").json(&body)).await;
        assert!(put.message().contains("quota: "), "{}", put.text());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_calls_with_a_scope_count_as_uses() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, publisher, .. } = Fixture::set_up(&world).await;
        let chat = world.application("chat").scopes(&[domain::Scope::ChatRead]).create().await;
        let without = world.sign_in(&chat, &streamer).await;
        let made = date(&world);
        world.advance(Duration::from_secs(1));
        // None of these calls needs a scope that the caller has.
        world.user_sessions(&without.access, "").await.content();
        world.user_session_url(&without.access).await.content();
        world.channels(&chat, "channelIds=haneul").await.content();
        world.me(&without.access).await.assert_refused(403, "FORBIDDEN");
        world.refresh(&chat, &without.refresh).await.content();

        let used = date(&world);
        let tokens = world.sign_in(&app, &streamer).await;
        world.me(&tokens.access).await.content();
        let (id, secret) = (&publisher.app.client_id, &publisher.app.client_secret);
        world.send(Request::get("/open/v1/drops/reward-claims").client(id, secret)).await.content();
        for id in ["bot", id] {
            until(&world, id, "the use is written", |answer| answer.content()["lastUsedDate"] == used).await;
        }
        assert_eq!(show(&world, "chat").await.content()["lastUsedDate"], made);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unwritten_use_is_written_when_the_node_stops() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        world.advance(Duration::from_secs(5));
        let used = date(&world);
        world.me(&tokens.access).await.content();
        world.stop().await;
        world.restart().await;
        assert_eq!(show(&world, "bot").await.content()["lastUsedDate"], used);
    })
    .await;
}

/// The owner may miss the notice, but every answer has the date.
#[tokio::test(flavor = "multi_thread")]
async fn an_unused_application_gets_its_deletion_date() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let began = world.now_ms();
        let call = async || {
            let answer = world.channels(&fixture.app, "channelIds=haneul").await;
            (answer.status, answer.header("stagedoor-deletes-at").map(str::to_owned))
        };
        world.advance(59 * DAY);
        assert_eq!(call().await, (200, None));
        world.advance(DAY);
        until(&world, "bot", "a warning", |answer| answer.content()["notices"] != json!([])).await;
        let day_90 = Timestamp::from_millis(began).plus_ms(90 * 24 * 60 * 60 * 1_000).rfc3339();
        patiently("the header", async {
            while call().await != (200, Some(day_90.clone())) {
                world.advance(Duration::from_secs(60));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        // A call that uses a scope cancels the deletion, and its own answer has no date.
        let tokens = world.sign_in(&fixture.app, &fixture.streamer).await;
        let me = world.me(&tokens.access).await;
        assert_eq!((me.status, me.header("stagedoor-deletes-at")), (200, None));
        assert_eq!(call().await, (200, None));
        until(&world, "bot", "the use is written", |answer| answer.content()["notices"] == json!([])).await;
        assert_eq!(call().await, (200, None));
    })
    .await;
}

/// Advances to shortly before day 90. `bot` is used at day 60, `idle` is not.
async fn nearly_ninety_days(world: &World, fixture: &Fixture) {
    let began = world.now_ms();
    world.advance(60 * DAY);
    for id in ["bot", "idle"] {
        until(world, id, "a warning", |answer| answer.content()["notices"][0]["kind"] == "UNUSED_60_DAYS")
            .await;
    }
    let tokens = world.sign_in(&fixture.app, &fixture.streamer).await;
    world.me(&tokens.access).await.content();
    until(world, "bot", "the use is written", |answer| answer.content()["notices"] == json!([])).await;
    let passed = Duration::from_millis((world.now_ms() - began).unsigned_abs());
    world.advance(90 * DAY - passed - 2 * HOUR);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_application_is_deleted_restored_and_finally_purged() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let idle = world.application("idle").create().await;
        nearly_ninety_days(&world, &fixture).await;
        let tokens = world.sign_in(&idle, &fixture.streamer).await;
        world.user_sessions(&tokens.access, "").await.content();
        world.advance(2 * HOUR);
        let deleted =
            until(&world, "idle", "the deletion", |answer| !answer.content()["deletedDate"].is_null()).await;
        let notices = deleted.content()["notices"].as_array().expect("a list").len();
        assert_eq!(notices, 3, "{}", deleted.text());
        assert_eq!(show(&world, "bot").await.content()["deletedDate"], Value::Null);

        world.channels(&idle, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
        world.client_session_url(&idle).await.assert_refused(401, "INVALID_CLIENT");
        world.refresh(&idle, &tokens.refresh).await.assert_refused(401, "INVALID_CLIENT");
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        world.user_session_url(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        let address =
            "/account-interlock?clientId=idle&redirectUri=http%3A%2F%2F127.0.0.1%3A9999%2Fcallback&state=s";
        assert_eq!(world.browser().open(address).await.response.status, 400);

        assert_eq!(restore(&world, "idle").await.text(), NOTHING);
        world.channels(&idle, "channelIds=haneul").await.content();
        world.me(&tokens.access).await.content();
        assert_eq!(world.browser().open(address).await.response.status, 200);
        let back = show(&world, "idle").await.content();
        assert_eq!(
            (&back["deletedDate"], &back["lastUsedDate"], &back["notices"]),
            (&Value::Null, &json!(date(&world)), &json!([]))
        );
        assert_eq!(restore(&world, "idle").await.text(), NOTHING);

        world.advance(91 * DAY);
        until(&world, "idle", "the deletion", |answer| !answer.content()["deletedDate"].is_null()).await;
        world.advance(30 * DAY);
        until(&world, "idle", "the end", |answer| answer.status == 404).await;
        restore(&world, "idle").await.assert_refused(404, "NOT_FOUND");
        // The id is free for a new application.
        let new = world.application("idle").create().await;
        assert_ne!(new.client_secret, idle.client_secret);
        world.channels(&idle, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
        world.channels(&new, "channelIds=haneul").await.content();
    })
    .await;
}

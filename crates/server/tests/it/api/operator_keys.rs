//! Operator keys: made, listed and revoked over the platform API, each with a role.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both, patiently};

const KEYS: &str = "/platform/v1/keys";

async fn make(world: &World, name: &str, role: &str) -> (String, String) {
    let made =
        world.operator(Request::post(KEYS).json(&json!({ "name": name, "role": role }))).await.content();
    let text = |field: &str| made[field].as_str().expect("a text").to_owned();
    assert_eq!((text("name"), text("role")), (name.to_owned(), role.to_owned()));
    (text("keyId"), text("operatorKey"))
}

async fn with(world: &World, key: &str, request: Request) -> Response {
    world.send(request.bearer(key)).await
}

fn channel() -> Request {
    Request::put("/platform/v1/channels/gureum").json(&json!({ "channelName": "구름" }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_does_what_its_role_allows() {
    both(Setup::default(), |world| async move {
        let reads = || Request::get("/platform/v1/channels");
        let list = || Request::get(KEYS);
        for (role, read, write, keys) in
            [("read", 200, 403, 403), ("write", 200, 200, 403), ("admin", 200, 200, 200)]
        {
            let (_, key) = make(&world, "support", role).await;
            assert_eq!(with(&world, &key, reads()).await.status, read, "{role}");
            assert_eq!(with(&world, &key, Request::get("/metrics")).await.status, read, "{role}");
            let wrote = with(&world, &key, channel()).await;
            assert_eq!(wrote.status, write, "{role}");
            if write == 403 {
                assert_eq!(wrote.header("stagedoor-reason"), Some("role-missing; role=write"));
            }
            let listed = with(&world, &key, list()).await;
            assert_eq!(listed.status, keys, "{role}");
            if keys == 403 {
                listed.assert_refused(403, "FORBIDDEN");
                assert_eq!(listed.header("stagedoor-reason"), Some("role-missing; role=admin"));
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_shown_once_listed_by_their_last_characters_and_revoked_at_once() {
    both(Setup::default(), |world| async move {
        let (id, key) = make(&world, "collector", "read").await;
        world.advance(Duration::from_secs(1));
        let (other, other_key) = make(&world, "moderation", "write").await;
        let listed = world.operator(Request::get("/platform/v1/keys?size=1")).await;
        assert!(!listed.text().contains(&key));
        let page = listed.content();
        assert_eq!(page["data"][0]["keyId"], id);
        assert!(key.ends_with(page["data"][0]["lastCharacters"].as_str().expect("a text")));
        assert_eq!(page["data"][0]["lastUsedDate"], Value::Null);
        let next = page["page"]["next"].as_str().expect("a cursor").to_owned();
        let rest = world.operator(Request::get(format!("{KEYS}?size=1&next={next}"))).await.content();
        assert_eq!((&rest["data"][0]["keyId"], &rest["page"]["next"]), (&json!(other), &Value::Null));

        assert_eq!(with(&world, &key, Request::get("/platform/v1/channels")).await.status, 200);
        patiently("the use is written", async {
            loop {
                let listed = world.operator(Request::get(KEYS)).await.content();
                if listed["data"][0]["lastUsedDate"].is_string() {
                    return;
                }
                world.advance(Duration::from_secs(60));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;

        world.operator(Request::delete(format!("{KEYS}/{id}"))).await.content();
        let refused = with(&world, &key, Request::get("/platform/v1/channels")).await;
        refused.assert_refused(401, "INVALID_TOKEN");
        assert_eq!(refused.header("stagedoor-reason"), Some("operator-key-wrong"));
        assert_eq!(with(&world, &other_key, channel()).await.status, 200);
        world.operator(Request::delete(format!("{KEYS}/{id}"))).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_idempotency_key_makes_one_key() {
    both(Setup::default(), |world| async move {
        let body = json!({ "name": "deploy", "role": "write" });
        let request = || Request::post(KEYS).json(&body).header("Idempotency-Key", "once");
        let first = world.operator(request()).await.content();
        assert_eq!(world.operator(request()).await.content(), first);
        let listed = world.operator(Request::get(KEYS)).await.content();
        assert_eq!(listed["data"].as_array().map(Vec::len), Some(1));
        let id = first["keyId"].as_str().expect("an id");
        world.operator(Request::delete(format!("{KEYS}/{id}"))).await.content();
        world.operator(request()).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_key_is_refused_and_nothing_is_made() {
    both(Setup::default(), |world| async move {
        for (body, field) in [
            (json!({ "role": "read" }), "name"),
            (json!({ "name": "", "role": "read" }), "name"),
            (json!({ "name": "x".repeat(101), "role": "read" }), "name"),
            (json!({ "name": "a" }), "role"),
            (json!({ "name": "a", "role": "root" }), "role"),
        ] {
            let answer = world.operator(Request::post(KEYS).json(&body)).await;
            assert_eq!(answer.status, 400, "{body}");
            assert!(answer.text().contains(&format!("{field}: ")), "{body}: {}", answer.text());
        }
        assert_eq!(world.operator(Request::get(KEYS)).await.content()["data"], json!([]));
    })
    .await;
}

//! Applications by load, and the part of the quotas that an operator gives an application.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both, nodes, patiently};

use crate::fixture::Fixture;

fn enforced() -> Setup {
    Setup { quotas: true, ..Setup::default() }
}

fn quota(client_id: &str) -> String {
    format!("/platform/v1/applications/{client_id}/quota")
}

fn put(client_id: &str, percent: &Value) -> Request {
    Request::put(quota(client_id)).json(&json!({ "percent": percent }))
}

fn limit(answer: &Response) -> i64 {
    answer.number("ratelimit-limit")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_the_quotas_is_refused_earlier_for_the_same_reason_and_others_do_not_feel_it() {
    both(enforced(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        let other = world.application("other").create().await;
        let elsewhere = world.sign_in(&other, &streamer).await;
        assert_eq!(limit(&world.me(&tokens.access).await), 800);
        world.operator(put(&app.client_id, &json!(10))).await.content();
        assert_eq!(limit(&world.me(&tokens.access).await), 80);
        assert_eq!(limit(&world.channels(&app, "channelIds=haneul").await), 80);
        assert_eq!(limit(&world.me(&elsewhere.access).await), 800);
        assert_eq!(limit(&world.user_session_url(&tokens.access).await), 3);

        // Two of twenty messages, and the streamer has the others elsewhere.
        for _ in 0..2 {
            world.send_chat(&tokens.access, "x").await.content();
        }
        let refused = world.send_chat(&tokens.access, "x").await;
        refused.assert_refused(429, "TOO_MANY_REQUESTS");
        assert_eq!(refused.header("stagedoor-reason"), Some("quota; name=chat-send"));
        assert_eq!((limit(&refused), refused.number("retry-after")), (2, 15));
        for _ in 0..18 {
            world.send_chat(&elsewhere.access, "x").await.content();
        }
        world.send_chat(&elsewhere.access, "x").await.assert_refused(429, "TOO_MANY_REQUESTS");

        // The part stays when the application is put again, and is seen.
        let shown = format!("/platform/v1/applications/{}", app.client_id);
        let of = async |world: &World| {
            let content = world.operator(Request::get(&shown)).await.content();
            (content["quota"].clone(), content["quotaPercent"].clone())
        };
        assert_eq!(of(&world).await, (json!(true), json!(10)));
        let again = json!({ "name": "bot", "redirectUris": [], "quota": false });
        world.operator(Request::put(&shown).json(&again)).await.content();
        assert_eq!(of(&world).await, (json!(false), Value::Null));
        let again = json!({ "name": "bot", "redirectUris": [] });
        world.operator(Request::put(&shown).json(&again)).await.content();
        assert_eq!(of(&world).await, (json!(true), json!(10)));
        world.operator(Request::delete(quota(&app.client_id))).await.content();
        assert_eq!(of(&world).await, (json!(true), json!(100)));
        assert_eq!(limit(&world.me(&elsewhere.access).await), 800);

        let log = world.operator(Request::get("/platform/v1/audit-log?action=application.quota")).await;
        let details: Vec<Value> =
            log.content()["data"].as_array().expect("a list").iter().map(|e| e["details"].clone()).collect();
        assert_eq!(details, [100, 10].map(|percent| json!({ "quota": true, "percent": percent })));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_none_and_a_missing_application_are_refused() {
    both(enforced(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        for percent in [json!(0), json!(101), json!(-1), json!(1.5), json!("50"), Value::Null] {
            let refused = world.operator(put(&app.client_id, &percent)).await;
            assert_eq!(refused.status, 400, "{percent}");
            assert!(refused.message().contains("percent"), "{}", refused.text());
        }
        assert_eq!(limit(&world.me(&tokens.access).await), 800);
        world.operator(put("missing", &json!(10))).await.assert_refused(404, "NOT_FOUND");
        world.operator(Request::delete(quota("missing"))).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_follows_within_seconds() {
    nodes(2, enforced(), |cluster| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let app = one.application("bot").create().await;
        let person = one.person("haneul").create().await;
        let tokens = one.sign_in(&app, &person).await;
        assert_eq!(limit(&two.me(&tokens.access).await), 800);
        one.operator(put("bot", &json!(25))).await.content();
        patiently("the other node follows", async {
            while limit(&two.me(&tokens.access).await) != 200 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    })
    .await;
}

/// What is listed: client id, requests, refused, events.
async fn load(world: &World, query: &str) -> Vec<(String, i64, i64, i64)> {
    let path = format!("/platform/v1/application-load?{query}");
    let content = world.operator(Request::get(path)).await.content();
    let number = |row: &Value, name: &str| row[name].as_i64().expect("a number");
    let row = |row: &Value| {
        let id = row["clientId"].as_str().expect("a text").to_owned();
        (id, number(row, "requests"), number(row, "refused"), number(row, "events"))
    };
    content["data"].as_array().expect("a list").iter().map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_are_listed_by_the_load_of_the_last_minutes() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, tokens, .. } = Fixture::set_up(&world).await;
        let quiet = world.application("quiet").create().await;
        let quiets = world.sign_in(&quiet, &streamer).await;
        world.settle_usage().await;
        let before = load(&world, "").await;
        let of = |list: &[(String, i64, i64, i64)], id: &str| {
            let found = list.iter().find(|row| row.0 == id).cloned();
            found.map_or((0, 0, 0), |(_, requests, refused, events)| (requests, refused, events))
        };
        let mut socket = world.open_user_session(&quiets.access).await;
        world.subscribe(&quiets.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        for _ in 0..5 {
            world.send_chat(&tokens.access, "x").await.content();
            socket.event("CHAT").await;
        }
        world.send_chat(&tokens.access, "").await.message();
        world.settle_usage().await;
        let now = load(&world, "").await;
        let grown = |id: &str| {
            let ((a, b, c), (d, e, f)) = (of(&now, id), of(&before, id));
            (a - d, b - e, c - f)
        };
        assert_eq!((grown("bot"), grown("quiet")), ((6, 1, 0), (2, 0, 5)));
        assert_eq!(now[0].0, "bot");
        assert_eq!(load(&world, "by=refused").await.len(), 1);
        assert_eq!(load(&world, "by=events&minutes=1&size=1").await[0].0, "quiet");

        // Minutes pass, and an hour later nothing is left of them.
        world.advance(Duration::from_secs(5 * 60));
        assert_eq!(load(&world, "minutes=5").await, []);
        assert_eq!(load(&world, "minutes=6").await, now);
        world.advance(Duration::from_secs(60 * 60));
        assert_eq!(load(&world, "minutes=60").await, []);
        for query in ["by=name", "minutes=0", "minutes=61", "size=0"] {
            let path = format!("/platform/v1/application-load?{query}");
            assert_eq!(world.operator(Request::get(path)).await.status, 400, "{query}");
        }
        socket.close().await;
    })
    .await;
}

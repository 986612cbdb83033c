//! Sessions that the operator lists and ends (platform API).

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Engine, Request, Setup, World, both, patiently};

use crate::fixture::{Fixture, wrong};

/// Interval of a node's reconciliation.
const LOOK: Duration = Duration::from_secs(1);

async fn details(world: &World, key: &str) -> Value {
    world.operator(Request::get(format!("/platform/v1/sessions/{key}"))).await.content()
}

async fn list(world: &World, query: &str) -> Value {
    world.operator(Request::get(format!("/platform/v1/sessions?{query}"))).await.content()
}

fn keys(list: &Value) -> Vec<&str> {
    let data = list["data"].as_array().expect("a list");
    data.iter().map(|item| item["sessionKey"].as_str().expect("a text")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_shown_while_it_is_connected_and_after_it_ended() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        let key = socket.session_key().to_owned();
        world.subscribe(&tokens.access, "chat", &key).await.content();
        socket.system("subscribed").await;
        let shown = details(&world, &key).await;
        let node = shown["nodeId"].as_str().expect("a text").to_owned();
        let mut expected = json!({
            "sessionKey": key, "clientId": app.client_id, "channelId": "haneul", "nodeId": node,
            "transport": "websocket", "connectedDate": "2026-07-18T14:32:12.345Z", "disconnectedDate": null,
            "closeReason": null, "subscribedEvents": [{ "eventType": "CHAT", "channelId": "haneul" }],
        });
        assert_eq!(shown, expected);
        let of_client = world.open_client_session(&app).await;
        assert_eq!(details(&world, of_client.session_key()).await["channelId"], Value::Null);

        world.advance(Duration::from_millis(655));
        socket.close().await;
        let ended = patiently("the end is recorded", async {
            loop {
                let shown = details(&world, &key).await;
                if shown["disconnectedDate"].is_string() {
                    break shown;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        expected["transport"] = Value::Null;
        expected["disconnectedDate"] = json!("2026-07-18T14:32:13.000Z");
        expected["closeReason"] = json!("client_goodbye");
        assert_eq!(ended, expected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_session_is_not_found_and_ending_it_succeeds() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let path = "/platform/v1/sessions/missing";
        world.operator(Request::get(path)).await.assert_refused(404, "NOT_FOUND");
        assert_eq!(world.operator(Request::delete(path)).await.content(), Value::Null);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_newest_first_and_a_walk_returns_each_session_once() {
    both(Setup::default(), |world| async move {
        let Fixture { app, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let viewers = world.sign_in(&app, &viewer).await;
        let mut sockets = Vec::new();
        for n in 0..7 {
            sockets.push(match n % 3 {
                0 => world.open_client_session(&app).await,
                1 => world.open_user_session(&tokens.access).await,
                _ => world.open_user_session(&viewers.access).await,
            });
            world.advance(Duration::from_millis(1));
        }
        let opened: Vec<String> = sockets.iter().map(|socket| socket.session_key().to_owned()).collect();
        let newest =
            |places: &[usize]| -> Vec<&str> { places.iter().map(|at| opened[*at].as_str()).collect() };
        assert_eq!(keys(&list(&world, "").await), newest(&[6, 5, 4, 3, 2, 1, 0]));
        assert_eq!(keys(&list(&world, "channelId=haneul").await), newest(&[4, 1]));
        assert_eq!(keys(&list(&world, "channelId=byeol&connected=true").await), newest(&[5, 2]));
        assert_eq!(keys(&list(&world, "clientId=missing").await), newest(&[]));
        sockets.remove(5).close().await;
        patiently("its end is recorded", async {
            while keys(&list(&world, "connected=false").await) != newest(&[5]) {
                tokio::task::yield_now().await;
            }
        })
        .await;

        let filter = format!("connected=true&clientId={}", app.client_id);
        let (mut walked, mut next) = (Vec::new(), String::new());
        loop {
            let page = list(&world, &format!("{filter}&size=2{next}")).await;
            walked.extend(keys(&page).into_iter().map(str::to_owned));
            // A session that connects during the walk is newer than the walk's position.
            if walked.len() == 2 {
                sockets.push(world.open_user_session(&tokens.access).await);
            }
            match page["page"]["next"].as_str() {
                Some(cursor) => next = format!("&next={cursor}"),
                None => break,
            }
        }
        assert_eq!(walked, newest(&[6, 4, 3, 2, 1, 0]));

        let refused = async |query: &str, field: &str, rule: &str| {
            let answer = world.operator(Request::get(format!("/platform/v1/sessions?{query}"))).await;
            answer.assert_refused(400, &wrong(field, rule));
        };
        // A cursor is only valid with its filters.
        let cursor = next.trim_start_matches('&');
        for query in [cursor.to_owned(), format!("connected=false&{cursor}"), "next=x".to_owned()] {
            refused(&query, "next", "같은 목록의 이전 응답에서 받은 값이어야 합니다.").await;
        }
        refused("connected=1", "connected", "true 또는 false여야 합니다.").await;
        for query in ["size=0", "size=51"] {
            refused(query, "size", "1 이상 50 이하의 정수여야 합니다.").await;
        }
        for query in ["clientId=", "channelId=%ED%95%9C"] {
            let answer = world.operator(Request::get(format!("/platform/v1/sessions?{query}"))).await;
            assert_eq!(answer.status, 400, "{query}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evicted_session_ends_at_once_with_a_reason() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let socket = world.open_user_session(&tokens.access).await;
        let other = world.open_user_session(&tokens.access).await;
        let key = socket.session_key().to_owned();
        let path = format!("/platform/v1/sessions/{key}");
        // The clock does not advance, so only the bus can have ended the session.
        assert_eq!(world.operator(Request::delete(path.clone())).await.content(), Value::Null);
        assert_eq!(socket.closed().await, (1008, "evicted".to_owned()));
        patiently("its end is recorded", async {
            while details(&world, &key).await["closeReason"] != "evicted" {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(world.operator(Request::delete(path)).await.content(), Value::Null, "again");
        assert_eq!(details(&world, other.session_key()).await["disconnectedDate"], Value::Null);
        world.subscribe(&tokens.access, "chat", &key).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_another_node_ends_with_that_nodes_reconciliation() {
    both(Setup::default(), |world| async move {
        if world.engine() == Engine::Sqlite {
            return;
        }
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let socket = world.open_user_session(&tokens.access).await;
        let key = socket.session_key().to_owned();
        // The second node shares the store, but not the bus.
        let (node, api) = world.another_node().await;
        let path = format!("/platform/v1/sessions/{key}");
        let shown = api.operator(Request::get(path.clone())).await.content();
        assert_eq!((&shown["transport"], &shown["closeReason"]), (&Value::Null, &Value::Null));
        assert_eq!(api.operator(Request::delete(path.clone())).await.content(), Value::Null);
        let closed = tokio::spawn(socket.closed());
        patiently("its node finds it", async {
            while !closed.is_finished() {
                world.advance(LOOK / 10);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        assert_eq!(closed.await.expect("it works"), (1008, "evicted".to_owned()));
        let stopped = tokio::spawn(node.stop());
        patiently("the other node stops", async {
            while !stopped.is_finished() {
                world.advance(LOOK / 10);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    })
    .await;
}

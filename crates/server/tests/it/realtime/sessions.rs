//! Realtime sessions: their URLs, subscriptions, limits and lists (`docs/spec/realtime.md`). The gateway's
//! own tests cover the sockets' protocols.

use std::time::Duration;

use domain::event::EventType;
use serde_json::{Value, json};
use testkit::{Request, Response, Setup, Socket, World, both};

use crate::fixture::{Fixture, UNKNOWN_TOKEN, wrong};

/// Each event, by its name in the path and on the socket.
fn events() -> impl Iterator<Item = (String, &'static str)> {
    EventType::ALL.into_iter().map(|event| (event.name().to_lowercase(), event.name()))
}

fn url(answer: &Response) -> String {
    answer.content()["url"].as_str().expect("a text").to_owned()
}

/// The keys of a list.
fn keys(list: &Value) -> Vec<String> {
    let data = list["data"].as_array().expect("a list");
    data.iter().map(|item| item["sessionKey"].as_str().expect("a text").to_owned()).collect()
}

/// Waits until the user has `count` connected sessions. A socket is closed before its row is written.
async fn until_connected(world: &World, token: &str, count: usize) {
    testkit::patiently("sessions are disconnected", async {
        loop {
            let list = world.user_sessions(token, "size=50").await.content();
            let data = list["data"].as_array().expect("a list").clone();
            if data.iter().filter(|session| session["disconnectedDate"].is_null()).count() == count {
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Waiting does not help at a cap, so there is no `Retry-After`.
fn assert_cap(refused: &testkit::Response, reason: &str) {
    refused.assert_refused(429, "TOO_MANY_REQUESTS");
    assert_eq!(refused.header("stagedoor-reason"), Some(reason));
    for name in ["retry-after", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"] {
        assert_eq!(refused.header(name), None, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_url_has_the_nodes_address_and_a_token() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        for answer in [world.user_session_url(&tokens.access).await, world.client_session_url(&app).await] {
            let url = url(&answer);
            let token = testkit::query_value(&url, "auth").expect("a token");
            assert_eq!(url, format!("http://{}?auth={token}", world.address()));
            assert_eq!(token.len(), 43);
            assert_eq!(
                answer.text(),
                format!(r#"{{"code":200,"message":null,"content":{{"url":"{url}"}}}}"#)
            );
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribing_and_unsubscribing_are_confirmed_on_the_session() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        for mut socket in
            [world.open_user_session(&tokens.access).await, world.open_client_session(&app).await]
        {
            let key = socket.session_key().to_owned();
            for (event, name) in events() {
                let data = json!({ "eventType": name, "channelId": "haneul" });
                // Repeating a call is no error, and sends another message.
                for _ in 0..2 {
                    let answer = world.subscribe(&tokens.access, &event, &key).await;
                    assert_eq!(answer.text(), r#"{"code":200,"message":null,"content":null}"#);
                    assert_eq!(socket.system("subscribed").await, data);
                }
                for _ in 0..2 {
                    let answer = world.unsubscribe(&tokens.access, &event, &key).await;
                    assert_eq!(answer.text(), r#"{"code":200,"message":null,"content":null}"#);
                    assert_eq!(socket.system("unsubscribed").await, data);
                }
            }
            socket.ping().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscribe_call_accepts_every_body_of_known_clients() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        for what in ["subscribe", "unsubscribe"] {
            for body in ["", "null", "\"\"", "{}"] {
                let key = socket.session_key();
                let target = format!("/open/v1/sessions/events/{what}/chat?sessionKey={key}");
                let request = Request::post(target).bearer(&tokens.access);
                world.send(request.header("Content-Type", "application/json").body(body)).await.content();
                socket.system(&format!("{what}d")).await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_reaches_every_subscribed_session_once_and_no_other() {
    both(Setup::default(), |world| async move {
        let Fixture { app, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let viewers = world.sign_in(&app, &viewer).await;
        let mut mine = world.open_user_session(&tokens.access).await;
        let mut clients = world.open_client_session(&app).await;
        let mut others = world.open_user_session(&viewers.access).await;
        // A second subscription must not deliver twice. The client's session also receives the viewer's
        // channel.
        for _ in 0..2 {
            world.subscribe(&tokens.access, "chat", mine.session_key()).await.content();
            mine.system("subscribed").await;
        }
        for token in [&tokens.access, &viewers.access] {
            world.subscribe(token, "chat", clients.session_key()).await.content();
            clients.system("subscribed").await;
        }
        world.subscribe(&viewers.access, "chat", others.session_key()).await.content();
        others.system("subscribed").await;

        world.send_chat(&tokens.access, "one").await.content();
        world.send_chat(&viewers.access, "two").await.content();
        world.send_chat(&tokens.access, "three").await.content();
        for (socket, texts) in [(&mut mine, &["one", "three"][..]), (&mut others, &["two"])] {
            for text in texts {
                assert_eq!(socket.event("CHAT").await["content"], **text);
            }
        }
        // Each channel has an order of its own.
        let mut received = Vec::new();
        for _ in 0..3 {
            received.push(clients.event("CHAT").await["content"].clone());
        }
        let place = received.iter().position(|content| content == "two").expect("the viewer's event");
        received.remove(place);
        assert_eq!(received, ["one", "three"]);
        // No unsubscribed event has come before this one.
        for (token, socket) in [(&tokens.access, &mut mine), (&viewers.access, &mut others)] {
            world.unsubscribe(token, "chat", socket.session_key()).await.content();
            socket.system("unsubscribed").await;
            socket.ping().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_arrives_before_subscribed_or_after_unsubscribed() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        for round in 0..10 {
            world.send_chat(&tokens.access, "too early").await.content();
            world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
            world.send_chat(&tokens.access, &format!("in time {round}")).await.content();
            world.unsubscribe(&tokens.access, "chat", socket.session_key()).await.content();
            world.send_chat(&tokens.access, "too late").await.content();
            socket.system("subscribed").await;
            assert_eq!(socket.event("CHAT").await["content"], format!("in time {round}"));
            socket.system("unsubscribed").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_ended_and_foreign_sessions_get_the_same_answer() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let stranger = world.application("stranger").create().await;
        let viewers = world.sign_in(&app, &viewer).await;
        let elsewhere = world.sign_in(&stranger, &streamer).await;
        let ended = world.open_user_session(&tokens.access).await;
        let ended_key = ended.session_key().to_owned();
        ended.close().await;
        until_connected(&world, &tokens.access, 0).await;
        let of_viewer = world.open_user_session(&viewers.access).await;
        let of_other_app = world.open_user_session(&elsewhere.access).await;
        let of_other_client = world.open_client_session(&stranger).await;
        for key in [
            "missing",
            UNKNOWN_TOKEN,
            "한글",
            "' OR 1=1 --",
            &"x".repeat(500),
            &ended_key,
            of_viewer.session_key(),
            of_other_app.session_key(),
            of_other_client.session_key(),
        ] {
            for (event, _) in events() {
                for answer in [
                    world.subscribe(&tokens.access, &event, key).await,
                    world.unsubscribe(&tokens.access, &event, key).await,
                ] {
                    assert_eq!(answer.text(), r#"{"code":404,"message":"NOT_FOUND"}"#, "{key}");
                    assert_eq!(answer.status, 404);
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_key_is_required_once() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let once = "한 번만 지정할 수 있습니다.";
        for (query, rule) in [
            ("", "필수 값입니다."),
            ("?sessionKey=", "필수 값입니다."),
            ("?sessionkey=x", "필수 값입니다."),
            ("?sessionKey=x&sessionKey=x", once),
        ] {
            let target = format!("/open/v1/sessions/events/subscribe/chat{query}");
            let answer = world.send(Request::post(target).bearer(&tokens.access)).await;
            answer.assert_refused(400, &wrong("sessionKey", rule));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_three_sessions_over_all_applications() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        let stranger = world.application("stranger").create().await;
        let elsewhere = world.sign_in(&stranger, &streamer).await;
        let late = url(&world.user_session_url(&tokens.access).await);
        let mut open = Vec::new();
        for token in [&tokens.access, &elsewhere.access, &tokens.access] {
            open.push(world.open_user_session(token).await);
        }
        for token in [&tokens.access, &elsewhere.access] {
            let refused = world.user_session_url(token).await;
            assert_cap(&refused, "cap; name=user-sessions; limit=3");
        }
        // The cap is checked again at the handshake, before any upgrade.
        let refused = Socket::connect(&late).await.expect_err("the fourth");
        assert_cap(&refused, "cap; name=user-sessions; limit=3");
        // Client sessions are counted separately.
        open.push(world.open_client_session(&app).await);

        open.remove(0).close().await;
        until_connected(&world, &tokens.access, 1).await;
        // The refused session URL was not used up.
        open.push(Socket::open(&late).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_has_ten_client_sessions() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let stranger = world.application("stranger").create().await;
        let mut open = Vec::new();
        for _ in 0..10 {
            open.push(world.open_client_session(&app).await);
        }
        world.client_session_url(&app).await.assert_refused(429, "TOO_MANY_REQUESTS");
        open.push(world.open_client_session(&stranger).await);
        open.push(world.open_user_session(&tokens.access).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_handshakes_do_not_exceed_the_limit() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let mut urls = Vec::new();
        for _ in 0..30 {
            urls.push(url(&world.client_session_url(&app).await));
        }
        let tries: Vec<_> =
            urls.into_iter().map(|url| tokio::spawn(async move { Socket::connect(&url).await })).collect();
        let mut open = Vec::new();
        for attempt in tries {
            match attempt.await.expect("every try is answered") {
                Ok(socket) => open.push(socket),
                Err(refused) => refused.assert_refused(429, "TOO_MANY_REQUESTS"),
            }
        }
        assert_eq!(open.len(), 10);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_at_most_thirty_subscriptions() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        let mut socket = world.open_client_session(&app).await;
        let key = socket.session_key().to_owned();
        let mut tokens = Vec::new();
        for n in 0..11 {
            let person = world.person(&format!("streamer-{n}")).create().await;
            tokens.push(world.sign_in(&app, &person).await.access);
        }
        let (last, ten) = tokens.split_last().expect("eleven");
        let mut wanted = Vec::new();
        for token in ten {
            wanted.extend(events().map(|(event, _)| (token, event)));
        }
        for (token, event) in wanted.into_iter().take(30) {
            world.subscribe(token, &event, &key).await.content();
            socket.system("subscribed").await;
        }
        let refused = world.subscribe(last, "chat", &key).await;
        assert_cap(&refused, "cap; name=subscriptions; limit=30");
        // The thirty subscriptions stay, one of them may be repeated, and an ended one makes room.
        world.subscribe(&ten[0], "chat", &key).await.content();
        socket.system("subscribed").await;
        world.unsubscribe(&ten[0], "donation", &key).await.content();
        socket.system("unsubscribed").await;
        world.subscribe(last, "chat", &key).await.content();
        socket.system("subscribed").await;
        world.send_chat(last, "the thirtieth").await.content();
        assert_eq!(socket.event("CHAT").await["channelId"], "streamer-10");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_subscribes_do_not_exceed_the_limit() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        let socket = world.open_client_session(&app).await;
        let mut calls = Vec::new();
        for n in 0..20 {
            let person = world.person(&format!("streamer-{n}")).create().await;
            let token = world.sign_in(&app, &person).await.access;
            for (event, _) in events() {
                calls.push((token.clone(), event, socket.session_key().to_owned()));
            }
        }
        let calls = calls.into_iter().take(60).map(|(token, event, key)| {
            let world = world.clone();
            tokio::spawn(async move { world.subscribe(&token, &event, &key).await.status })
        });
        let mut answers = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            answers.push(call.await.expect("every call is answered"));
        }
        answers.sort_unstable();
        assert_eq!(answers, [[200; 30], [429; 30]].concat());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lists_show_the_callers_own_sessions_newest_first() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let stranger = world.application("stranger").create().await;
        let viewers = world.sign_in(&app, &viewer).await;
        let elsewhere = world.sign_in(&stranger, &streamer).await;
        let mut mine = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..2 {
            mine.insert(0, world.open_user_session(&tokens.access).await);
            clients.insert(0, world.open_client_session(&app).await);
            world.advance(Duration::from_millis(1));
        }
        let of_viewer = world.open_user_session(&viewers.access).await;
        let of_other_app = world.open_user_session(&elsewhere.access).await;
        let key = |socket: &Socket| socket.session_key().to_owned();
        let my_keys: Vec<_> = mine.iter().map(key).collect();
        let client_keys: Vec<_> = clients.iter().map(key).collect();
        for query in ["", "page=0", "size=50", "size=20&page=0", "size=2", "unknown=%EA%B0%80"] {
            assert_eq!(keys(&world.user_sessions(&tokens.access, query).await.content()), my_keys, "{query}");
            assert_eq!(keys(&world.client_sessions(&app, query).await.content()), client_keys, "{query}");
        }
        for (query, expected) in [
            ("size=1", &my_keys[..1]),
            ("size=1&page=1", &my_keys[1..]),
            ("size=1&page=2", &[]),
            ("page=1", &[]),
        ] {
            assert_eq!(
                keys(&world.user_sessions(&tokens.access, query).await.content()),
                expected,
                "{query}"
            );
        }
        let far = world.user_sessions(&tokens.access, "size=50&page=2147483647").await.content();
        assert_eq!(far["data"], json!([]));
        assert_eq!(keys(&world.user_sessions(&viewers.access, "").await.content()), [key(&of_viewer)]);
        assert_eq!(keys(&world.user_sessions(&elsewhere.access, "").await.content()), [key(&of_other_app)]);
        assert_eq!(world.client_sessions(&stranger, "").await.content()["data"], json!([]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lists_its_current_or_last_subscriptions() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        for (event, _) in events() {
            world.subscribe(&tokens.access, &event, socket.session_key()).await.content();
            socket.system("subscribed").await;
            world.advance(Duration::from_millis(1));
        }
        world.unsubscribe(&tokens.access, "donation", socket.session_key()).await.content();
        socket.system("unsubscribed").await;
        let left = events().filter(|(_, name)| *name != "DONATION");
        let expected: Value =
            left.map(|(_, name)| json!({ "eventType": name, "channelId": "haneul" })).collect();
        let list = world.user_sessions(&tokens.access, "").await.content();
        assert_eq!(list["data"][0]["subscribedEvents"], expected);
        socket.close().await;
        until_connected(&world, &tokens.access, 0).await;
        let list = world.user_sessions(&tokens.access, "").await.content();
        assert_eq!(list["data"][0]["subscribedEvents"], expected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_session_is_listed_for_ninety_days() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        let socket = world.open_user_session(&tokens.access).await;
        let key = socket.session_key().to_owned();
        socket.close().await;
        until_connected(&world, &tokens.access, 0).await;
        let ninety_days = Duration::from_secs(90 * 24 * 60 * 60);
        world.advance(ninety_days - Duration::from_millis(1));
        let tokens = world.sign_in(&app, &streamer).await;
        assert_eq!(keys(&world.user_sessions(&tokens.access, "").await.content()), [key]);
        world.advance(Duration::from_millis(1));
        assert_eq!(world.user_sessions(&tokens.access, "").await.content()["data"], json!([]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_and_size_are_bounded() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let size = wrong("size", "1 이상 50 이하의 정수여야 합니다.");
        let page = wrong("page", "0 이상 2147483647 이하의 정수여야 합니다.");
        let once = "한 번만 지정할 수 있습니다.";
        for (query, message) in [
            ("size=0", &size),
            ("size=51", &size),
            ("size=-1", &size),
            ("size=", &size),
            ("size=1.0", &size),
            ("size=1e1", &size),
            ("size=%2B1", &size),
            ("size=%201", &size),
            ("size=0x10", &size),
            ("size=%EF%BC%91", &size),
            ("size=null", &size),
            ("size=99999999999999999999999", &size),
            ("page=-1", &page),
            ("page=2147483648", &page),
            ("page=x", &page),
            ("page", &page),
            ("page=0&page=0", &wrong("page", once)),
            ("size=1&size=2", &wrong("size", once)),
        ] {
            world.user_sessions(&tokens.access, query).await.assert_refused(400, message);
            world.client_sessions(&app, query).await.assert_refused(400, message);
        }
    })
    .await;
}

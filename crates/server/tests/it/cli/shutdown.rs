//! The stop of a node, and its state after a restart.

use std::time::Duration;

use serde_json::json;
use testkit::{Connection, Request, Setup, both, patiently, while_running};

use crate::fixture::Fixture;
use store::Tx;

#[tokio::test(flavor = "multi_thread")]
async fn a_running_request_is_finished() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let token = &tokens.access;
        let body = r#"{"message":"the last word"}"#;
        let mut busy = Connection::open(world.address()).await;
        // Half of the request arrives before the stop, the other half during it.
        let head = format!(
            "POST /open/v1/chats/send HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        busy.write(head.as_bytes()).await;
        busy.write(&body.as_bytes()[..5]).await;
        // An answer on another connection shows that the server has read the half request.
        world.me(token).await.content();
        let stopping = tokio::spawn({
            let world = world.clone();
            async move { world.stop().await }
        });
        patiently("no new connection is taken", async {
            while Connection::try_open(world.address()).await.is_some() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert!(!stopping.is_finished(), "it waits for the request");
        busy.write(&body.as_bytes()[5..]).await;
        let content = busy.read_response(false).await.expect("an answer").content();
        assert!(busy.is_closed().await, "nothing more is taken on this connection");
        stopping.await.expect("the node stops");

        let store = world.open_store().await;
        let id = content["messageId"].as_str().expect("an id").to_owned();
        let found = store.read(async move |tx: &mut Tx| {
                tx.query("SELECT content FROM chat_messages WHERE message_id = $1", store::params![&id]).await
            });
        assert_eq!(found.await.expect("the message is looked up").len(), 1);
        store.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_node_is_not_ready_and_still_serves() {
    // The stop advances the manual clock, so the minute lasts some seconds.
    let setup = Setup { drain_delay: Duration::from_secs(60), ..Setup::default() };
    both(setup, |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut kept = Connection::open(world.address()).await;
        let me = Request::get("/open/v1/users/me").bearer(&tokens.access);
        assert_eq!(kept.send(&me).await.header("connection"), None);
        let mut early = world.open_user_session(&tokens.access).await;
        let stopping = tokio::spawn({
            let world = world.clone();
            async move { world.stop().await }
        });
        let ready = || world.send(Request::get("/health/ready"));
        patiently("it says that it is about to stop", async {
            while ready().await.status == 200 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        ready().await.assert_refused(503, "DRAINING");
        world.send(Request::get("/health/live")).await.content();
        let answer = kept.send(&me).await;
        answer.content();
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(kept.is_closed().await);
        early.ping().await;
        let mut late = world.open_user_session(&tokens.access).await;
        assert!(!stopping.is_finished());
        stopping.await.expect("the node stops");
        for socket in [&mut early, &mut late] {
            while socket.next_packet().await.is_some() {}
        }
        world.restart().await;
        let list = world.user_sessions(&tokens.access, "").await.content();
        let ended =
            list["data"].as_array().expect("a list").iter().all(|s| s["disconnectedDate"].is_string());
        assert!(ended, "{list}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_are_closed_and_their_sessions_are_disconnected() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let mut sockets =
            [world.open_user_session(&tokens.access).await, world.open_client_session(&app).await];
        world.subscribe(&tokens.access, "chat", sockets[0].session_key()).await.content();
        sockets[0].system("subscribed").await;
        world.stop().await;
        for socket in &mut sockets {
            while socket.next_packet().await.is_some() {}
        }
        world.restart().await;
        for list in [world.user_sessions(&tokens.access, "").await, world.client_sessions(&app, "").await] {
            let list = list.content();
            assert!(list["data"][0]["disconnectedDate"].is_string(), "{list}");
        }
        // The places of the closed sessions are free.
        for _ in 0..3 {
            sockets[0] = world.open_user_session(&tokens.access).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_data_survives_a_restart() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        let code = world.consent(&app, &streamer, "s").await;
        let url = world.user_session_url(&tokens.access).await.content()["url"].clone();
        let key = Request::post("/platform/v1/channels/haneul/chats").header("Idempotency-Key", "k");
        let key = key.json(&json!({ "senderChannelId": "byeol", "message": "안녕" }));
        let posted = world.operator(key.clone()).await.content();
        let mut browser = world.browser();
        let consent = world.sign_in_page(&mut browser, &app, &streamer, "s").await;

        world.stop().await;
        world.restart().await;
        assert_eq!(world.me(&tokens.access).await.content()["channelName"], "하늘 🚀");
        world.exchange(&app, &code, "s").await.content();
        world.refresh(&app, &tokens.refresh).await.content();
        assert_eq!(world.operator(key).await.content(), posted);
        let redirect = browser.submit(&consent.form("decision").press("decision", "allow")).await;
        redirect.location();
        testkit::Socket::open(url.as_str().expect("a text")).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_without_a_whole_request_do_not_delay_the_stop() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        // Browsers open connections in advance, for requests that may never come.
        let mut opened = Connection::open(world.address()).await;
        let mut idle = Connection::open(world.address()).await;
        idle.send(&Request::get("/open/v1/users/me").bearer(&tokens.access)).await.content();
        let mut half = Connection::open(world.address()).await;
        half.write(b"GET /open/v1/users/me HTTP/1.1\r\nHost").await;
        world.me(&tokens.access).await.content();
        // A person waits after Ctrl-C.
        while_running(Duration::from_secs(5), world.stop()).await.expect("the server stops");
        for connection in [&mut opened, &mut idle, &mut half] {
            assert!(connection.is_closed().await);
        }
    })
    .await;
}

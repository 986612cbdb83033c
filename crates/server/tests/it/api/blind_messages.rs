//! Hiding messages (`docs/spec/chat.md#hiding`).

use std::collections::HashSet;
use std::time::Duration;

use domain::Scope;
use serde_json::json;
use testkit::{Request, Setup, both};

use crate::fixture::{Fixture, wrong};

const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;
const OWN_CHAT: &str = "스트리머 본인의 채팅이어야 합니다.";

#[tokio::test(flavor = "multi_thread")]
async fn the_streamer_hides_a_message_with_the_values_of_its_event() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let posted = world.say("haneul", "byeol", "안녕").await.content();
        let event = socket.event("CHAT").await;
        let (chat, time) = (event["chatChannelId"].as_str().expect("a text"), &event["messageTime"]);
        assert_eq!(*time, posted["messageTime"]);
        let time = time.as_i64().expect("milliseconds");
        world.advance(Duration::from_secs(86_399));
        for _ in 0..2 {
            // A second call leaves the message hidden.
            let answer = world.blind_message(&tokens.access, chat, time, "byeol").await;
            assert_eq!((answer.status, answer.text()), (200, NOTHING));
        }
        let pinned = world.put_notice(&tokens.access, &json!({ "messageId": posted["messageId"] })).await;
        pinned.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_200_concurrent_messages_has_its_own_time_and_can_be_hidden() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let singles = (0..100).map(|_| {
            let world = world.clone();
            tokio::spawn(async move { world.say("haneul", "byeol", "안녕").await.content() })
        });
        let singles: Vec<_> = singles.collect();
        let line =
            json!({ "kind": "chat", "channelId": "haneul", "senderChannelId": "byeol", "message": "안녕" });
        let bulk = Request::post("/platform/v1/events").body(format!("{line}\n").repeat(100));
        assert_eq!(world.operator(bulk).await.content()["refusedCount"], 0);
        let mut times = HashSet::new();
        for _ in 0..200 {
            times.insert(socket.event("CHAT").await["messageTime"].as_i64().expect("milliseconds"));
        }
        assert_eq!(times.len(), 200);
        let mut ids = Vec::new();
        let mut hidden = 0;
        for posted in singles {
            let posted = posted.await.expect("an answer");
            hidden = posted["messageTime"].as_i64().expect("milliseconds");
            assert!(times.contains(&hidden));
            ids.push(posted["messageId"].clone());
        }
        world.blind_message(&tokens.access, "chat-haneul", hidden, "byeol").await.content();
        let mut unseen = Vec::new();
        for id in &ids {
            let answer = world.put_notice(&tokens.access, &json!({ "messageId": id })).await;
            if answer.status == 404 {
                unseen.push(id);
            }
        }
        assert_eq!(unseen, [&ids[99]]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_exist_is_not_found() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        world.say("haneul", "byeol", "안녕").await.content();
        world.say("byeol", "haneul", "다른 채팅").await.content();
        let now = world.now_ms();
        for (time, sender) in [
            (now - 1, "byeol"),
            (now + 1, "byeol"),
            (now, "haneul"),
            (now, "missing"),
            (0, "byeol"),
            (253_402_300_799_999, "byeol"),
        ] {
            let answer = world.blind_message(&tokens.access, "chat-haneul", time, sender).await;
            answer.assert_refused(404, "NOT_FOUND");
        }
        world.blind_message(&tokens.access, "chat-haneul", now, "byeol").await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_streamer_may_hide_messages() {
    both(Setup::default(), |world| async move {
        let Fixture { app, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let viewers = world.sign_in(&app, &viewer).await;
        let id = world.say("haneul", "byeol", "안녕").await.content()["messageId"].clone();
        let now = world.now_ms();
        for (token, chat) in [
            (&viewers.access, "chat-haneul"),
            (&tokens.access, "chat-byeol"),
            (&tokens.access, "haneul"),
            (&tokens.access, "chat-missing"),
            (&tokens.access, ""),
        ] {
            let answer = world.blind_message(token, chat, now, "byeol").await;
            answer.assert_refused(400, &wrong("chatChannelId", OWN_CHAT));
        }
        let app = world.application("reader").scopes(&[Scope::ChatRead]).create().await;
        let reader = world.sign_in(&app, &viewer).await;
        world
            .blind_message(&reader.access, "chat-haneul", now, "byeol")
            .await
            .assert_refused(403, "FORBIDDEN");
        world.put_notice(&tokens.access, &json!({ "messageId": id })).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_is_an_integer_in_milliseconds() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let range = wrong("messageTime", "0 이상 253402300799999 이하의 정수여야 합니다.");
        for time in [
            json!(-1),
            json!(253_402_300_800_000_i64),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(1.5),
            json!(1e30),
            json!("1784385132345"),
            json!(true),
        ] {
            let body =
                json!({ "chatChannelId": "chat-haneul", "messageTime": time, "senderChannelId": "byeol" });
            let request = Request::post("/open/v1/chats/blind-message").bearer(&tokens.access).json(&body);
            world.send(request).await.assert_refused(400, &range);
        }
    })
    .await;
}

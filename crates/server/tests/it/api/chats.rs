//! Chat (`docs/spec/chat.md#messages`, `docs/spec/rest.md#text`).

use std::collections::HashSet;

use serde_json::{Value, json};
use testkit::{Request, Setup, both};

use crate::fixture::{Fixture, wrong};

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_message_is_the_owners_and_arrives_unchanged() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        world.person(&streamer.channel_id).name("하늘").with("verifiedMark", true).create().await;
        let mut socket = world.open_client_session(&app).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;

        let text = " 안녕하세요 👋🏽 \"<&>\\ \u{2028}é\t끝 ";
        let sent = world.send_chat(&tokens.access, text).await;
        let content = sent.content();
        let message_id = content["messageId"].as_str().expect("a text");
        assert_eq!(
            sent.text(),
            format!(r#"{{"code":200,"message":null,"content":{{"messageId":"{message_id}"}}}}"#)
        );
        assert_eq!(
            socket.event("CHAT").await,
            json!({
                "channelId": "haneul",
                "senderChannelId": "haneul",
                "chatChannelId": "chat-haneul",
                "profile": {
                    "nickname": "하늘",
                    "badges": [{ "imageUrl": world.picture("badge-streamer") }],
                    "verifiedMark": true,
                },
                "userRoleCode": "streamer",
                "content": text,
                "emojis": {},
                "messageTime": world.now_ms(),
            })
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_1_to_100_code_points() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let rule = "1자 이상 100자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.";
        for (message, fits) in [
            ("a".to_owned(), true),
            ("가".repeat(100), true),
            ("👋".repeat(100), true),
            // One visible emoji has seven code points.
            ("👨‍👩‍👧‍👦".repeat(14), true),
            ("👨‍👩‍👧‍👦".repeat(15), false),
            ("가".repeat(101), false),
            ("👋".repeat(101), false),
            (format!("{}\n", "a".repeat(100)), false),
            (String::new(), false),
            ("   \t\n\u{3000}".to_owned(), false),
        ] {
            let answer = world.send_chat(&tokens.access, &message).await;
            if fits {
                assert!(answer.content()["messageId"].is_string(), "{message}");
            } else {
                answer.assert_refused(400, &wrong("message", rule));
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_has_its_own_id_and_messages_arrive_in_order() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let mut ids = HashSet::new();
        for n in 0..50 {
            let content = world.send_chat(&tokens.access, &format!("message {n}")).await.content();
            ids.insert(content["messageId"].as_str().expect("a text").to_owned());
        }
        assert_eq!(ids.len(), 50);
        for n in 0..50 {
            assert_eq!(socket.event("CHAT").await["content"], format!("message {n}"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_concurrent_messages_are_recorded_once_each() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let senders = (0..100).map(|n| {
            let (world, token) = (world.clone(), tokens.access.clone());
            tokio::spawn(async move { world.send_chat(&token, &n.to_string()).await.content() })
        });
        for sender in senders.collect::<Vec<_>>() {
            sender.await.expect("every sender gets its answer");
        }
        let mut arrived = HashSet::new();
        for _ in 0..100 {
            arrived.insert(socket.event("CHAT").await["content"].as_str().expect("a text").to_owned());
        }
        assert_eq!(arrived.len(), 100);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn badges_come_from_the_platform_or_from_role_and_subscription() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let picture = |name: &str| json!({ "imageUrl": world.picture(&format!("badge-{name}")) });
        let own = json!([{ "imageUrl": "https://images.example/vip.png" }]);
        let say = |badges: Value| {
            let mut body = json!({ "senderChannelId": "byeol", "message": "안녕" });
            if !badges.is_null() {
                body["badges"] = badges;
            }
            body
        };
        let mut expected = Vec::new();
        let mut post = async |body: &Value, badges: Value| {
            world.happen("haneul", "chats", body).await.content();
            expected.push(badges);
        };
        post(&say(Value::Null), json!([])).await;
        post(&say(own.clone()), own.clone()).await;
        let paid = json!({ "subscriberChannelId": "byeol", "tierNo": 1, "tierName": "별단", "month": 1 });
        world.happen("haneul", "subscriptions", &paid).await.content();
        post(&say(Value::Null), json!([picture("subscriber")])).await;
        for (role, name) in
            [("STREAMING_CHAT_MANAGER", "chat-manager"), ("STREAMING_CHANNEL_MANAGER", "channel-manager")]
        {
            let put = Request::put("/platform/v1/channels/haneul/managers/byeol");
            world.operator(put.json(&json!({ "userRole": role }))).await.content();
            post(&say(Value::Null), json!([picture(name), picture("subscriber")])).await;
        }
        post(&say(json!([])), json!([])).await;
        post(&json!({ "senderChannelId": "haneul", "message": "네" }), json!([picture("streamer")])).await;
        // The same in bulk.
        let lines = [say(own.clone()), say(Value::Null)].map(|mut line| {
            line["kind"] = json!("chat");
            line["channelId"] = json!("haneul");
            format!("{line}\n")
        });
        let bulk = Request::post("/platform/v1/events").body(lines.concat());
        assert_eq!(world.operator(bulk).await.content()["refusedCount"], 0);
        expected.extend([own, json!([picture("channel-manager"), picture("subscriber")])]);
        for badges in expected {
            assert_eq!(socket.event("CHAT").await["profile"]["badges"], badges);
        }
        let eleven = json!(vec![json!({ "imageUrl": "https://images.example/b.png" }); 11]);
        let address = "http 또는 https 주소여야 합니다.";
        for (badges, rule) in [
            (json!("x"), "JSON 객체의 목록이어야 합니다."),
            (json!(["x"]), "JSON 객체의 목록이어야 합니다."),
            (json!([{}]), "필수 값입니다."),
            (json!([{ "imageUrl": 1 }]), "문자열이어야 합니다."),
            (json!([{ "imageUrl": "ftp://x" }]), address),
            (eleven, "0개 이상 10개 이하여야 합니다."),
        ] {
            let answer = world.happen("haneul", "chats", &say(badges)).await;
            assert!(
                answer.status == 400 && answer.text().contains(&wrong("badges", rule)),
                "{}",
                answer.text()
            );
        }
        socket.ping().await;
    })
    .await;
}

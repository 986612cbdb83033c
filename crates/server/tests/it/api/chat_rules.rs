//! The rules that refuse a viewer's message (`docs/spec/chat.md#viewers`), over the platform API. The
//! service's own tests cover the boundaries of each rule. These tests cover the way from the setting to the
//! answer and the sockets.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Request, Response, Setup, Socket, World, both};
use tokio::task::JoinSet;

use crate::fixture::Fixture;

/// A socket that receives the streamer's chat.
async fn listening(world: &World, fixture: &Fixture) -> Socket {
    let mut socket = world.open_user_session(&fixture.tokens.access).await;
    world.subscribe(&fixture.tokens.access, "chat", socket.session_key()).await.content();
    socket.system("subscribed").await;
    socket
}

async fn set(world: &World, fixture: &Fixture, settings: Value) {
    world.change_chat_settings(&fixture.tokens.access, &settings).await.content();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_rule_and_the_message_is_not_delivered() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listening(&world, &fixture).await;
        let open = json!({
            "chatAvailableCondition": "NONE", "chatAvailableGroup": "ALL", "chatEmojiMode": false, "chatSlowModeSec": 0,
        });
        for (setting, text, rule) in [
            (json!({ "chatAvailableCondition": "REAL_NAME" }), "안녕", "본인인증이 필요한 채팅입니다."),
            (json!({ "chatAvailableGroup": "FOLLOWER" }), "안녕", "팔로워만 채팅할 수 있습니다."),
            (json!({ "chatAvailableGroup": "MANAGER" }), "안녕", "매니저만 채팅할 수 있습니다."),
            (json!({ "chatAvailableGroup": "SUBSCRIBER" }), "안녕", "구독자만 채팅할 수 있습니다."),
            (json!({ "chatEmojiMode": true }), "안녕 👋", "이모티콘만 사용할 수 있습니다."),
        ] {
            set(&world, &fixture, setting).await;
            world.say("haneul", "byeol", text).await.assert_refused(403, rule);
            // The refused message was not delivered before this one. The streamer is exempt.
            world.send_chat(&fixture.tokens.access, "저는 됩니다").await.content();
            assert_eq!(socket.event("CHAT").await["senderChannelId"], "haneul", "{rule}");
            world.say("haneul", "haneul", "여기서도").await.content();
            assert_eq!(socket.event("CHAT").await["content"], "여기서도");
            set(&world, &fixture, open.clone()).await;
            world.say("haneul", "byeol", text).await.content();
            assert_eq!(socket.event("CHAT").await["senderChannelId"], "byeol", "{rule}");
        }
        socket.ping().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_who_fulfils_the_settings_may_chat() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let say = async |text: &str| world.say("haneul", "byeol", text).await.status;
        set(&world, &fixture, json!({ "chatAvailableCondition": "REAL_NAME" })).await;
        assert_eq!(say("a").await, 403);
        world.person("byeol").with("realNameVerified", true).create().await;
        assert_eq!(say("a").await, 200);

        set(&world, &fixture, json!({ "chatAvailableGroup": "SUBSCRIBER" })).await;
        assert_eq!(say("a").await, 403);
        let paid = json!({ "subscriberChannelId": "byeol", "tierNo": 1, "tierName": "팬", "month": 1 });
        world.happen("haneul", "subscriptions", &paid).await.content();
        assert_eq!(say("a").await, 200);

        // The viewer does not follow, but follower mode may exempt subscribers.
        set(&world, &fixture, json!({ "chatAvailableGroup": "FOLLOWER", "minFollowerMinute": 259_200 })).await;
        assert_eq!(say("a").await, 403);
        set(&world, &fixture, json!({ "allowSubscriberInFollowerMode": true })).await;
        assert_eq!(say("a").await, 200);

        set(&world, &fixture, json!({ "chatEmojiMode": true })).await;
        assert_eq!((say("a").await, say("👋🏽 👨‍👩‍👧‍👦").await), (403, 200));
        let emoji = |emojis: Value| {
            json!({ "senderChannelId": "byeol", "message": "{:hi:} {:hi:}", "emojis": emojis })
        };
        let known = emoji(json!({ "{:hi:}": "https://e.example/hi.png" }));
        assert_eq!(world.happen("haneul", "chats", &known).await.status, 200);
        assert_eq!(world.happen("haneul", "chats", &emoji(json!({}))).await.status, 403);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_wait_their_minutes_and_managers_are_exempt() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let path = |what: &str| format!("/platform/v1/channels/haneul/{what}/byeol");
        let follow = json!({ "createdDate": "2026-07-18T14:30:00.000Z" });
        world.operator(Request::put(path("followers")).json(&follow)).await.content();
        // They have followed for 132.345 seconds.
        set(&world, &fixture, json!({ "chatAvailableGroup": "FOLLOWER", "minFollowerMinute": 5 })).await;
        let rule =
            |seconds: i64| format!("팔로우한 지 일정 시간이 지나야 채팅할 수 있습니다. ({seconds}초 남음)");
        world.say("haneul", "byeol", "안녕").await.assert_refused(403, &rule(168));
        world.advance(Duration::from_millis(167_654));
        world.say("haneul", "byeol", "안녕").await.assert_refused(403, &rule(1));
        world.advance(Duration::from_millis(1));
        world.say("haneul", "byeol", "안녕").await.content();
        world.operator(Request::new("DELETE", path("followers"))).await.content();
        let follower = "팔로워만 채팅할 수 있습니다.";
        world.say("haneul", "byeol", "안녕").await.assert_refused(403, follower);

        set(&world, &fixture, json!({ "chatSlowModeSec": 300, "chatEmojiMode": true })).await;
        for role in ["STREAMING_CHANNEL_MANAGER", "STREAMING_CHAT_MANAGER", "STREAMING_SETTLEMENT_MANAGER"] {
            let body = json!({ "userRole": role });
            world.operator(Request::put(path("managers")).json(&body)).await.content();
            for _ in 0..2 {
                world.say("haneul", "byeol", role).await.content();
            }
            for method in ["POST", "DELETE"] {
                let rule = crate::fixture::wrong(
                    "targetChannelId",
                    "채널 관리자 계정은 제한하거나 해제할 수 없습니다.",
                );
                let token = &fixture.tokens.access;
                world.restriction(method, token, "byeol").await.assert_refused(400, &rule);
                let temporary = world.temporary_restriction(method, token, "byeol", "chat-haneul").await;
                temporary.assert_refused(400, &rule);
            }
        }
        world.operator(Request::new("DELETE", path("managers"))).await.content();
        world.say("haneul", "byeol", "안녕").await.assert_refused(403, follower);
        world.restriction("POST", &fixture.tokens.access, "byeol").await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_mode_returns_the_remaining_seconds_rounded_up() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listening(&world, &fixture).await;
        let slow = |seconds: i64| format!("저속 모드입니다. ({seconds}초 남음)");
        let step = |ms| world.advance(Duration::from_millis(ms));
        set(&world, &fixture, json!({ "chatSlowModeSec": 3 })).await;
        world.say("haneul", "byeol", "첫째").await.content();
        socket.event("CHAT").await;
        for (ms, left) in [(0, 3), (1, 3), (999, 2), (1_000, 1), (999, 1)] {
            step(ms);
            world.say("haneul", "byeol", "너무 일러요").await.assert_refused(403, &slow(left));
        }
        step(1);
        world.say("haneul", "byeol", "둘째").await.content();
        assert_eq!(socket.event("CHAT").await["content"], "둘째");
        world.say("byeol", "byeol", "제 채팅").await.content();
        for _ in 0..3 {
            world.send_chat(&fixture.tokens.access, "스트리머").await.content();
            socket.event("CHAT").await;
        }
        socket.ping().await;
    })
    .await;
}

async fn keyed(world: &World, key: &str) -> Response {
    let request = Request::post("/platform/v1/channels/haneul/chats").header("Idempotency-Key", key);
    world.operator(request.json(&json!({ "senderChannelId": "byeol", "message": "안녕" }))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_keeps_its_key_unused_and_a_repeated_one_counts_once() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listening(&world, &fixture).await;
        set(&world, &fixture, json!({ "chatAvailableGroup": "MANAGER" })).await;
        keyed(&world, "key").await.assert_refused(403, "매니저만 채팅할 수 있습니다.");
        set(&world, &fixture, json!({ "chatAvailableGroup": "ALL", "chatSlowModeSec": 30 })).await;
        let first = keyed(&world, "key").await;
        first.content();
        socket.event("CHAT").await;
        assert_eq!(keyed(&world, "key").await.text(), first.text(), "the first answer, not a refusal");
        keyed(&world, "another").await.assert_refused(403, "저속 모드입니다. (30초 남음)");
        world.advance(Duration::from_secs(30));
        keyed(&world, "another").await.content();
        socket.event("CHAT").await;
        socket.ping().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_mode_accepts_one_of_50_concurrent_messages() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listening(&world, &fixture).await;
        set(&world, &fixture, json!({ "chatSlowModeSec": 3 })).await;
        for _ in 0..2 {
            let mut calls = JoinSet::new();
            for _ in 0..50 {
                let world = world.clone();
                calls.spawn(async move { world.say("haneul", "byeol", "안녕").await });
            }
            let (through, refused): (Vec<_>, Vec<_>) =
                calls.join_all().await.into_iter().partition(|answer| answer.status == 200);
            assert_eq!(through.len(), 1);
            for refused in refused {
                refused.assert_refused(403, "저속 모드입니다. (3초 남음)");
            }
            socket.event("CHAT").await;
            socket.ping().await;
            world.advance(Duration::from_secs(3));
        }
    })
    .await;
}

//! Restriction of channels (`docs/spec/restriction.md`).

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both};
use tokio::task::JoinSet;

use crate::fixture::{Fixture, wrong};

const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;
const NO_SUCH_USER: &str = "존재하지 않는 사용자입니다.";
const ONESELF: &str = "자신은 제한할 수 없습니다.";
const CURSOR: &str = "같은 목록의 이전 응답에서 받은 값이어야 합니다.";
const CHAT: &str = "chat-haneul";

#[track_caller]
fn assert_target_refused(answer: &Response, rule: &str) {
    answer.assert_refused(400, &wrong("targetChannelId", rule));
}

/// Makes a call of either kind, about a channel in the streamer's chat.
async fn call(world: &World, temporary: bool, method: &str, token: &str, target: &str) -> Response {
    if temporary {
        world.temporary_restriction(method, token, target, CHAT).await
    } else {
        world.restriction(method, token, target).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restricted_viewer_cannot_chat_until_released() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let answer = world.restriction("POST", &tokens.access, "byeol").await;
        assert_eq!((answer.status, answer.text()), (200, NOTHING));
        world.say("haneul", "byeol", "안녕").await.assert_refused(403, "활동제한된 사용자입니다.");
        socket.ping().await;
        // The restriction applies only to chat, and only to this chat.
        world.say("byeol", "byeol", "제 채팅").await.content();
        let donation = json!({ "donationType": "CHAT", "payAmount": "1", "donatorChannelId": "byeol" });
        world.happen("haneul", "donations", &donation).await.content();
        let answer = world.restriction("DELETE", &tokens.access, "byeol").await;
        assert_eq!((answer.status, answer.text()), (200, NOTHING));
        world.say("haneul", "byeol", "돌아왔어요").await.content();
        assert_eq!(socket.event("CHAT").await["content"], "돌아왔어요");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_restriction_ends_by_itself_after_60_seconds() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let step = |ms| world.advance(Duration::from_millis(ms));
        let left = |seconds: i64| format!("임시제한된 사용자입니다. ({seconds}초 남음)");
        let restrict = || world.temporary_restriction("POST", &tokens.access, "byeol", CHAT);
        let release = || world.temporary_restriction("DELETE", &tokens.access, "byeol", CHAT);
        let already = "이미 임시제한된 사용자입니다.";
        let not_restricted = "임시제한된 사용자가 아닙니다.";
        for _ in 0..2 {
            let answer = restrict().await;
            assert_eq!((answer.status, answer.text()), (200, NOTHING));
            for (ms, seconds) in [(0, 60), (1, 60), (999, 59), (58_999, 1)] {
                step(ms);
                world.say("haneul", "byeol", "안녕").await.assert_refused(403, &left(seconds));
                assert_target_refused(&restrict().await, already);
            }
            step(1);
            assert_target_refused(&release().await, not_restricted);
            world.say("haneul", "byeol", "안녕").await.content();
        }
        restrict().await.content();
        let answer = release().await;
        assert_eq!((answer.status, answer.text()), (200, NOTHING));
        world.say("haneul", "byeol", "안녕").await.content();
        assert_target_refused(&release().await, not_restricted);
        restrict().await.content();
    })
    .await;
}

/// Whether a message can be pinned. A hidden message cannot.
async fn is_seen(world: &World, token: &str, message: &Value) -> bool {
    let answer = world.put_notice(token, &json!({ "messageId": message["messageId"] })).await;
    match answer.status {
        200 => true,
        status => {
            assert_eq!(status, 404);
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_restriction_hides_the_messages_of_the_last_minute() {
    both(Setup::default(), |world| async move {
        let Fixture { app, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let viewers = world.sign_in(&app, &viewer).await;
        let mut posted = Vec::new();
        let elsewhere = world.say("byeol", "byeol", "제 채팅").await.content();
        let by_streamer = world.say("haneul", "haneul", "안녕").await.content();
        for ms in [0, 1, 59_999, 0] {
            world.advance(Duration::from_millis(ms));
            posted.push(world.say("haneul", "byeol", "안녕").await.content());
        }
        // The messages are 60.000, 59.999 and twice 0 seconds old.
        world.temporary_restriction("POST", &tokens.access, "byeol", CHAT).await.content();
        let token = &tokens.access;
        let mut seen = Vec::new();
        for message in &posted {
            seen.push(is_seen(&world, token, message).await);
        }
        assert_eq!(seen, [false; 4]);
        assert!(is_seen(&world, token, &by_streamer).await);
        assert!(is_seen(&world, &viewers.access, &elsewhere).await);
        world.temporary_restriction("DELETE", token, "byeol", CHAT).await.content();
        assert!(!is_seen(&world, token, &posted[3]).await, "hidden for good");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_older_than_a_minute_stay_visible() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let old = world.say("haneul", "byeol", "안녕").await.content();
        world.advance(Duration::from_millis(1));
        let young = world.say("haneul", "byeol", "안녕").await.content();
        world.advance(Duration::from_millis(60_000));
        world.temporary_restriction("POST", &tokens.access, "byeol", CHAT).await.content();
        assert!(is_seen(&world, &tokens.access, &old).await, "60.001 seconds old");
        assert!(!is_seen(&world, &tokens.access, &young).await, "60.000 seconds old");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_target_is_a_wrong_value_for_both_kinds() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let malformed = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
        for temporary in [false, true] {
            for method in ["POST", "DELETE"] {
                for (target, rule) in [
                    ("missing", NO_SUCH_USER),
                    ("haneul", ONESELF),
                    ("HANEUL", NO_SUCH_USER),
                    ("", malformed),
                    ("a b", malformed),
                    ("한글", malformed),
                ] {
                    let answer = call(&world, temporary, method, &tokens.access, target).await;
                    assert_target_refused(&answer, rule);
                }
            }
        }
        for (temporary, not_restricted, already) in [
            (false, "활동제한된 사용자가 아닙니다.", "이미 활동제한된 사용자입니다."),
            (true, "임시제한된 사용자가 아닙니다.", "이미 임시제한된 사용자입니다."),
        ] {
            let call = |method| call(&world, temporary, method, &tokens.access, "byeol");
            assert_target_refused(&call("DELETE").await, not_restricted);
            call("POST").await.content();
            assert_target_refused(&call("POST").await, already);
            call("DELETE").await.content();
            assert_target_refused(&call("DELETE").await, not_restricted);
            call("POST").await.content();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_who_became_a_manager_can_be_released() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let manager = "채널 관리자 계정은 제한하거나 해제할 수 없습니다.";
        for temporary in [false, true] {
            let call = |method| call(&world, temporary, method, &tokens.access, "byeol");
            call("POST").await.content();
            let role = json!({ "userRole": "STREAMING_CHAT_MANAGER" });
            let managers = || "/platform/v1/channels/haneul/managers/byeol";
            world.operator(Request::put(managers()).json(&role)).await.content();
            assert_target_refused(&call("POST").await, manager);
            call("DELETE").await.content();
            assert_target_refused(&call("DELETE").await, manager);
            world.operator(Request::delete(managers())).await.content();
            world.say("haneul", "byeol", "안녕").await.content();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_restriction_is_for_the_callers_own_chat() {
    both(Setup::default(), |world| async move {
        let Fixture { app, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let viewers = world.sign_in(&app, &viewer).await;
        for method in ["POST", "DELETE"] {
            for (token, target, chat) in [
                (&tokens.access, "haneul", "chat-byeol"),
                (&tokens.access, "byeol", "chat-byeol"),
                (&tokens.access, "missing", "chat-byeol"),
                (&viewers.access, "haneul", CHAT),
            ] {
                let answer = world.temporary_restriction(method, token, target, chat).await;
                answer.assert_refused(403, "FORBIDDEN");
            }
            for chat in ["chat-missing", "haneul", "byeol", "chat-", "", "CHAT-haneul", "chat-haneul "] {
                let answer = world.temporary_restriction(method, &tokens.access, "byeol", chat).await;
                answer.assert_refused(400, &wrong("chatChannelId", "존재하지 않는 채팅 채널입니다."));
            }
        }
        world.say("haneul", "byeol", "안녕").await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_100_concurrent_calls_succeeds_and_the_others_have_a_reason() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        for (temporary, method, rule) in [
            (false, "POST", "이미 활동제한된 사용자입니다."),
            (false, "DELETE", "활동제한된 사용자가 아닙니다."),
            (true, "POST", "이미 임시제한된 사용자입니다."),
            (true, "DELETE", "임시제한된 사용자가 아닙니다."),
        ] {
            let mut calls = JoinSet::new();
            for _ in 0..100 {
                let (world, token) = (world.clone(), tokens.access.clone());
                calls.spawn(async move { call(&world, temporary, method, &token, "byeol").await });
            }
            let (done, refused): (Vec<_>, Vec<_>) =
                calls.join_all().await.into_iter().partition(|answer| answer.status == 200);
            assert_eq!(done.len(), 1, "{method} {temporary}");
            for refused in refused {
                assert_target_refused(&refused, rule);
            }
        }
    })
    .await;
}

/// Restricts this many channels, `v00` first, with a second after every other one.
async fn restrict_many(world: &World, token: &str, count: usize) {
    for n in 0..count {
        let id = format!("v{n:02}");
        let body = json!({ "channelName": format!("시청자 {n}") });
        world
            .operator(testkit::Request::put(format!("/platform/v1/channels/{id}")).json(&body))
            .await
            .content();
        world.restriction("POST", token, &id).await.content();
        if n % 2 == 1 {
            world.advance(Duration::from_secs(1));
        }
    }
}

fn ids(page: &Value) -> Vec<String> {
    let data = page["data"].as_array().expect("a list");
    data.iter().map(|item| item["restrictedChannelId"].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_newest_first_and_ends_with_null() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let token = &tokens.access;
        let empty = r#"{"code":200,"message":null,"content":{"data":[],"page":{"next":null}}}"#;
        assert_eq!(world.restricted(token, "").await.text(), empty);
        world.temporary_restriction("POST", token, "byeol", CHAT).await.content();
        assert_eq!(world.restricted(token, "").await.text(), empty, "activity restrictions only");
        world.restriction("POST", token, "byeol").await.content();
        assert_eq!(
            world.restricted(token, "size=1").await.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"data":[{"restrictedChannelId":"byeol","#,
                r#""restrictedChannelName":"별이","createdDate":"2026-07-18T14:32:12.345Z","releaseDate":null}],"#,
                r#""page":{"next":null}}}"#
            )
        );
        world.restriction("DELETE", token, "byeol").await.content();
        world.advance(Duration::from_secs(1));
        restrict_many(&world, token, 31).await;
        let all: Vec<String> = (0..31).rev().map(|n| format!("v{n:02}")).collect();
        for size in [1, 2, 7, 29, 30] {
            let (mut next, mut walked) = (String::new(), Vec::new());
            loop {
                let page = world.restricted(token, &format!("size={size}{next}")).await.content();
                walked.extend(ids(&page));
                match &page["page"]["next"] {
                    Value::String(cursor) => next = format!("&next={cursor}"),
                    Value::Null => break,
                    other => panic!("no cursor: {other}"),
                }
                assert_eq!(walked.len() % size, 0, "full pages but the last");
            }
            assert_eq!(walked, all, "in pages of {size}");
        }
        assert_eq!(ids(&world.restricted(token, "").await.content()).len(), 30, "by default");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_skips_and_repeats_no_channel_while_the_list_changes() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let token = &tokens.access;
        restrict_many(&world, token, 6).await;
        let first = world.restricted(token, "size=2").await.content();
        assert_eq!(ids(&first), ["v05", "v04"]);
        // A channel before the cursor, one at the cursor and one after it are released, and a new one is
        // restricted.
        for gone in ["v05", "v04", "v02"] {
            world.restriction("DELETE", token, gone).await.content();
        }
        world.restriction("POST", token, "byeol").await.content();
        let next = first["page"]["next"].as_str().expect("a cursor");
        let second = world.restricted(token, &format!("size=2&next={next}")).await.content();
        assert_eq!(ids(&second), ["v03", "v01"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_and_cursors_are_checked() {
    both(Setup::default(), |world| async move {
        let Fixture { app, viewer, tokens, streamer, .. } = Fixture::set_up(&world).await;
        let token = &tokens.access;
        restrict_many(&world, token, 3).await;
        let sizes = wrong("size", "1 이상 30 이하의 정수여야 합니다.");
        for size in ["0", "31", "-1", "", "x", "1.0", "99999999999999999999"] {
            world.restricted(token, &format!("size={size}")).await.assert_refused(400, &sizes);
        }
        let once = wrong("next", "한 번만 지정할 수 있습니다.");
        world.restricted(token, "next=a&next=b").await.assert_refused(400, &once);

        let page = world.restricted(token, "size=1").await.content();
        let cursor = page["page"]["next"].as_str().expect("a cursor").to_owned();
        assert!(cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{cursor}");
        let refused = wrong("next", CURSOR);
        for cut in 0..cursor.len() {
            let query = format!("next={}", &cursor[..cut]);
            world.restricted(token, &query).await.assert_refused(400, &refused);
        }
        for at in 0..cursor.len() {
            let mut flipped = cursor.clone();
            flipped.replace_range(at..=at, if &cursor[at..=at] == "A" { "B" } else { "A" });
            world.restricted(token, &format!("next={flipped}")).await.assert_refused(400, &refused);
        }
        for text in [format!("{cursor}A"), "%00".into(), "%27%20OR%201%3D1".into(), "A".repeat(4_000)] {
            assert_eq!(world.restricted(token, &format!("next={text}")).await.status, 400, "{text}");
        }
        // Cursors of another user, and of the same user through another application.
        let viewers = world.sign_in(&app, &viewer).await;
        let other = world.application("other").create().await;
        let elsewhere = world.sign_in(&other, &streamer).await;
        for borrower in [&viewers.access, &elsewhere.access] {
            world.restricted(borrower, &format!("next={cursor}")).await.assert_refused(400, &refused);
        }
        // The cursor is valid for any size, and more than once.
        for size in [1, 30, 1] {
            let page = world.restricted(token, &format!("size={size}&next={cursor}")).await.content();
            assert_eq!(ids(&page)[0], "v01");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_have_the_spelling_of_the_profile() {
    let observed = Setup { profile: domain::Profile::Observed, ..Setup::default() };
    both(observed, |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        world.restriction("POST", &tokens.access, "byeol").await.content();
        let page = world.restricted(&tokens.access, "").await.content();
        assert_eq!(page["data"][0]["createdDate"], "2026-07-18 23:32:12");
        assert_eq!(page["data"][0]["releaseDate"], Value::Null);
    })
    .await;
}

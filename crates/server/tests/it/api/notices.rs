//! Notices (`docs/spec/chat.md#notice`).

use serde_json::{Value, json};
use testkit::{Setup, both};

use crate::fixture::{Fixture, wrong};

const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_is_a_text_or_a_message_of_the_chat() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let posted = world.say("haneul", "byeol", "안녕").await.content();
        for notice in [
            json!({ "message": "공지" }),
            json!({ "message": "가".repeat(100) }),
            json!({ "message": "x", "messageId": null }),
            json!({ "messageId": posted["messageId"] }),
            json!({ "messageId": posted["messageId"], "message": null }),
        ] {
            let answer = world.put_notice(&tokens.access, &notice).await;
            assert_eq!((answer.status, answer.text()), (200, NOTHING), "{notice}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_has_exactly_one_of_the_two_fields() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let id = world.say("haneul", "byeol", "안녕").await.content()["messageId"].clone();
        let either = "이 값과 messageId 중 하나만 지정해야 합니다.";
        let long = "1자 이상 100자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.";
        let malformed = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
        let text = "문자열이어야 합니다.";
        for (body, field, rule) in [
            (json!({}), "message", either),
            (json!({ "message": null, "messageId": null }), "message", either),
            (json!({ "message": "x", "messageId": id }), "message", either),
            (json!({ "message": "", "messageId": id }), "message", either),
            (json!({ "message": "가".repeat(101) }), "message", long),
            (json!({ "message": " \t" }), "message", long),
            (json!({ "message": "" }), "message", long),
            (json!({ "message": 1 }), "message", text),
            (json!({ "messageId": 1 }), "messageId", text),
            (json!({ "messageId": "" }), "messageId", malformed),
            (json!({ "messageId": "a b" }), "messageId", malformed),
            (json!({ "messageId": "x".repeat(65) }), "messageId", malformed),
        ] {
            let answer = world.put_notice(&tokens.access, &body).await;
            assert_eq!((answer.status, answer.message()), (400, wrong(field, rule)), "{body}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_not_visible_in_the_chat_is_not_found() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let elsewhere = world.say("byeol", "byeol", "안녕").await.content();
        let hidden = world.say("haneul", "byeol", "안녕").await.content();
        world.blind_message(&tokens.access, "chat-haneul", world.now_ms(), "byeol").await.content();
        let mut unknown = hidden["messageId"].as_str().expect("a text").to_owned();
        unknown.replace_range(31.., if unknown.ends_with('0') { "1" } else { "0" });
        for id in [&elsewhere["messageId"], &hidden["messageId"], &Value::from(unknown), &json!("nothing")] {
            let answer = world.put_notice(&tokens.access, &json!({ "messageId": id })).await;
            answer.assert_refused(404, "NOT_FOUND");
        }
    })
    .await;
}

//! Chat settings (`docs/spec/chat.md#settings`).

use serde_json::{Value, json};
use testkit::{Setup, both};
use tokio::task::JoinSet;

use crate::fixture::{Fixture, wrong};

const MINUTES: [i64; 13] = [0, 5, 10, 30, 60, 1440, 10080, 43200, 86400, 129600, 172800, 216000, 259200];
const SLOW: [i64; 8] = [0, 3, 5, 10, 30, 60, 120, 300];
const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_chat_is_open_to_all() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        assert_eq!(
            world.chat_settings(&tokens.access).await.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"chatAvailableCondition":"NONE","#,
                r#""chatAvailableGroup":"ALL","minFollowerMinute":0,"allowSubscriberInFollowerMode":false,"#,
                r#""chatSlowModeSec":0,"chatEmojiMode":false}}"#
            )
        );
    })
    .await;
}

/// Every field with all its allowed values.
fn allowed() -> Vec<(&'static str, Value)> {
    let names =
        |field, names: &[&str]| names.iter().map(move |name| (field, json!(name))).collect::<Vec<_>>();
    let numbers =
        |field, numbers: &[i64]| numbers.iter().map(move |number| (field, json!(number))).collect::<Vec<_>>();
    let flags = |field| vec![(field, json!(true)), (field, json!(false))];
    [
        names("chatAvailableCondition", &["REAL_NAME", "NONE"]),
        names("chatAvailableGroup", &["FOLLOWER", "MANAGER", "SUBSCRIBER", "ALL"]),
        numbers("minFollowerMinute", &MINUTES),
        flags("allowSubscriberInFollowerMode"),
        numbers("chatSlowModeSec", &SLOW),
        flags("chatEmojiMode"),
    ]
    .concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_allowed_value_can_be_set_and_only_what_is_given_changes() {
    both(Setup::default(), |world| async move {
        let Fixture { app, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let other = world.sign_in(&app, &viewer).await;
        let before = world.chat_settings(&other.access).await.content();
        let mut expected = world.chat_settings(&tokens.access).await.content();
        for (field, value) in allowed() {
            expected[field] = value.clone();
            let answer = world.change_chat_settings(&tokens.access, &json!({ field: value })).await;
            assert_eq!((answer.status, answer.text()), (200, NOTHING), "{field}");
            assert_eq!(world.chat_settings(&tokens.access).await.content(), expected, "{field}");
        }
        for nothing in [json!({}), json!({ "chatEmojiMode": null, "unknown": 1 })] {
            assert_eq!(world.change_chat_settings(&tokens.access, &nothing).await.text(), NOTHING);
            assert_eq!(world.chat_settings(&tokens.access).await.content(), expected);
        }
        let all = json!({
            "chatAvailableCondition": "REAL_NAME", "chatAvailableGroup": "SUBSCRIBER", "minFollowerMinute": 259200,
            "allowSubscriberInFollowerMode": true, "chatSlowModeSec": 300, "chatEmojiMode": true,
        });
        world.change_chat_settings(&tokens.access, &all).await.content();
        assert_eq!(world.chat_settings(&tokens.access).await.content(), all);
        assert_eq!(world.chat_settings(&other.access).await.content(), before, "another's chat");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_setting_is_refused_with_its_allowed_values_and_changes_nothing() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let before = world.chat_settings(&tokens.access).await.content();
        let list = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let one_of = |values: &str| format!("{values} 중 하나여야 합니다.");
        let (minutes, slow) = (one_of(&list(&MINUTES)), one_of(&list(&SLOW)));
        let condition = one_of("NONE, REAL_NAME");
        let group = one_of("ALL, FOLLOWER, MANAGER, SUBSCRIBER");
        let flag = "true 또는 false여야 합니다.".to_owned();
        let not_names =
            [json!(""), json!("none"), json!("ALL "), json!("ANY"), json!(0), json!(["ALL"]), json!(true)];
        let not_numbers = [
            json!(-1),
            json!(1),
            json!(4),
            json!(259201),
            json!(301),
            json!(i64::MAX),
            json!(u64::MAX),
            json!(5.0),
            json!("5"),
            json!([5]),
            json!({}),
            json!(false),
        ];
        let not_flags = [json!(0), json!(1), json!("true"), json!(""), json!([]), json!({})];
        for (field, rule, values) in [
            ("chatAvailableCondition", &condition, &not_names[..]),
            ("chatAvailableGroup", &group, &not_names[..]),
            ("minFollowerMinute", &minutes, &not_numbers[..]),
            ("chatSlowModeSec", &slow, &not_numbers[..]),
            ("allowSubscriberInFollowerMode", &flag, &not_flags[..]),
            ("chatEmojiMode", &flag, &not_flags[..]),
        ] {
            for value in values {
                // The valid fields of the same request do not change either.
                let body = json!({ "chatAvailableGroup": "MANAGER", "chatSlowModeSec": 3, field: value });
                let answer = world.change_chat_settings(&tokens.access, &body).await;
                assert_eq!((answer.status, answer.message()), (400, wrong(field, rule)), "{value}");
            }
        }
        assert_eq!(world.chat_settings(&tokens.access).await.content(), before);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_different_fields_are_all_kept() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        for (round, flag) in [(0, true), (1, false), (2, true), (3, false)] {
            let expected = json!({
                "chatAvailableCondition": if flag { "REAL_NAME" } else { "NONE" },
                "chatAvailableGroup": if flag { "MANAGER" } else { "FOLLOWER" },
                "minFollowerMinute": MINUTES[round], "allowSubscriberInFollowerMode": flag,
                "chatSlowModeSec": SLOW[round], "chatEmojiMode": flag,
            });
            let mut changes = JoinSet::new();
            for (field, value) in expected.as_object().expect("an object").clone() {
                let (world, token) = (world.clone(), tokens.access.clone());
                changes.spawn(async move {
                    world.change_chat_settings(&token, &json!({ field: value })).await.content()
                });
            }
            changes.join_all().await;
            assert_eq!(world.chat_settings(&tokens.access).await.content(), expected);
        }
    })
    .await;
}

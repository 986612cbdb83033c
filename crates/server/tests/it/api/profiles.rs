//! The two profiles (`docs/spec/rest.md#profiles`), field by field. A profile applies to the whole service or
//! to one application.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Setup, Tokens, World, both};

use crate::fixture::Fixture;

fn observed() -> Setup {
    Setup { profile: domain::Profile::Observed, ..Setup::default() }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn expires_in_is_a_documented_text_or_an_observed_number() {
    for (setup, expires_in) in [(Setup::default(), r#""86400""#), (observed(), "86400")] {
        both(setup, move |world| async move {
            let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
            let code = world.consent(&app, &streamer, "s").await;
            let bought = world.exchange(&app, &code, "s").await;
            let Tokens { access, refresh } = Tokens::of(&bought.content());
            assert_eq!(
                bought.text(),
                format!(
                    r#"{{"code":200,"message":null,"content":{{"accessToken":"{access}","refreshToken":"{refresh}","tokenType":"Bearer","expiresIn":{expires_in}}}}}"#
                )
            );
            let refreshed = world.refresh(&app, &refresh).await;
            let Tokens { access, refresh } = Tokens::of(&refreshed.content());
            let scope = domain::ScopeSet::of_users().iter().map(|s| s.name()).collect::<Vec<_>>().join(" ");
            assert_eq!(
                refreshed.text(),
                format!(
                    r#"{{"code":200,"message":null,"content":{{"accessToken":"{access}","refreshToken":"{refresh}","tokenType":"Bearer","expiresIn":{expires_in},"scope":"{scope}"}}}}"#
                )
            );
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn me_has_two_fields_as_documented_and_three_as_observed() {
    for (setup, expected) in [
        (Setup::default(), r#"{"channelId":"haneul","channelName":"하늘 🚀"}"#),
        (observed(), r#"{"channelId":"haneul","channelName":"하늘 🚀","nickname":"하늘 🚀"}"#),
    ] {
        both(setup, move |world| async move {
            let Fixture { tokens, .. } = Fixture::set_up(&world).await;
            let expected: Value = serde_json::from_str(expected).expect("JSON");
            assert_eq!(world.me(&tokens.access).await.content(), expected);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_list_as_documented() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let mut open = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "donation", open.session_key()).await.content();
        open.system("subscribed").await;
        let key = open.session_key().to_owned();
        let item = |ended: &str| {
            format!(
                r#"{{"code":200,"message":null,"content":{{"data":[{{"sessionKey":"{key}","connectedDate":"2026-07-18T14:32:12.345Z","disconnectedDate":{ended},"subscribedEvents":[{{"eventType":"DONATION","channelId":"haneul"}}]}}]}}}}"#
            )
        };
        assert_eq!(world.user_sessions(&tokens.access, "").await.text(), item("null"));
        world.advance(Duration::from_millis(1_655));
        open.close().await;
        ended(&world, &tokens.access).await;
        assert_eq!(world.user_sessions(&tokens.access, "").await.text(), item(r#""2026-07-18T14:32:14.000Z""#));
        assert_eq!(keys(&world.client_sessions(&app, "").await.content()), ["data"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_list_as_observed() {
    both(observed(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let open = world.open_user_session(&tokens.access).await;
        let list = world.user_sessions(&tokens.access, "").await.content();
        assert_eq!(
            list["data"],
            json!([{
                "sessionKey": open.session_key(),
                "connectedDate": "2026-07-18 23:32:12",
                "subscribedEvents": [],
            }])
        );
        world.advance(Duration::from_secs(1));
        open.close().await;
        ended(&world, &tokens.access).await;
        let list = world.user_sessions(&tokens.access, "size=50&page=0").await.content();
        assert_eq!(list["data"][0]["disconnectedDate"], "2026-07-18 23:32:13");
        for list in [list, world.client_sessions(&app, "").await.content()] {
            assert_eq!(keys(&list), ["data", "page", "totalCount", "totalPages"], "{list}");
        }
    })
    .await;
}

/// Waits until the list shows the end of the newest session. The socket is closed first, then the row is
/// written.
async fn ended(world: &World, token: &str) {
    testkit::patiently("the session's end is recorded", async {
        while world.user_sessions(token, "").await.content()["data"][0]["disconnectedDate"].is_null() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_as_documented_and_as_observed() {
    for setup in [Setup::default(), observed()] {
        both(setup, move |world| async move {
            let Fixture { tokens, viewer, .. } = Fixture::set_up(&world).await;
            let mut socket = world.open_user_session(&tokens.access).await;
            for event in ["chat", "donation", "subscription"] {
                world.subscribe(&tokens.access, event, socket.session_key()).await.content();
                socket.system("subscribed").await;
            }
            let emojis = json!({ "{:hi:}": "https://images.example/hi.png" });
            let message = json!({ "senderChannelId": viewer.channel_id, "message": "안녕 {:hi:}", "emojis": emojis });
            world.happen("haneul", "chats", &message).await.content();
            let donation = json!({
                "donatorChannelId": viewer.channel_id, "donationType": "VIDEO", "payAmount": "1000",
                "donationText": "힘내세요 💪", "emojis": emojis,
            });
            world.happen("haneul", "donations", &donation).await.content();
            let subscription =
                json!({ "subscriberChannelId": viewer.channel_id, "tierNo": 2, "tierName": "별단", "month": 7 });
            world.happen("haneul", "subscriptions", &subscription).await.content();

            let mut chat = json!({
                "channelId": "haneul", "senderChannelId": "byeol", "chatChannelId": "chat-haneul",
                "profile": { "nickname": "별이", "badges": [], "verifiedMark": false },
                "userRoleCode": "common_user", "content": "안녕 {:hi:}", "emojis": emojis,
                "messageTime": world.now_ms(),
            });
            let mut donation = json!({
                "donationType": "VIDEO", "channelId": "haneul", "donatorChannelId": "byeol",
                "donatorNickname": "별이", "payAmount": "1000", "donationText": "힘내세요 💪", "emojis": emojis,
            });
            if setup.profile == domain::Profile::Observed {
                chat["profile"]["userRoleCode"] = json!("common_user");
                chat["eventSentAt"] = json!("2026-07-18 23:32:12");
                donation["eventSentAt"] = json!("2026-07-18 23:32:12");
            }
            assert_eq!(socket.event("CHAT").await, chat);
            assert_eq!(socket.event("DONATION").await, donation);
            assert_eq!(
                socket.event("SUBSCRIPTION").await,
                json!({
                    "channelId": "haneul", "subscriberChannelId": "byeol", "subscriberNickname": "별이",
                    "tierNo": 2, "tierName": "별단", "month": 7,
                })
            );
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_may_have_a_profile_of_its_own() {
    for (setup, own, other) in
        [(Setup::default(), "observed", "documented"), (observed(), "documented", "observed")]
    {
        both(setup, move |world| async move {
            let Fixture { streamer, .. } = Fixture::set_up(&world).await;
            for (profile, nickname) in [(own, own == "observed"), (other, other == "observed")] {
                let app = world.application(profile).with("profile", profile).create().await;
                let tokens = world.sign_in(&app, &streamer).await;
                let me = world.me(&tokens.access).await.content();
                assert_eq!(me.get("nickname").is_some(), nickname, "{profile}");

                let mut socket = world.open_user_session(&tokens.access).await;
                world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
                socket.system("subscribed").await;
                world.send_chat(&tokens.access, "안녕").await.content();
                let chat = socket.event("CHAT").await;
                assert_eq!(chat.get("eventSentAt").is_some(), nickname, "{profile}");
                socket.close().await;
            }
        })
        .await;
    }
}

//! Consents that are withdrawn over the platform API. Their tokens, codes and subscriptions end at once
//! (`docs/spec/authorization.md#consent`).

use serde_json::json;
use testkit::{Request, Response, Setup, World, both};

use crate::fixture::{Fixture, UNKNOWN_TOKEN, wrong};

const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;

async fn withdraw(world: &World, client_id: &str, channel_id: &str) -> Response {
    world.operator(Request::new("DELETE", format!("/platform/v1/consents/{client_id}/{channel_id}"))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_consent_ends_tokens_codes_and_subscriptions_at_once() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let viewers = world.sign_in(&app, &viewer).await;
        let code = world.consent(&app, &streamer, "state").await;
        let mut own = world.open_user_session(&tokens.access).await;
        let mut shared = world.open_client_session(&app).await;
        for socket in [&mut own, &mut shared] {
            world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
            socket.system("subscribed").await;
        }
        world.subscribe(&viewers.access, "chat", shared.session_key()).await.content();
        shared.system("subscribed").await;

        assert_eq!(withdraw(&world, "bot", "haneul").await.text(), NOTHING);
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        world.refresh(&app, &tokens.refresh).await.assert_refused(401, "INVALID_TOKEN");
        assert_eq!(world.exchange(&app, &code, "state").await.status, 400);
        let revoked = json!({ "eventType": "CHAT", "channelId": "haneul" });
        assert_eq!(own.system("revoked").await, revoked);
        assert_eq!(shared.system("revoked").await, revoked);
        // Other consents stay, and no event of the withdrawn one arrives.
        for (channel, text) in [("haneul", "revoked"), ("byeol", "kept")] {
            let body = json!({ "senderChannelId": "byeol", "message": text });
            world.happen(channel, "chats", &body).await.content();
        }
        assert_eq!(shared.event("CHAT").await["content"], "kept");
        own.ping().await;
        world.me(&viewers.access).await.content();

        // A second call has no effect. A new sign-in asks for consent again, and works.
        assert_eq!(withdraw(&world, "bot", "haneul").await.text(), NOTHING);
        let again = world.sign_in(&app, &streamer).await;
        world.me(&again.access).await.content();
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_ids_are_not_found_and_withdrawing_no_consent_succeeds() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        assert_eq!(withdraw(&world, "bot", "byeol").await.text(), NOTHING);
        for (client_id, channel_id) in [("missing", "haneul"), ("bot", "missing"), ("missing", "missing")] {
            withdraw(&world, client_id, channel_id).await.assert_refused(404, "NOT_FOUND");
        }
        let id = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
        for (client_id, channel_id, field) in [
            ("%ED%95%9C", "haneul", "clientId"),
            ("bot", "x%20y", "channelId"),
            ("bot", "a%00b", "channelId"),
            ("..%2f", "haneul", "clientId"),
        ] {
            withdraw(&world, client_id, channel_id).await.assert_refused(400, &wrong(field, id));
        }
        let request = || Request::new("DELETE", "/platform/v1/consents/bot/haneul");
        world.send(request()).await.assert_refused(401, "UNAUTHORIZED");
        world.send(request().bearer(UNKNOWN_TOKEN)).await.assert_refused(401, "INVALID_TOKEN");
    })
    .await;
}

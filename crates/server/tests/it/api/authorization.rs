//! Tokens: exchange, refresh, revocation (`docs/spec/authorization.md#tokens`). Their lifetimes are in
//! `token_lifetimes`, races in `single_use`, the pages of the sign-in in `sign_in`.

use domain::Scope;
use serde_json::{Value, json};
use testkit::{Request, Response, Setup, Tokens, World, both};

use crate::fixture::{Fixture, UNKNOWN_TOKEN, wrong};

/// The message for every code that cannot be used.
const BAD_CODE: &str =
    "잘못된 값을 입력했습니다. code: 사용할 수 없는 인증 코드이거나 state가 다릅니다. 다시 로그인해 주세요.";

async fn is_valid(world: &World, access: &str) -> bool {
    let answer = world.me(access).await;
    match answer.status {
        200 => true,
        _ => {
            answer.assert_refused(401, "INVALID_TOKEN");
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_exchanged_for_working_tokens() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let code = world.consent(&app, &streamer, "s").await;
        let answer = world.exchange(&app, &code, "s").await;
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let tokens = Tokens::of(&answer.content());
        assert!(is_valid(&world, &tokens.access).await);
        for token in [&code, &tokens.access, &tokens.refresh, &app.client_secret] {
            assert_eq!(token.len(), 43, "256 bits in base64url");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_unusable_code_is_refused_with_the_same_message() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let stranger = world.application("stranger").create().await;
        let code = world.consent(&app, &streamer, "s").await;
        let refused = |answer: Response| answer.assert_refused(400, BAD_CODE);
        refused(world.exchange(&app, UNKNOWN_TOKEN, "s").await);
        refused(world.exchange(&app, &"x".repeat(600), "s").await);
        refused(world.exchange(&app, "한글", "s").await);
        refused(world.exchange(&app, "", "s").await);
        refused(world.exchange(&app, &code, "S").await);
        refused(world.exchange(&app, &code, "").await);
        refused(world.exchange(&stranger, &code, "s").await);
        // None of these tries used the code up.
        let tokens = Tokens::of(&world.exchange(&app, &code, "s").await.content());
        refused(world.exchange(&app, &code, "s").await);
        // An immediate second try is an honest retry: the tokens of the code stay valid.
        assert!(is_valid(&world, &tokens.access).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_compared_byte_for_byte() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let state = "한글 &=#+%/?\"'<>\\ 👋";
        let code = world.consent(&app, &streamer, state).await;
        world.exchange(&app, &code, &format!("{state} ")).await.assert_refused(400, BAD_CODE);
        world.exchange(&app, &code, state).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_id_and_a_wrong_secret_get_the_same_answer() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let other = world.application("other").create().await;
        let expected = r#"{"code":401,"message":"INVALID_CLIENT"}"#;
        for (client_id, client_secret) in [
            (app.client_id.as_str(), UNKNOWN_TOKEN),
            (app.client_id.as_str(), ""),
            (app.client_id.as_str(), other.client_secret.as_str()),
            (app.client_id.as_str(), &"x".repeat(600)),
            ("missing", app.client_secret.as_str()),
            ("", app.client_secret.as_str()),
            ("한글", app.client_secret.as_str()),
            ("' OR 1=1 --", app.client_secret.as_str()),
        ] {
            let body = json!({
                "grantType": "refresh_token", "clientId": client_id, "clientSecret": client_secret,
                "refreshToken": tokens.refresh, "token": tokens.access,
            });
            for path in ["/auth/v1/token", "/auth/v1/token/revoke", "/auth/v1/revoke"] {
                let answer = world.send(Request::post(path).json(&body)).await;
                assert_eq!((answer.status, answer.text()), (401, expected), "{path} {client_id}");
            }
        }
        assert!(is_valid(&world, &tokens.access).await);
        world.refresh(&app, &tokens.refresh).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_gives_new_tokens_and_the_scope_in_the_order_of_the_specification() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let scopes = [Scope::SubscriptionRead, Scope::ChatWrite, Scope::UserRead];
        let app = world.application("small").scopes(&scopes).create().await;
        let first = world.sign_in(&app, &streamer).await;
        let answer = world.refresh(&app, &first.refresh).await;
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.content()["scope"], "유저 정보 조회 채팅 메시지 쓰기 구독 조회");
        let second = Tokens::of(&answer.content());
        assert_ne!(first.access, second.access);
        assert_ne!(first.refresh, second.refresh);
        // The old access token is valid until it expires.
        assert!(is_valid(&world, &first.access).await);
        assert!(is_valid(&world, &second.access).await);
        world.refresh(&app, &first.refresh).await.assert_refused(401, "INVALID_TOKEN");
        // An immediate retry is an honest mistake: the new tokens stay valid.
        world.refresh(&app, &second.refresh).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_refresh_token_is_invalid() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let stranger = world.application("stranger").create().await;
        for (app, token) in [
            (&app, UNKNOWN_TOKEN),
            (&app, tokens.access.as_str()),
            (&app, "한글"),
            (&app, &"x".repeat(600)),
            (&stranger, tokens.refresh.as_str()),
        ] {
            world.refresh(app, token).await.assert_refused(401, "INVALID_TOKEN");
        }
        // The wrong caller did not use the token up, and a refresh token is no access token.
        world.me(&tokens.refresh).await.assert_refused(401, "INVALID_TOKEN");
        world.refresh(&app, &tokens.refresh).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_token_ends_all_tokens_of_its_client_and_user() {
    for by in ["access", "refresh"] {
        both(Setup::default(), move |world| async move {
            let Fixture { app, streamer, viewer, tokens: first, .. } = Fixture::set_up(&world).await;
            let stranger = world.application("stranger").create().await;
            let second = world.sign_in(&app, &streamer).await;
            let elsewhere = world.sign_in(&stranger, &streamer).await;
            let viewers = world.sign_in(&app, &viewer).await;

            let token = if by == "access" { &first.access } else { &first.refresh };
            let answer = world.revoke(&app, token).await;
            assert_eq!(answer.text(), r#"{"code":200,"message":null,"content":null}"#);
            for tokens in [&first, &second] {
                assert!(!is_valid(&world, &tokens.access).await);
                world.refresh(&app, &tokens.refresh).await.assert_refused(401, "INVALID_TOKEN");
            }
            assert!(is_valid(&world, &elsewhere.access).await);
            assert!(is_valid(&world, &viewers.access).await);
            // Revoking tokens does not withdraw the consent: the next sign-in works.
            let third = world.sign_in(&app, &streamer).await;
            assert!(is_valid(&world, &third.access).await);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_foreign_token_succeeds_and_changes_nothing() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let stranger = world.application("stranger").create().await;
        for token in [tokens.access.as_str(), &tokens.refresh, UNKNOWN_TOKEN, "한글", &"x".repeat(600)] {
            assert_eq!(world.revoke(&stranger, token).await.content(), Value::Null);
        }
        assert!(is_valid(&world, &tokens.access).await);
        assert_eq!(world.revoke(&app, &tokens.access).await.content(), Value::Null);
        assert_eq!(world.revoke(&app, &tokens.access).await.content(), Value::Null);
        assert!(!is_valid(&world, &tokens.access).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_type_hint_is_only_a_hint_and_the_alias_is_the_same_call() {
    for path in ["/auth/v1/token/revoke", "/auth/v1/revoke"] {
        both(Setup::default(), move |world| async move {
            let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
            for hint in [Value::Null, json!("access_token"), json!("refresh_token")] {
                for token in
                    [|tokens: &Tokens| tokens.access.clone(), |tokens: &Tokens| tokens.refresh.clone()]
                {
                    let tokens = world.sign_in(&app, &streamer).await;
                    let body = json!({
                        "clientId": app.client_id, "clientSecret": app.client_secret, "token": token(&tokens),
                        "tokenTypeHint": hint,
                    });
                    world.send(Request::post(path).json(&body)).await.content();
                    assert!(!is_valid(&world, &tokens.access).await, "{hint}");
                }
            }
            let body = json!({
                "clientId": app.client_id, "clientSecret": app.client_secret, "token": UNKNOWN_TOKEN,
                "tokenTypeHint": "id_token",
            });
            let answer = world.send(Request::post(path).json(&body)).await;
            answer.assert_refused(
                400,
                &wrong("tokenTypeHint", "access_token, refresh_token 중 하나여야 합니다."),
            );
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_ends_the_subscriptions_of_the_tokens() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, streamer, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_client_session(&app).await;
        for (event, name) in [("chat", "CHAT"), ("donation", "DONATION")] {
            world.subscribe(&tokens.access, event, socket.session_key()).await.content();
            assert_eq!(
                socket.system("subscribed").await,
                json!({ "eventType": name, "channelId": "haneul" })
            );
        }
        world.revoke(&app, &tokens.refresh).await.content();
        let mut revoked = [socket.system("revoked").await, socket.system("revoked").await];
        revoked.sort_by_key(ToString::to_string);
        assert_eq!(revoked[0], json!({ "eventType": "CHAT", "channelId": "haneul" }));
        assert_eq!(revoked[1], json!({ "eventType": "DONATION", "channelId": "haneul" }));
        // No message of a subscription follows its end: the next message belongs to the next subscription.
        let again = world.sign_in(&app, &streamer).await;
        world.send_chat(&again.access, "before the subscription").await.content();
        world.subscribe(&again.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        world.send_chat(&again.access, "after the subscription").await.content();
        assert_eq!(socket.event("CHAT").await["content"], "after the subscription");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_that_an_application_loses_end_at_once_and_new_ones_need_a_new_consent() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let app = world.application("app").scopes(&[Scope::UserRead, Scope::ChatRead]).create().await;
        let tokens = world.sign_in(&app, &streamer).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;

        world.application("app").scopes(&[Scope::ChatWrite]).replace().await;
        assert_eq!(socket.system("revoked").await, json!({ "eventType": "CHAT", "channelId": "haneul" }));
        world.me(&tokens.access).await.assert_refused(403, "FORBIDDEN");
        world.send_chat(&tokens.access, "x").await.assert_refused(403, "FORBIDDEN");
        assert_eq!(world.refresh(&app, &tokens.refresh).await.content()["scope"], "");

        let tokens = world.sign_in(&app, &streamer).await;
        world.send_chat(&tokens.access, "x").await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_the_wrong_grant_and_unknown_fields_are_ignored_and_null_is_absent() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let code = world.consent(&app, &streamer, "s").await;
        let body = json!({
            "grantType": "authorization_code", "clientId": app.client_id, "clientSecret": app.client_secret,
            "code": code, "state": "s", "refreshToken": null, "redirectUri": 7, "deep": { "er": [null] },
        });
        let tokens = Tokens::of(&world.token(body).await.content());
        let body = json!({
            "grantType": "refresh_token", "clientId": app.client_id, "clientSecret": app.client_secret,
            "refreshToken": tokens.refresh, "code": 1, "state": [],
        });
        world.token(body).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_secret_keeps_the_old_one_valid() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let target = "/platform/v1/applications/bot/secrets";
        let content = world.operator(Request::post(target)).await.content();
        let newer = content["clientSecret"].as_str().expect("a text").to_owned();
        assert_eq!(content, json!({ "clientId": "bot", "clientSecret": newer }));
        let newer = testkit::Application { client_secret: newer, ..app.clone() };
        let tokens = Tokens::of(&world.refresh(&newer, &tokens.refresh).await.content());
        world.refresh(&app, &tokens.refresh).await.content();
    })
    .await;
}

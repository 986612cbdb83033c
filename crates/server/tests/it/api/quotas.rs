//! Quotas at their boundaries (`docs/spec/limits.md#quotas`), on a manual clock.

use std::time::Duration;

use serde_json::json;
use testkit::{Request, Response, Setup, Tokens, both};

use crate::api::endpoints::{ENDPOINTS, session_key};
use crate::fixture::{Fixture, UNKNOWN_TOKEN};

fn enforced() -> Setup {
    Setup { quotas: true, ..Setup::default() }
}

/// Limit, remaining, reset.
#[track_caller]
fn standing(answer: &Response) -> (i64, i64, i64) {
    (answer.number("ratelimit-limit"), answer.number("ratelimit-remaining"), answer.number("ratelimit-reset"))
}

#[track_caller]
fn assert_one_too_many(answer: &Response, limit: i64, retry_after: i64) {
    answer.assert_refused(429, "TOO_MANY_REQUESTS");
    assert_eq!((answer.number("retry-after"), answer.number("ratelimit-limit")), (retry_after, limit));
    assert_eq!(answer.number("ratelimit-remaining"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_the_callers_quota() {
    both(enforced(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let (_socket, key) = session_key(&world, &fixture).await;
        for endpoint in ENDPOINTS.iter() {
            let requests = [
                endpoint.good(&fixture, &key),
                Request::new(endpoint.method, endpoint.path()),
                Request::new("DELETE", endpoint.path()),
                endpoint.proven(&fixture, "/nowhere"),
                endpoint.proven(&fixture, &endpoint.path()).body("{"),
            ];
            for request in requests {
                let answer = world.send(request.clone()).await;
                let (limit, remaining, reset) = standing(&answer);
                assert!(
                    limit > 0 && (0..=limit).contains(&remaining) && (0..=60).contains(&reset),
                    "{request:?}"
                );
            }
        }
        let page = world.browser().open("/account-interlock").await;
        standing(&page.response);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_quotas_there_are_no_quota_headers() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        for _ in 0..25 {
            let answer = world.send_chat(&tokens.access, "x").await;
            answer.content();
            assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("ratelimit")));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sends_20_messages_in_30_seconds_over_all_applications() {
    both(enforced(), |world| async move {
        let Fixture { streamer, viewer, app, tokens, .. } = Fixture::set_up(&world).await;
        let other = world.application("other").create().await;
        let elsewhere = world.sign_in(&other, &streamer).await;
        let viewers = world.sign_in(&app, &viewer).await;
        for sent in 1..=20 {
            let token = if sent % 2 == 0 { &tokens.access } else { &elsewhere.access };
            let answer = world.send_chat(token, "x").await;
            answer.content();
            assert_eq!(standing(&answer), (20, 20 - sent, (sent * 3 + 1) / 2));
        }
        for token in [&tokens.access, &elsewhere.access] {
            assert_one_too_many(&world.send_chat(token, "x").await, 20, 2);
        }
        world.send_chat(&viewers.access, "x").await.content();
        // Other calls of the user are not limited.
        world.me(&tokens.access).await.content();

        // One more message is allowed each 1.5 seconds.
        world.advance(Duration::from_millis(1_499));
        assert_one_too_many(&world.send_chat(&tokens.access, "x").await, 20, 1);
        world.advance(Duration::from_millis(1));
        world.send_chat(&tokens.access, "x").await.content();
        assert_one_too_many(&world.send_chat(&tokens.access, "x").await, 20, 2);
        world.advance(Duration::from_secs(30));
        for _ in 0..20 {
            world.send_chat(&tokens.access, "x").await.content();
        }
        assert_one_too_many(&world.send_chat(&tokens.access, "x").await, 20, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_gets_30_session_urls_a_minute() {
    both(enforced(), |world| async move {
        let Fixture { app, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let viewers = world.sign_in(&app, &viewer).await;
        for taken in 1..=30 {
            for answer in [world.user_session_url(&tokens.access).await, world.client_session_url(&app).await]
            {
                answer.content();
                assert_eq!(standing(&answer), (30, 30 - taken, taken * 2));
            }
        }
        assert_one_too_many(&world.user_session_url(&tokens.access).await, 30, 2);
        assert_one_too_many(&world.client_session_url(&app).await, 30, 2);
        world.user_session_url(&viewers.access).await.content();
        world.advance(Duration::from_secs(2));
        world.user_session_url(&tokens.access).await.content();
        assert_one_too_many(&world.user_session_url(&tokens.access).await, 30, 2);
        world.client_session_url(&app).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_and_a_channel_of_the_same_id_are_two_callers() {
    both(enforced(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let namesake = world.person(&app.client_id).create().await;
        let tokens = world.sign_in(&app, &namesake).await;
        for _ in 0..30 {
            world.client_session_url(&app).await.content();
        }
        world.user_session_url(&tokens.access).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_makes_60_token_calls_a_minute() {
    both(enforced(), |world| async move {
        // The sign-in was the first call.
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let other = world.application("other").create().await;
        let mut tokens = tokens;
        for made in 2..=60 {
            let answer = if made % 2 == 0 {
                world.refresh(&app, &tokens.refresh).await
            } else {
                world.revoke(&app, "unknown").await
            };
            let content = answer.content();
            assert_eq!(standing(&answer), (60, 60 - made, made));
            if content.is_object() {
                tokens = Tokens::of(&content);
            }
        }
        assert_one_too_many(&world.refresh(&app, &tokens.refresh).await, 60, 1);
        assert_one_too_many(&world.revoke(&app, &tokens.access).await, 60, 1);
        world.revoke(&other, "unknown").await.content();
        world.me(&tokens.access).await.content();
        world.advance(Duration::from_secs(1));
        // A refused call uses nothing up.
        world.refresh(&app, &tokens.refresh).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_sends_10_wrong_secrets_a_minute_and_right_ones_are_never_refused() {
    both(enforced(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let wrong = testkit::Application { client_secret: UNKNOWN_TOKEN.to_owned(), ..app.clone() };
        let unknown = testkit::Application { client_id: "missing".to_owned(), ..app.clone() };
        for failed in 1..=10 {
            let answer = match failed % 3 {
                0 => world.refresh(&wrong, &tokens.refresh).await,
                1 => world.revoke(&wrong, &tokens.refresh).await,
                _ => world.exchange(&unknown, UNKNOWN_TOKEN, "s").await,
            };
            answer.assert_refused(401, "INVALID_CLIENT");
            assert_eq!(standing(&answer), (10, 10 - failed, failed * 6));
        }
        assert_one_too_many(&world.refresh(&wrong, &tokens.refresh).await, 10, 6);
        assert_one_too_many(&world.revoke(&unknown, &tokens.refresh).await, 10, 6);
        // A caller with the right secret is served, also from the same address.
        let refreshed = Tokens::of(&world.refresh(&app, &tokens.refresh).await.content());
        world.revoke(&app, UNKNOWN_TOKEN).await.content();
        world.me(&refreshed.access).await.content();
        // A refused call is not another failure: one try is free after six seconds.
        world.advance(Duration::from_millis(5_999));
        assert_one_too_many(&world.refresh(&wrong, &tokens.refresh).await, 10, 1);
        world.advance(Duration::from_millis(1));
        world.refresh(&wrong, &tokens.refresh).await.assert_refused(401, "INVALID_CLIENT");
        assert_one_too_many(&world.refresh(&wrong, "x").await, 10, 6);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_codes_count_for_the_presenting_application_and_block_no_good_ones() {
    both(enforced(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        let other = world.application("other").create().await;
        for failed in 1..=10 {
            let answer = match failed % 2 {
                0 => world.refresh(&app, UNKNOWN_TOKEN).await,
                _ => world.exchange(&app, UNKNOWN_TOKEN, "s").await,
            };
            assert_eq!(answer.status, if failed % 2 == 0 { 401 } else { 400 }, "{}", answer.text());
        }
        assert_one_too_many(&world.exchange(&app, UNKNOWN_TOKEN, "s").await, 10, 6);
        // A good code is still exchanged, refreshes are not limited, and other applications are not affected.
        world.sign_in(&app, &streamer).await;
        world.refresh(&app, UNKNOWN_TOKEN).await.assert_refused(401, "INVALID_TOKEN");
        world.refresh(&app, &tokens.refresh).await.content();
        assert_eq!(world.exchange(&other, UNKNOWN_TOKEN, "s").await.status, 400);
        let wrong = testkit::Application { client_secret: UNKNOWN_TOKEN.to_owned(), ..app.clone() };
        let nothing_of_the_address = standing(&world.refresh(&wrong, UNKNOWN_TOKEN).await);
        assert_eq!(nothing_of_the_address, (10, 9, 6));
        world.advance(Duration::from_secs(6));
        assert_eq!(world.exchange(&app, UNKNOWN_TOKEN, "s").await.status, 400);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_use_up_only_sign_ins() {
    both(enforced(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let address = format!(
            "/account-interlock?clientId=bot&redirectUri={}&state=s",
            testkit::encode(&fixture.app.redirect_uri)
        );
        let form = browser.open(&address).await.form("login").fill("login", &fixture.streamer.login);
        for _ in 0..10 {
            let page = browser.submit(&form.clone().fill("password", "wrong")).await;
            assert_eq!(page.response.status, 200);
        }
        let right = form.fill("password", &fixture.streamer.password);
        let page = browser.submit(&right).await;
        assert_eq!((page.response.status, page.response.number("retry-after")), (429, 6));
        assert!(page.response.text().contains("로그인 시도가 너무 많습니다. 6초 뒤에 다시 시도해 주세요."));
        world.refresh(&fixture.app, &fixture.tokens.refresh).await.content();
        world.operator(Request::get("/platform/v1/sessions")).await.content();
        world.advance(Duration::from_secs(6));
        browser.submit(&right).await.form("decision");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_request_does_not_count_as_failed_authentication() {
    both(enforced(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        for _ in 0..20 {
            assert_eq!(world.token(json!({})).await.status, 400);
            let body = json!({ "clientId": app.client_id, "clientSecret": app.client_secret });
            assert_eq!(world.token(body).await.status, 400);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_makes_800_calls_a_minute_in_client_mode_and_as_many_for_each_user() {
    both(enforced(), |world| async move {
        let Fixture { app, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let viewers = world.sign_in(&app, &viewer).await;
        let other = world.application("other").create().await;
        for made in 1..=800 {
            let client = world.channels(&app, "channelIds=haneul").await;
            let user = world.me(&tokens.access).await;
            if made % 100 == 0 {
                let reset = (made * 75 + 999) / 1000;
                assert_eq!(standing(&client), (800, 800 - made, reset));
                assert_eq!(standing(&user), (800, 800 - made, reset));
            }
        }
        assert_one_too_many(&world.channels(&app, "channelIds=haneul").await, 800, 1);
        assert_one_too_many(&world.me(&tokens.access).await, 800, 1);
        world.channels(&other, "channelIds=haneul").await.content();
        world.me(&viewers.access).await.content();
        world.advance(Duration::from_millis(75));
        world.channels(&app, "channelIds=haneul").await.content();
        world.me(&tokens.access).await.content();
        assert_one_too_many(&world.me(&tokens.access).await, 800, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_without_quotas_is_never_refused_and_has_full_buckets() {
    both(enforced(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let free = world.application("free").with("quota", false).create().await;
        let tokens = world.sign_in(&free, &streamer).await;
        for _ in 0..70 {
            for (answer, limit) in [
                (world.send_chat(&tokens.access, "x").await, 20),
                (world.user_session_url(&tokens.access).await, 30),
                (world.client_session_url(&free).await, 30),
                (world.revoke(&free, "unknown").await, 60),
                (world.me(&tokens.access).await, 800),
                (world.channels(&free, "channelIds=haneul").await, 800),
            ] {
                answer.content();
                assert_eq!(standing(&answer), (limit, limit, 0));
            }
        }
        // Its calls count for no other caller, and quotas apply again when they are switched on.
        let app = world.application("bound").create().await;
        let bound = world.sign_in(&app, &streamer).await;
        assert_eq!(standing(&world.send_chat(&bound.access, "x").await), (20, 19, 2));
        world.application("free").replace().await;
        for left in (0..19).rev() {
            assert_eq!(standing(&world.send_chat(&tokens.access, "x").await).1, left);
        }
        assert_one_too_many(&world.send_chat(&tokens.access, "x").await, 20, 2);
        assert_one_too_many(&world.send_chat(&bound.access, "x").await, 20, 2);
    })
    .await;
}

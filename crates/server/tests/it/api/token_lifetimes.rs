//! How long codes, tokens and browser sessions live, to the millisecond (`docs/spec/limits.md#lifetimes`).

use std::time::Duration;

use testkit::{Setup, Tokens, both};

use crate::fixture::Fixture;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const TICK: Duration = Duration::from_millis(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_code_lives_ten_minutes() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let [early, late] =
            [world.consent(&app, &streamer, "s").await, world.consent(&app, &streamer, "s").await];
        world.advance(MINUTE * 10 - TICK);
        world.exchange(&app, &early, "s").await.content();
        world.advance(TICK);
        assert_eq!(world.exchange(&app, &late, "s").await.status, 400);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_lives_a_day_and_a_refresh_token_thirty() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, streamer, .. } = Fixture::set_up(&world).await;
        let late = world.sign_in(&app, &streamer).await;
        world.advance(DAY - TICK);
        world.me(&tokens.access).await.content();
        world.advance(TICK);
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        world.advance(DAY * 29 - TICK);
        let next = Tokens::of(&world.refresh(&app, &tokens.refresh).await.content());
        world.me(&next.access).await.content();
        world.advance(TICK);
        world.refresh(&app, &late.refresh).await.assert_refused(401, "INVALID_TOKEN");
        // Each refresh token has its own thirty days.
        world.advance(DAY * 30 - TICK * 2);
        world.refresh(&app, &next.refresh).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_refresh_tokens_ends_where_the_operator_says() {
    let setup = Setup { token_days_max: Some(40), ..Setup::default() };
    both(setup, |world| async move {
        let Fixture { app, tokens, streamer, .. } = Fixture::set_up(&world).await;
        world.advance(DAY * 25);
        let next = Tokens::of(&world.refresh(&app, &tokens.refresh).await.content());
        world.advance(DAY * 15 - TICK);
        let last = Tokens::of(&world.refresh(&app, &next.refresh).await.content());
        world.advance(TICK);
        world.me(&last.access).await.content();
        let over = world.refresh(&app, &last.refresh).await;
        over.assert_refused(401, "INVALID_TOKEN");
        assert!(over.header("stagedoor-reason").is_some_and(|reason| reason.starts_with("token-expired")));
        let again = world.sign_in(&app, &streamer).await;
        world.refresh(&app, &again.refresh).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_changes_nothing_on_an_open_socket() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        world.advance(DAY - MINUTE);
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        world.advance(MINUTE);
        socket.ping().await;
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        let fresh = world.sign_in(&app, &streamer).await;
        world.send_chat(&fresh.access, "still here").await.content();
        assert_eq!(socket.event("CHAT").await["content"], "still here");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_reused_after_ten_seconds_revokes_its_tokens() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, tokens: others, .. } = Fixture::set_up(&world).await;
        let code = world.consent(&app, &streamer, "s").await;
        let bought = Tokens::of(&world.exchange(&app, &code, "s").await.content());
        let refreshed = Tokens::of(&world.refresh(&app, &bought.refresh).await.content());
        let mut socket = world.open_user_session(&refreshed.access).await;
        world.subscribe(&refreshed.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;

        world.advance(Duration::from_secs(10));
        assert_eq!(world.exchange(&app, &code, "s").await.status, 400);
        world.me(&refreshed.access).await.content();

        world.advance(TICK);
        assert_eq!(world.exchange(&app, &code, "s").await.status, 400);
        world.me(&bought.access).await.assert_refused(401, "INVALID_TOKEN");
        world.me(&refreshed.access).await.assert_refused(401, "INVALID_TOKEN");
        world.refresh(&app, &refreshed.refresh).await.assert_refused(401, "INVALID_TOKEN");
        socket.system("revoked").await;
        // Tokens of another sign-in of the same person stay valid.
        world.me(&others.access).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_reused_after_ten_seconds_revokes_all_tokens() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, viewer, tokens: first, .. } = Fixture::set_up(&world).await;
        let second = world.sign_in(&app, &streamer).await;
        let viewers = world.sign_in(&app, &viewer).await;
        let next = Tokens::of(&world.refresh(&app, &first.refresh).await.content());
        let mut socket = world.open_user_session(&second.access).await;
        world.subscribe(&second.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;

        world.advance(Duration::from_secs(10));
        world.refresh(&app, &first.refresh).await.assert_refused(401, "INVALID_TOKEN");
        world.me(&next.access).await.content();

        world.advance(TICK);
        world.refresh(&app, &first.refresh).await.assert_refused(401, "INVALID_TOKEN");
        for tokens in [&first, &second, &next] {
            world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
            world.refresh(&app, &tokens.refresh).await.assert_refused(401, "INVALID_TOKEN");
        }
        socket.system("revoked").await;
        world.me(&viewers.access).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_url_is_valid_for_thirty_seconds_and_once() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        for by_user in [true, false] {
            let url = async || {
                let answer = match by_user {
                    true => world.user_session_url(&tokens.access).await,
                    false => world.client_session_url(&app).await,
                };
                answer.content()["url"].as_str().expect("a text").to_owned()
            };
            let (early, late) = (url().await, url().await);
            world.advance(Duration::from_secs(30) - TICK);
            let socket = testkit::Socket::open(&early).await;
            world.advance(TICK);
            for url in [early, late] {
                let refused = testkit::Socket::connect(&url).await.expect_err("used or expired");
                refused.assert_refused(401, "UNAUTHORIZED");
            }
            drop(socket);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_stays_signed_in_for_twelve_hours() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let page = world.sign_in_page(&mut browser, &app, &streamer, "s").await;
        let address = page.form("decision").action;
        world.advance(DAY / 2 - TICK);
        assert_eq!(browser.open(&address).await.form("decision").action, address);
        world.advance(TICK);
        assert_eq!(browser.open(&address).await.form("login").action, address);
    })
    .await;
}

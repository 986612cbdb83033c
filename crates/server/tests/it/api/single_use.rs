//! A single-use credential works once, also for concurrent callers, and no caller gets a 500.

use testkit::{Response, Setup, Socket, Tokens, World, both};
use tokio::task::JoinSet;

use crate::fixture::Fixture;

const AT_ONCE: usize = 100;

/// Makes many calls at once.
async fn race<T, Fut>(world: &World, call: impl Fn(World) -> Fut) -> Vec<T>
where
    T: Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let mut calls: JoinSet<T> = (0..AT_ONCE).map(|_| call(world.clone())).collect();
    let mut answers = Vec::new();
    while let Some(answer) = calls.join_next().await {
        answers.push(answer.expect("every call gets its answer"));
    }
    answers
}

fn only_winner(answers: Vec<Response>, refused: u16) -> Response {
    let (winners, losers): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!(winners.len(), 1);
    assert!(losers.iter().all(|loser| loser.status == refused && !loser.message().is_empty()));
    winners.into_iter().next().expect("one winner")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_exchanges_of_a_code_succeeds() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let code = world.consent(&app, &streamer, "s").await;
        let answers = race(&world, |world| {
            let (app, code) = (app.clone(), code.clone());
            async move { world.exchange(&app, &code, "s").await }
        })
        .await;
        let tokens = Tokens::of(&only_winner(answers, 400).content());
        world.me(&tokens.access).await.content();
        world.refresh(&app, &tokens.refresh).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_uses_of_a_refresh_token_succeeds() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let answers = race(&world, |world| {
            let (app, token) = (app.clone(), tokens.refresh.clone());
            async move { world.refresh(&app, &token).await }
        })
        .await;
        let tokens = Tokens::of(&only_winner(answers, 401).content());
        world.me(&tokens.access).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_uses_of_a_session_url_succeeds() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let url = world.client_session_url(&app).await.content()["url"].as_str().expect("a text").to_owned();
        let tries = race(&world, |_| {
            let url = url.clone();
            async move { Socket::connect(&url).await }
        })
        .await;
        let (open, refused): (Vec<_>, Vec<_>) = tries.into_iter().partition(Result::is_ok);
        assert_eq!(open.len(), 1);
        for refused in refused.into_iter().filter_map(Result::err) {
            refused.assert_refused(401, "UNAUTHORIZED");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_revocation_and_refresh_leave_no_valid_token() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        for _ in 0..20 {
            let tokens = world.sign_in(&app, &streamer).await;
            let (revoked, refreshed) =
                tokio::join!(world.revoke(&app, &tokens.access), world.refresh(&app, &tokens.refresh));
            revoked.content();
            // Either order is valid: an earlier refresh was revoked with the other tokens, a later one was
            // refused.
            match refreshed.status {
                200 => {
                    let next = Tokens::of(&refreshed.content());
                    world.me(&next.access).await.assert_refused(401, "INVALID_TOKEN");
                }
                _ => refreshed.assert_refused(401, "INVALID_TOKEN"),
            }
            world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        }
    })
    .await;
}

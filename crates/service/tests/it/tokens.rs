//! Refreshing and revoking tokens.

use domain::event::EventType;
use domain::limits::{ACCESS_TOKEN_LIFETIME_MS, DAY_MS, REFRESH_TOKEN_LIFETIME_MS, REUSE_GRACE_MS};
use domain::refusal::{Credential, TokenFault};
use domain::session::ChangeKind;
use domain::{Refusal, Scope, ScopeSet};

use crate::world::{
    all_scopes_but, at_once, both, changes_among, client_owner, received, refused, user_owner, winners,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_gives_a_new_pair_and_the_old_access_token_stays_valid() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let first = world.tokens(&app, &user).await;
        let second = world.service.refresh(&app, first.refresh.expose()).await.unwrap();
        assert_ne!(first.access.expose(), second.access.expose());
        assert_ne!(first.refresh.expose(), second.refresh.expose());
        assert!(world.lives(&first).await && world.lives(&second).await);
        let caller = async |tokens: &service::tokens::IssuedTokens| {
            world.service.authenticate_user(tokens.access.expose()).await.unwrap().stored.clone()
        };
        assert_eq!(caller(&first).await, caller(&second).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_gives_the_consented_scopes_that_the_application_still_has_in_the_order_of_the_spec() {
    both(|world| async move {
        let asked: ScopeSet =
            [Scope::SubscriptionRead, Scope::ChatWrite, Scope::UserRead, Scope::Drops].into_iter().collect();
        let app = world.application_with("app", asked).await;
        let user = world.user("user").await;
        let first = world.tokens(&app, &user).await;
        let second = world.service.refresh(&app, first.refresh.expose()).await.unwrap();
        assert_eq!(second.scopes.joined(), "유저 정보 조회 채팅 메시지 쓰기 구독 조회");
        // The application lost one scope and got another. The new scope has no consent.
        let asked = [Scope::SubscriptionRead, Scope::ChatRead, Scope::UserRead].into_iter().collect();
        let app = world.application_with("app", asked).await;
        let third = world.service.refresh(&app, second.refresh.expose()).await.unwrap();
        assert_eq!(third.scopes.joined(), "유저 정보 조회 구독 조회");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_is_valid_for_a_day_and_a_refresh_token_for_30_days() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let tokens = world.tokens(&app, &user).await;
        world.advance_ms(ACCESS_TOKEN_LIFETIME_MS as u64 - 1);
        assert!(world.lives(&tokens).await);
        world.advance_ms(1);
        let expired = Refusal::InvalidToken(TokenFault::Expired);
        // Both the cached answer and the store are checked.
        for _ in 0..2 {
            assert_eq!(refused(world.service.authenticate_user(tokens.access.expose()).await), expired);
            world.advance_ms(DAY_MS as u64);
        }
        world.advance_ms(5 * DAY_MS as u64);
        world.service.sweep().await.unwrap();
        let forgotten = world.service.authenticate_user(tokens.access.expose()).await;
        assert_eq!(refused(forgotten), Refusal::InvalidToken(TokenFault::Unknown));

        let days = ACCESS_TOKEN_LIFETIME_MS + 7 * DAY_MS;
        world.advance_ms((REFRESH_TOKEN_LIFETIME_MS - days) as u64 - 1);
        let second = world.service.refresh(&app, tokens.refresh.expose()).await.unwrap();
        world.advance_ms(REFRESH_TOKEN_LIFETIME_MS as u64);
        let late = world.service.refresh(&app, second.refresh.expose()).await;
        assert_eq!(refused(late), expired);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_refresh_token_is_refused_and_another_client_does_not_use_it_up() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let user = world.user("user").await;
        let tokens = world.tokens(&app, &user).await;
        let too_long = "x".repeat(10_000);
        for (application, token, fault) in [
            // The answer reveals nothing about another client's tokens.
            (&other, tokens.refresh.expose(), TokenFault::Unknown),
            (&other, tokens.access.expose(), TokenFault::Unknown),
            (&app, tokens.access.expose(), TokenFault::WrongKind(Credential::RefreshToken)),
            (&app, "unknown", TokenFault::Unknown),
            (&app, "nul\0", TokenFault::Unknown),
            (&app, too_long.as_str(), TokenFault::Malformed(Credential::RefreshToken)),
        ] {
            let outcome = world.service.refresh(application, token).await;
            assert_eq!(refused(outcome), Refusal::InvalidToken(fault));
        }
        let access_of_a_refresh = world.service.authenticate_user(tokens.refresh.expose()).await;
        let wrong_kind = TokenFault::WrongKind(Credential::AccessToken);
        assert_eq!(refused(access_of_a_refresh), Refusal::InvalidToken(wrong_kind));
        assert!(world.service.refresh(&app, tokens.refresh.expose()).await.is_ok());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_used_again_within_10_seconds_is_refused_without_revocation() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let first = world.tokens(&app, &user).await;
        let second = world.service.refresh(&app, first.refresh.expose()).await.unwrap();
        for wait in [0, REUSE_GRACE_MS] {
            world.advance_ms(wait as u64);
            let again = world.service.refresh(&app, first.refresh.expose()).await;
            assert_eq!(refused(again), Refusal::InvalidToken(TokenFault::Used), "{wait}");
        }
        assert!(world.lives(&first).await && world.lives(&second).await);
        assert!(world.service.refresh(&app, second.refresh.expose()).await.is_ok());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_used_again_later_revokes_every_token_of_that_client_and_user() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let (user, neighbour) = (world.user("user").await, world.user("neighbour").await);
        let first = world.tokens(&app, &user).await;
        let second = world.service.refresh(&app, first.refresh.expose()).await.unwrap();
        let gone = [first.clone(), second, world.tokens(&app, &user).await];
        let untouched = [world.tokens(&other, &user).await, world.tokens(&app, &neighbour).await];
        let session = world.connect(&user_owner(&app, &user)).await;
        let caller = world.service.authenticate_user(gone[2].access.expose()).await.unwrap();
        world.service.subscribe(&caller, &session, EventType::Chat).await.unwrap();

        world.advance_ms(REUSE_GRACE_MS as u64 + 1);
        // A used token of another client revokes nothing.
        assert_eq!(
            refused(world.service.refresh(&other, first.refresh.expose()).await),
            Refusal::InvalidToken(TokenFault::Unknown)
        );
        assert!(world.lives(&gone[1]).await);
        let stolen = Refusal::InvalidToken(TokenFault::Reused);
        assert_eq!(refused(world.service.refresh(&app, first.refresh.expose()).await), stolen);

        for tokens in &gone {
            assert!(!world.lives(tokens).await);
            let revoked = Refusal::InvalidToken(TokenFault::Revoked);
            assert_eq!(refused(world.service.refresh(&app, tokens.refresh.expose()).await), revoked);
            assert_eq!(refused(world.service.authenticate_user(tokens.access.expose()).await), revoked);
            let foreign = world.service.refresh(&other, tokens.refresh.expose()).await;
            assert_eq!(refused(foreign), Refusal::InvalidToken(TokenFault::Unknown));
        }
        for tokens in &untouched {
            assert!(world.lives(tokens).await);
        }
        assert_eq!(world.changes(&session).await[1].0, ChangeKind::Revoked);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_100_concurrent_refreshes_with_a_token_exactly_one_wins() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let tokens = world.tokens(&app, &user).await;
        let outcomes = at_once((0..100).map(|_| {
            let (world, app, token) = (world.clone(), app.clone(), tokens.refresh.clone());
            async move { world.service.refresh(&app, token.expose()).await }
        }))
        .await;
        let won = winners(outcomes, &Refusal::InvalidToken(TokenFault::Used));
        assert_eq!(won.len(), 1);
        assert!(world.lives(&won[0]).await && world.lives(&tokens).await);
        assert_eq!(world.count("SELECT COUNT(*) FROM access_tokens").await, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_either_kind_revokes_all_tokens_of_its_client_and_user_only() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let (user, neighbour) = (world.user("user").await, world.user("neighbour").await);
        let untouched = [world.tokens(&other, &user).await, world.tokens(&app, &neighbour).await];
        for with_refresh_token in [false, true] {
            let first = world.tokens(&app, &user).await;
            let second = world.tokens(&app, &user).await;
            let third = world.service.refresh(&app, second.refresh.expose()).await.unwrap();
            let shown = if with_refresh_token { first.refresh.expose() } else { first.access.expose() };
            world.service.revoke(&app, shown).await.unwrap();
            for tokens in [&first, &second, &third] {
                assert!(!world.lives(tokens).await);
                let refresh = world.service.refresh(&app, tokens.refresh.expose()).await;
                assert_eq!(refused(refresh).kind(), "invalid_token");
            }
            world.service.revoke(&app, shown).await.unwrap();
        }
        for tokens in &untouched {
            assert!(world.lives(tokens).await);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_an_unknown_token_or_one_of_another_client_changes_nothing_and_is_no_error() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let user = world.user("user").await;
        let tokens = world.tokens(&app, &user).await;
        let too_long = "x".repeat(10_000);
        for (application, token) in [
            (&other, tokens.access.expose()),
            (&other, tokens.refresh.expose()),
            (&app, "unknown"),
            (&app, "nul\0"),
            (&app, ""),
            (&app, too_long.as_str()),
        ] {
            world.service.revoke(application, token).await.unwrap();
        }
        assert!(world.lives(&tokens).await);
        assert!(world.service.refresh(&app, tokens.refresh.expose()).await.is_ok());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_ends_in_order_the_subscriptions_made_with_the_tokens_in_every_session() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let neighbour = world.user("neighbour").await;
        let tokens = world.tokens(&app, &user).await;
        let caller = world.service.authenticate_user(tokens.access.expose()).await.unwrap();
        let other_caller = world.caller(&app, &neighbour).await;
        let mine = world.connect(&user_owner(&app, &user)).await;
        world.advance_ms(1);
        let shared = world.connect(&client_owner(&app)).await;
        let ended = world.connect(&user_owner(&app, &user)).await;
        for session in [&mine, &shared, &ended] {
            world.service.subscribe(&caller, session, EventType::Donation).await.unwrap();
            world.service.subscribe(&caller, session, EventType::Chat).await.unwrap();
        }
        world.service.subscribe(&other_caller, &shared, EventType::Chat).await.unwrap();
        world.service.disconnect_session(&ended, "client_goodbye").await.unwrap();

        let mut bus = world.service.subscribe_to_bus();
        world.service.revoke(&app, tokens.access.expose()).await.unwrap();
        let changes = changes_among(&received(&mut bus).await);
        let revoked = |session: &domain::SessionKey, version| (session.clone(), version, ChangeKind::Revoked);
        assert_eq!(
            changes,
            [revoked(&mine, 3), revoked(&mine, 4), revoked(&shared, 4), revoked(&shared, 5)],
            "each session's in the order of its versions, nothing to an ended one"
        );
        assert_eq!(world.changes(&mine).await.len(), 4);
        assert_eq!(world.changes(&ended).await.len(), 2);
        let left = &world.listed(&client_owner(&app)).await[0].subscribed_events;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].channel_id, neighbour);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_token_outlives_a_revocation_that_raced_with_a_refresh() {
    both(|world| async move {
        let app = world.application("app").await;
        let outcomes = at_once((0..60).map(|n| {
            let (world, app) = (world.clone(), app.clone());
            async move {
                let user = world.user(&format!("user-{n}")).await;
                let tokens = world.tokens(&app, &user).await;
                let refreshing = {
                    let (world, app, tokens) = (world.clone(), app.clone(), tokens.clone());
                    tokio::spawn(async move { world.service.refresh(&app, tokens.refresh.expose()).await })
                };
                world.service.revoke(&app, tokens.access.expose()).await?;
                let mut all = vec![tokens];
                match refreshing.await.unwrap() {
                    Ok(refreshed) => all.push(refreshed),
                    Err(error) => assert_eq!(crate::world::refusal(error).kind(), "invalid_token"),
                }
                for tokens in all {
                    assert!(!world.lives(&tokens).await, "round {n}");
                    let refresh = world.service.refresh(&app, tokens.refresh.expose()).await;
                    assert_eq!(refused(refresh).kind(), "invalid_token", "round {n}");
                }
                Ok(())
            }
        }))
        .await;
        assert_eq!(winners(outcomes, &Refusal::InvalidToken(TokenFault::Used)).len(), 60);
        assert_eq!(world.count("SELECT COUNT(*) FROM access_tokens").await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_the_application_lost_needs_a_new_consent() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let tokens = world.tokens(&app, &user).await;
        let scopes = async || world.service.authenticate_user(tokens.access.expose()).await.unwrap().scopes;
        assert!(scopes().await.contains(Scope::ChatWrite));
        world.application_with("app", all_scopes_but(Scope::ChatWrite)).await;
        assert!(!scopes().await.contains(Scope::ChatWrite));
        let app = world.application_with("app", ScopeSet::of_users()).await;
        assert!(!scopes().await.contains(Scope::ChatWrite), "asked for later: it needs a new consent");
        world.code(&app, &user).await;
        assert!(scopes().await.contains(Scope::ChatWrite));
    })
    .await;
}

//! Consents, codes and first tokens.

use domain::event::EventType;
use domain::limits::{CODE_LIFETIME_MS, REUSE_GRACE_MS};
use domain::refusal::CodeFault;
use domain::session::ChangeKind;
use domain::{Refusal, Scope};
use service::sign_in::BadSignIn;

use crate::world::{
    REDIRECT, STATE, World, at_once, both, changes_among, client_owner, received, refused, winners,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_consent_gives_a_code_and_the_code_gives_tokens_for_that_user_and_application() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let tokens = world.tokens(&app, &user).await;
        let caller = world.service.authenticate_user(tokens.access.expose()).await.unwrap().caller.clone();
        assert_eq!((caller.client_id, caller.channel_id), (app.client_id, user));
        assert_eq!(caller.scopes, app.scopes);
        assert!(!caller.scopes.contains(Scope::Drops), "the scope belongs to the application, not to a user");
        assert_eq!(tokens.scopes, app.scopes);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_begins_only_for_a_known_client_and_its_own_address_byte_for_byte() {
    both(|world| async move {
        world.application("app").await;
        let other = "https://app.example/Callback";
        let with_nul = format!("{REDIRECT}\0");
        for (client, redirect, expected) in [
            ("app", REDIRECT, None),
            ("missing", REDIRECT, Some(BadSignIn::UnknownClient)),
            ("no id", REDIRECT, Some(BadSignIn::UnknownClient)),
            ("app", other, Some(BadSignIn::UnregisteredRedirect)),
            ("app", "https://app.example/callback/", Some(BadSignIn::UnregisteredRedirect)),
            ("app", &with_nul, Some(BadSignIn::UnregisteredRedirect)),
            ("app", "", Some(BadSignIn::UnregisteredRedirect)),
        ] {
            let asked = world.service.sign_in_request(client, redirect, STATE).await.unwrap();
            assert_eq!(asked.err(), expected, "{client} {redirect:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_exchange_is_refused_alike_and_does_not_use_up_the_code() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let user = world.user("user").await;
        let code = world.code(&app, &user).await;
        let foreign = world.code(&other, &user).await;
        let too_long = "x".repeat(10_000);
        for (application, code, state) in [
            (&other, code.expose(), STATE),
            (&app, foreign.expose(), STATE),
            (&app, code.expose(), "another state"),
            (&app, code.expose(), ""),
            (&app, "unknown", STATE),
            (&app, "nul\0", STATE),
            (&app, "", STATE),
            (&app, too_long.as_str(), STATE),
        ] {
            let outcome = world.service.exchange_code(application, code, state).await;
            assert_eq!(refused(outcome).kind(), "bad_code", "{} {state}", application.client_id);
        }
        for (application, code) in [(&app, &code), (&other, &foreign)] {
            assert!(world.service.exchange_code(application, code.expose(), STATE).await.is_ok());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_valid_for_10_minutes() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        for (age, alive) in [(CODE_LIFETIME_MS - 1, true), (CODE_LIFETIME_MS, false)] {
            let code = world.code(&app, &user).await;
            world.advance_ms(age as u64);
            let outcome = world.service.exchange_code(&app, code.expose(), STATE).await;
            assert_eq!(outcome.is_ok(), alive, "{age}");
            if !alive {
                assert_eq!(refused(outcome), Refusal::BadCode(CodeFault::Expired));
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_used_again_within_10_seconds_is_refused_without_revocation() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let code = world.code(&app, &user).await;
        let tokens = world.service.exchange_code(&app, code.expose(), STATE).await.unwrap();
        for wait in [0, REUSE_GRACE_MS] {
            world.advance_ms(wait as u64);
            let again = world.service.exchange_code(&app, code.expose(), STATE).await;
            assert_eq!(refused(again), Refusal::BadCode(CodeFault::Used), "{wait}");
        }
        assert!(world.lives(&tokens).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_used_again_later_revokes_the_tokens_and_subscriptions_of_its_family() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let code = world.code(&app, &user).await;
        let bought = world.service.exchange_code(&app, code.expose(), STATE).await.unwrap();
        let refreshed = world.service.refresh(&app, bought.refresh.expose()).await.unwrap();
        let other_family = world.tokens(&app, &user).await;
        let session = world.connect(&client_owner(&app)).await;
        let subscribe = async |tokens: &service::tokens::IssuedTokens, event| {
            let caller =
                world.service.authenticate_user(tokens.access.expose()).await.unwrap().caller.clone();
            world.service.subscribe(&caller, &session, event).await.unwrap();
        };
        subscribe(&bought, EventType::Chat).await;
        subscribe(&refreshed, EventType::Donation).await;
        subscribe(&other_family, EventType::Subscription).await;

        let mut bus = world.service.subscribe_to_bus();
        world.advance_ms(REUSE_GRACE_MS as u64 + 1);
        steal(&world, &app, code.expose()).await;

        assert!(!world.lives(&bought).await);
        assert!(!world.lives(&refreshed).await);
        let refresh = world.service.refresh(&app, refreshed.refresh.expose()).await;
        assert_eq!(refused(refresh).kind(), "invalid_token");
        assert!(world.lives(&other_family).await);
        assert!(world.service.refresh(&app, other_family.refresh.expose()).await.is_ok());
        let revoked = |event| (ChangeKind::Revoked, event, "user".to_owned());
        let changes = world.changes(&session).await;
        assert_eq!(changes[3..], [revoked(EventType::Chat), revoked(EventType::Donation)]);
        let changes = changes_among(&received(&mut bus).await);
        assert_eq!(
            changes,
            [(session.clone(), 4, ChangeKind::Revoked), (session.clone(), 5, ChangeKind::Revoked)]
        );
        // The third use finds no more tokens to revoke.
        steal(&world, &app, code.expose()).await;
        assert_eq!(world.changes(&session).await.len(), 5);
    })
    .await;
}

async fn steal(world: &World, app: &domain::application::Application, code: &str) {
    let reused = Refusal::BadCode(CodeFault::Reused);
    assert_eq!(refused(world.service.exchange_code(app, code, STATE).await), reused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_code_of_another_client_or_with_a_wrong_state_revokes_nothing() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let user = world.user("user").await;
        let code = world.code(&app, &user).await;
        let tokens = world.service.exchange_code(&app, code.expose(), STATE).await.unwrap();
        world.advance_ms(REUSE_GRACE_MS as u64 + 1);
        for (application, state, fault) in
            [(&other, STATE, CodeFault::Unknown), (&app, "another state", CodeFault::StateDiffers)]
        {
            let outcome = world.service.exchange_code(application, code.expose(), state).await;
            assert_eq!(refused(outcome), Refusal::BadCode(fault));
        }
        assert!(world.lives(&tokens).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_100_concurrent_exchanges_of_a_code_exactly_one_wins() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let code = world.code(&app, &user).await;
        let outcomes = at_once((0..100).map(|_| {
            let (world, app, code) = (world.clone(), app.clone(), code.clone());
            async move { world.service.exchange_code(&app, code.expose(), STATE).await }
        }))
        .await;
        let won = winners(outcomes, &Refusal::BadCode(CodeFault::Used));
        assert_eq!(won.len(), 1);
        assert!(world.lives(&won[0]).await);
        assert_eq!(world.count("SELECT COUNT(*) FROM access_tokens").await, 1);
    })
    .await;
}

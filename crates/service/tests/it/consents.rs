//! Withdrawn consents. Tokens, codes and subscriptions must not outlive them.

use domain::event::EventType;
use domain::session::ChangeKind;
use domain::{ChannelId, ClientId, Scope};

use crate::world::{
    World, all_scopes_but, at_once, both, changes_among, client_owner, received, refused, user_owner,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_consent_ends_tokens_codes_and_subscriptions() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let (user, neighbour) = (world.user("user").await, world.user("neighbour").await);
        let tokens = world.tokens(&app, &user).await;
        let caller = world.service.authenticate_user(tokens.access.expose()).await.unwrap();
        let (theirs, elsewhere) = (world.tokens(&app, &neighbour).await, world.tokens(&other, &user).await);
        let code = world.code(&app, &user).await;
        let shared = world.connect(&client_owner(&app)).await;
        let neighbours = world.service.authenticate_user(theirs.access.expose()).await.unwrap();
        for (caller, event) in
            [(&caller, EventType::Chat), (&caller, EventType::Donation), (&neighbours, EventType::Chat)]
        {
            world.service.subscribe(caller, &shared, event).await.unwrap();
        }
        let mut bus = world.service.subscribe_to_bus();
        world.service.withdraw_consent(&app.client_id, &user).await.unwrap();

        assert!(!world.lives(&tokens).await);
        assert!(world.lives(&theirs).await && world.lives(&elsewhere).await);
        let refreshed = world.service.refresh(&app, tokens.refresh.expose()).await;
        assert_eq!(refused(refreshed).kind(), "invalid_token");
        let exchanged = world.service.exchange_code(&app, code.expose(), crate::world::STATE).await;
        assert_eq!(refused(exchanged).kind(), "bad_code");
        let subscribed = world.service.subscribe(&caller, &shared, EventType::Chat).await;
        assert_eq!(refused(subscribed).kind(), "invalid_token");
        let changes: Vec<_> =
            changes_among(&received(&mut bus).await).into_iter().map(|(.., kind)| kind).collect();
        assert_eq!(changes, [ChangeKind::Revoked, ChangeKind::Revoked]);
        let left = &world.listed(&client_owner(&app)).await[0].subscribed_events;
        assert_eq!(left.iter().map(|event| event.channel_id.clone()).collect::<Vec<_>>(), [neighbour]);
        assert_eq!(world.count("SELECT COUNT(*) FROM consents").await, 2);

        // A second withdrawal changes nothing. A new consent starts from scratch.
        world.service.withdraw_consent(&app.client_id, &user).await.unwrap();
        assert!(received(&mut bus).await.is_empty());
        let again = world.tokens(&app, &user).await;
        assert!(world.lives(&again).await && !world.lives(&tokens).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_consent_between_an_application_and_a_channel_can_be_withdrawn() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let (missing, no_client) = (ChannelId::stored("missing".into()), ClientId::stored("missing".into()));
        for (client_id, channel_id) in
            [(&app.client_id, &missing), (&no_client, &user), (&no_client, &missing)]
        {
            let outcome = world.service.withdraw_consent(client_id, channel_id).await;
            assert_eq!(refused(outcome).kind(), "not_found");
        }
        assert_eq!(world.service.withdraw_consent(&app.client_id, &user).await, Ok(()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_can_withdraw_the_consent_for_a_deleted_application() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        world.tokens(&app, &user).await;
        world.advance_ms(domain::limits::UNUSED_APPLICATION_MS as u64);
        assert_eq!(world.service.inspect_unused_applications().await.unwrap().deleted.len(), 1);
        world.service.withdraw_consent(&app.client_id, &user).await.unwrap();
        assert_eq!(world.count("SELECT COUNT(*) FROM consents").await, 0);
        world.advance_ms(domain::limits::APPLICATION_RESTORABLE_MS as u64);
        let gone = world.service.withdraw_consent(&app.client_id, &user).await;
        assert_eq!(refused(gone).kind(), "not_found");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_ends_unused_codes_of_its_user() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let neighbour = world.user("neighbour").await;
        let tokens = world.tokens(&app, &user).await;
        let (code, theirs) = (world.code(&app, &user).await, world.code(&app, &neighbour).await);
        world.service.revoke(&app, tokens.refresh.expose()).await.unwrap();
        let exchange = async |code: &domain::secret::AuthCode| {
            world.service.exchange_code(&app, code.expose(), crate::world::STATE).await
        };
        assert_eq!(refused(exchange(&code).await).kind(), "bad_code");
        assert!(exchange(&theirs).await.is_ok());
        let later = world.code(&app, &user).await;
        assert!(exchange(&later).await.is_ok());
    })
    .await;
}

/// Runs one round: a user with tokens, an unused code and a session withdraws the consent while all of
/// them are used.
async fn race(world: World, n: usize) -> Result<(), service::Error> {
    let app = world.application("app").await;
    let user = world.user(&format!("user-{n}")).await;
    let tokens = world.tokens(&app, &user).await;
    let caller = world.service.authenticate_user(tokens.access.expose()).await?;
    let code = world.code(&app, &user).await;
    let session = world.connect(&user_owner(&app, &user)).await;

    let (one, two, three) = (world.clone(), world.clone(), world.clone());
    let (app_one, app_two, refresh) = (app.clone(), app.clone(), tokens.refresh.clone());
    let key = session.clone();
    let refreshing = tokio::spawn(async move { one.service.refresh(&app_one, refresh.expose()).await });
    let exchanging =
        tokio::spawn(
            async move { two.service.exchange_code(&app_two, code.expose(), crate::world::STATE).await },
        );
    let subscribing =
        tokio::spawn(async move { three.service.subscribe(&caller, &key, EventType::Chat).await });
    world.service.withdraw_consent(&app.client_id, &user).await?;

    for (bought, refusal) in [(refreshing.await, "invalid_token"), (exchanging.await, "bad_code")] {
        match bought.unwrap() {
            Ok(tokens) => assert!(!world.lives(&tokens).await),
            Err(error) => assert_eq!(crate::world::refusal(error).kind(), refusal),
        }
    }
    let kinds: Vec<_> = world.changes(&session).await.into_iter().map(|(kind, ..)| kind).collect();
    match subscribing.await.unwrap() {
        Ok(()) => assert_eq!(kinds, [ChangeKind::Subscribed, ChangeKind::Revoked]),
        Err(error) => {
            assert_eq!(crate::world::refusal(error).kind(), "invalid_token");
            assert!(kinds.is_empty());
        }
    }
    assert!(world.listed(&user_owner(&app, &user)).await[0].subscribed_events.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_credential_outlives_a_withdrawal_that_raced_with_it() {
    both(|world| async move {
        let rounds = at_once((0..40).map(|n| race(world.clone(), n))).await;
        assert!(rounds.iter().all(Result::is_ok), "{rounds:?}");
        for sql in [
            "SELECT COUNT(*) FROM consents",
            "SELECT COUNT(*) FROM access_tokens",
            "SELECT COUNT(*) FROM refresh_tokens",
            "SELECT COUNT(*) FROM authorization_codes",
            "SELECT COUNT(*) FROM session_subscriptions",
        ] {
            assert_eq!(world.count(sql).await, 0, "{sql}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consent_has_no_scope_that_the_application_lost_after_the_page_was_shown() {
    both(|world| async move {
        let (shown, user) = (world.application("app").await, world.user("user").await);
        let narrowed = world.application_with("app", all_scopes_but(Scope::ChatWrite)).await;
        let tokens = world.tokens(&shown, &user).await;
        // The application gets the scope again, but the consent does not.
        world.application_with("app", shown.scopes).await;
        let caller = world.service.authenticate_user(tokens.access.expose()).await.unwrap();
        assert_eq!(caller.caller.scopes, narrowed.user_scopes());
        // A consent has no scope that its page did not show.
        world.code(&narrowed, &user).await;
        let caller = world.service.authenticate_user(tokens.access.expose()).await.unwrap();
        assert_eq!(caller.caller.scopes, narrowed.user_scopes());
    })
    .await;
}

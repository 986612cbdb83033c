//! Subscribing, unsubscribing, and revocations of subscriptions.

use domain::application::Application;
use domain::event::EventType;
use domain::limits::SUBSCRIPTIONS_PER_SESSION_MAX;
use domain::refusal::{Cap, Resource, TokenFault};
use domain::session::ChangeKind;
use domain::{ChannelId, Refusal, Scope, ScopeSet, SessionKey};

use crate::world::{
    World, all_scopes_but, at_once, both, changes_among, client_owner, received, record, refusal, refused,
    user_owner, winners,
};

#[tokio::test(flavor = "multi_thread")]
async fn each_call_adds_one_numbered_change_and_repeated_calls_add_no_second_subscription() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let caller = world.caller(&app, &user).await;
        let session = world.connect(&user_owner(&app, &user)).await;
        let mut bus = world.service.subscribe_to_bus();
        let service = &world.service;
        service.unsubscribe(&caller, &session, EventType::Chat).await.unwrap();
        service.subscribe(&caller, &session, EventType::Chat).await.unwrap();
        service.subscribe(&caller, &session, EventType::Chat).await.unwrap();
        service.subscribe(&caller, &session, EventType::Donation).await.unwrap();
        assert_eq!(world.listed(&user_owner(&app, &user)).await[0].subscribed_events.len(), 2);
        service.unsubscribe(&caller, &session, EventType::Chat).await.unwrap();
        service.unsubscribe(&caller, &session, EventType::Chat).await.unwrap();
        let expected = [
            (ChangeKind::Unsubscribed, EventType::Chat),
            (ChangeKind::Subscribed, EventType::Chat),
            (ChangeKind::Subscribed, EventType::Chat),
            (ChangeKind::Subscribed, EventType::Donation),
            (ChangeKind::Unsubscribed, EventType::Chat),
            (ChangeKind::Unsubscribed, EventType::Chat),
        ];
        let changes: Vec<_> = world.changes(&session).await.into_iter().map(|(k, e, _)| (k, e)).collect();
        assert_eq!(changes, expected);
        let changes = changes_among(&received(&mut bus).await);
        let numbered = expected.iter().zip(1..);
        assert_eq!(changes, numbered.map(|((kind, _), v)| (session.clone(), v, *kind)).collect::<Vec<_>>());
        let later = service.session_changes(&session, 4).await.unwrap();
        assert_eq!(later.iter().map(|change| change.version).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(world.listed(&user_owner(&app, &user)).await[0].subscribed_events.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_not_the_callers_or_not_connected_is_not_found() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let (user, neighbour) = (world.user("user").await, world.user("neighbour").await);
        let caller = world.caller(&app, &user).await;
        let ended = world.connect(&user_owner(&app, &user)).await;
        world.service.disconnect_session(&ended, "client_goodbye").await.unwrap();
        let foreign = [
            SessionKey::stored("unknown".into()),
            ended,
            world.connect(&user_owner(&app, &neighbour)).await,
            world.connect(&user_owner(&other, &user)).await,
            world.connect(&client_owner(&other)).await,
        ];
        for session in &foreign {
            let subscribed = world.service.subscribe(&caller, session, EventType::Chat).await;
            assert_eq!(refused(subscribed), Refusal::NotFound(Resource::Session));
            let unsubscribed = world.service.unsubscribe(&caller, session, EventType::Chat).await;
            assert_eq!(refused(unsubscribed), Refusal::NotFound(Resource::Session));
            assert!(world.changes(session).await.is_empty());
        }
        let own = [world.connect(&user_owner(&app, &user)).await, world.connect(&client_owner(&app)).await];
        for session in &own {
            world.service.subscribe(&caller, session, EventType::Chat).await.unwrap();
        }
    })
    .await;
}

/// Returns one caller for each of `users`, for a client session.
async fn crowd(world: &World, app: &Application, users: usize) -> Vec<domain::token::Caller> {
    let callers = at_once((0..users).map(|n| {
        let (world, app) = (world.clone(), app.clone());
        async move {
            let user = world.user(&format!("user-{n}")).await;
            Ok(world.caller(&app, &user).await)
        }
    }));
    callers.await.into_iter().map(|caller| caller.unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_60_users_who_subscribe_on_one_session_at_once_exactly_30_pass() {
    both(|world| async move {
        let app = world.application("app").await;
        let callers = crowd(&world, &app, 60).await;
        let session = world.connect(&client_owner(&app)).await;
        let outcomes = at_once(callers.iter().map(|caller| {
            let (service, caller, session) = (world.service.clone(), caller.clone(), session.clone());
            async move {
                service.subscribe(&caller, &session, EventType::Chat).await?;
                Ok(caller)
            }
        }))
        .await;
        let subscribed = winners(outcomes, &Refusal::Cap(Cap::Subscriptions));
        assert_eq!(subscribed.len(), SUBSCRIPTIONS_PER_SESSION_MAX as usize);
        assert_eq!(world.changes(&session).await.len(), subscribed.len());
        let listed = &world.listed(&client_owner(&app)).await[0];
        assert_eq!(listed.subscribed_events.len(), subscribed.len());

        // The session is full: a new subscription is refused, an existing one may be repeated, and an
        // ended one makes room.
        let full = world.service.subscribe(&subscribed[0], &session, EventType::Donation).await;
        assert_eq!(refused(full), Refusal::Cap(Cap::Subscriptions));
        world.service.subscribe(&subscribed[0], &session, EventType::Chat).await.unwrap();
        world.service.unsubscribe(&subscribed[0], &session, EventType::Chat).await.unwrap();
        world.service.subscribe(&subscribed[1], &session, EventType::Donation).await.unwrap();
        assert_eq!(world.changes(&session).await.len(), subscribed.len() + 3);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_authenticated_before_its_token_or_scope_ended_is_refused() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let session = world.connect(&client_owner(&app)).await;
        let caller = world.caller(&app, &user).await;
        world.application_with("app", all_scopes_but(Scope::ChatRead)).await;
        let subscribed = world.service.subscribe(&caller, &session, EventType::Chat).await;
        assert_eq!(refused(subscribed), Refusal::ScopeMissing(Scope::ChatRead));
        world.service.subscribe(&caller, &session, EventType::Donation).await.unwrap();

        let tokens = world.tokens(&app, &user).await;
        world.service.revoke(&app, tokens.access.expose()).await.unwrap();
        let subscribed = world.service.subscribe(&caller, &session, EventType::Donation).await;
        assert_eq!(refused(subscribed).kind(), "invalid_token");
        let unsubscribed = world.service.unsubscribe(&caller, &session, EventType::Donation).await;
        assert_eq!(refused(unsubscribed).kind(), "invalid_token");
        assert!(world.listed(&client_owner(&app)).await[0].subscribed_events.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_one_family_keeps_the_subscriptions_of_another_family() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let session = world.connect(&client_owner(&app)).await;
        let code = world.code(&app, &user).await;
        let exchange = || world.service.exchange_code(&app, code.expose(), crate::world::STATE);
        let tokens = exchange().await.unwrap();
        let first = world.service.authenticate_user(tokens.access.expose()).await.unwrap();
        let second = world.caller(&app, &user).await;
        world.service.subscribe(&first, &session, EventType::Chat).await.unwrap();
        world.service.subscribe(&first, &session, EventType::Donation).await.unwrap();
        // From now on this subscription depends on the second family's tokens.
        world.service.subscribe(&second, &session, EventType::Donation).await.unwrap();
        world.advance_ms(10_001);
        assert_eq!(refused(exchange().await).kind(), "bad_code");
        let left = &world.listed(&client_owner(&app)).await[0].subscribed_events;
        assert_eq!(left.iter().map(|event| event.event_type).collect::<Vec<_>>(), [EventType::Donation]);
        let stale = world.service.subscribe(&first, &session, EventType::Chat).await;
        assert_eq!(refused(stale).kind(), "invalid_token");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_scope_revokes_its_subscriptions_in_every_session_of_the_application() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let (user, neighbour) = (world.user("user").await, world.user("neighbour").await);
        let (mine, yours) = (world.caller(&app, &user).await, world.caller(&app, &neighbour).await);
        let elsewhere = world.caller(&other, &user).await;
        let own = world.connect(&user_owner(&app, &user)).await;
        world.advance_ms(1);
        let shared = world.connect(&client_owner(&app)).await;
        let foreign = world.connect(&client_owner(&other)).await;
        for (caller, session, event) in [
            (&mine, &own, EventType::Chat),
            (&mine, &own, EventType::Donation),
            (&mine, &shared, EventType::Chat),
            (&yours, &shared, EventType::Chat),
            (&yours, &shared, EventType::Subscription),
            (&elsewhere, &foreign, EventType::Chat),
        ] {
            world.service.subscribe(caller, session, event).await.unwrap();
        }
        let mut bus = world.service.subscribe_to_bus();
        let left: ScopeSet =
            all_scopes_but(Scope::ChatRead).without([Scope::SubscriptionRead].into_iter().collect());
        world.application_with("app", left).await;
        world.application_with("app", left).await;

        let revoked = |event, user: &str| (ChangeKind::Revoked, event, user.to_owned());
        assert_eq!(world.changes(&own).await[2..], [revoked(EventType::Chat, "user")]);
        assert_eq!(
            world.changes(&shared).await[3..],
            [
                revoked(EventType::Chat, "neighbour"),
                revoked(EventType::Chat, "user"),
                revoked(EventType::Subscription, "neighbour"),
            ]
        );
        assert_eq!(world.changes(&foreign).await.len(), 1);
        let changes: Vec<(SessionKey, i64)> = changes_among(&received(&mut bus).await)
            .into_iter()
            .map(|(key, version, _)| (key, version))
            .collect();
        assert_eq!(changes, [(own, 3), (shared.clone(), 4), (shared.clone(), 5), (shared, 6)]);
    })
    .await;
}

/// Makes one user with a session and a valid token that is about to be revoked.
async fn about_to_lose(
    world: &World,
    app: &Application,
    n: usize,
) -> (ChannelId, SessionKey, domain::token::Caller) {
    let user = world.user(&format!("user-{n}")).await;
    let session = world.connect(&user_owner(app, &user)).await;
    let caller = world.caller(app, &user).await;
    (user, session, caller)
}

/// Checks after both sides of a race that an accepted subscription was revoked afterwards.
async fn check_revoked(
    world: &World,
    app: &Application,
    (user, session): (&ChannelId, &SessionKey),
    outcome: Result<(), service::Error>,
    late: &Refusal,
) {
    let kinds: Vec<ChangeKind> = world.changes(session).await.into_iter().map(|(kind, ..)| kind).collect();
    match outcome {
        Ok(()) => assert_eq!(kinds, [ChangeKind::Subscribed, ChangeKind::Revoked]),
        Err(error) => {
            assert_eq!(refusal(error), *late);
            assert!(kinds.is_empty());
        }
    }
    assert!(world.listed(&user_owner(app, user)).await[0].subscribed_events.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_subscription_outlives_a_revocation_that_raced_with_it() {
    both(|world| async move {
        let app = world.application("app").await;
        let rounds = at_once((0..60).map(|n| {
            let (world, app) = (world.clone(), app.clone());
            async move {
                let (user, session, caller) = about_to_lose(&world, &app, n).await;
                let tokens = world.tokens(&app, &user).await;
                let revoking = {
                    let (service, app) = (world.service.clone(), app.clone());
                    tokio::spawn(async move { service.revoke(&app, tokens.access.expose()).await })
                };
                let outcome = world.service.subscribe(&caller, &session, EventType::Chat).await;
                revoking.await.unwrap()?;
                check_revoked(
                    &world,
                    &app,
                    (&user, &session),
                    outcome,
                    &Refusal::InvalidToken(TokenFault::Revoked),
                )
                .await;
                Ok(())
            }
        }));
        assert_eq!(winners(rounds.await, &Refusal::Internal).len(), 60);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_subscription_outlives_a_lost_scope_that_raced_with_it() {
    both(|world| async move {
        let rounds = at_once((0..60).map(|n| {
            let world = world.clone();
            async move {
                let app = world.application(&format!("app-{n}")).await;
                let (user, session, caller) = about_to_lose(&world, &app, n).await;
                let changing = {
                    let service = world.service.clone();
                    let record = record(&format!("app-{n}"), all_scopes_but(Scope::ChatRead));
                    tokio::spawn(async move { service.put_application(record).await })
                };
                let outcome = world.service.subscribe(&caller, &session, EventType::Chat).await;
                changing.await.unwrap()?;
                check_revoked(
                    &world,
                    &app,
                    (&user, &session),
                    outcome,
                    &Refusal::ScopeMissing(Scope::ChatRead),
                )
                .await;
                Ok(())
            }
        }));
        assert_eq!(winners(rounds.await, &Refusal::Internal).len(), 60);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_of_changes_keeps_the_last_thousand() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let caller = world.caller(&app, &user).await;
        let session = world.connect(&user_owner(&app, &user)).await;
        for _ in 0..23 {
            let outcomes = at_once((0..50).map(|_| {
                let (service, caller, session) = (world.service.clone(), caller.clone(), session.clone());
                async move { service.subscribe(&caller, &session, EventType::Chat).await }
            }));
            assert!(outcomes.await.iter().all(Result::is_ok));
        }
        let changes = world.service.session_changes(&session, 0).await.unwrap();
        let versions: Vec<i64> = changes.iter().map(|change| change.version).collect();
        assert_eq!(versions, (101..=1_150).collect::<Vec<_>>());
    })
    .await;
}

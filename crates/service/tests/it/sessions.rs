//! Session URLs, handshakes, caps, lists.

use domain::event::EventType;
use domain::limits::{
    CLIENT_SESSIONS_MAX, DAY_MS, DISCONNECTED_SESSION_VISIBLE_MS, PAGE_MAX, SESSION_LIST_SIZE_MAX,
    SESSION_URL_LIFETIME_MS, USER_SESSIONS_MAX,
};
use domain::refusal::{Credential, CredentialFault};
use domain::secret::SessionUrlToken;
use domain::session::SessionOwner;
use domain::{Profile, Refusal, ScopeSet};

use crate::world::{World, at_once, both, client_owner, record, refused, user_owner, winners};

#[tokio::test(flavor = "multi_thread")]
async fn a_url_opens_one_session_of_its_owner_with_the_applications_profile() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let observed = service::applications::ApplicationRecord {
            profile: Some(Profile::Observed),
            ..record("observed", ScopeSet::of_users())
        };
        world.service.put_application(observed).await.unwrap();
        let observed = SessionOwner::Client { client_id: domain::ClientId::stored("observed".into()) };
        for (owner, profile) in [
            (client_owner(&app), Profile::Documented),
            (user_owner(&app, &user), Profile::Documented),
            (observed, Profile::Observed),
        ] {
            let url = world.service.issue_session_url(owner.clone()).await.unwrap();
            let session = world.service.connect_session(url.expose()).await.unwrap();
            assert_eq!((&session.owner, session.profile), (&owner, profile));
            let again = world.service.connect_session(url.expose()).await;
            assert_eq!(refused(again), Refusal::Unauthorized(CredentialFault::SessionUrlUsed));
            let listed = world.listed(&owner).await;
            assert_eq!(listed.len(), 1);
            assert_eq!(listed[0].session_key, session.session_key);
            assert_eq!(listed[0].connected_at, world.service.clock().now());
            assert_eq!(listed[0].disconnected_at, None);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_valid_for_30_seconds_and_an_unknown_one_is_refused() {
    both(|world| async move {
        let app = world.application("app").await;
        for (age, alive) in [(SESSION_URL_LIFETIME_MS - 1, true), (SESSION_URL_LIFETIME_MS, false)] {
            let url = world.service.issue_session_url(client_owner(&app)).await.unwrap();
            world.advance_ms(age as u64);
            let connected = world.service.connect_session(url.expose()).await;
            let expired = Refusal::Unauthorized(CredentialFault::SessionUrlExpired);
            assert_eq!(connected.map(drop), if alive { Ok(()) } else { Err(expired.into()) }, "{age}");
        }
        for (url, fault) in [
            ("", CredentialFault::Missing(Credential::SessionUrl)),
            ("unknown", CredentialFault::SessionUrlUnknown),
            ("nul\0", CredentialFault::SessionUrlUnknown),
            (&"x".repeat(10_000), CredentialFault::Malformed(Credential::SessionUrl)),
        ] {
            assert_eq!(refused(world.service.connect_session(url).await), Refusal::Unauthorized(fault));
        }
        assert_eq!(world.listed(&client_owner(&app)).await.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_40_concurrent_uses_of_a_url_exactly_one_connects() {
    both(|world| async move {
        let app = world.application("app").await;
        let url = world.service.issue_session_url(client_owner(&app)).await.unwrap();
        let outcomes = at_once((0..40).map(|_| {
            let (service, url) = (world.service.clone(), url.clone());
            async move { service.connect_session(url.expose()).await }
        }))
        .await;
        // A very early loser cannot distinguish a used URL from an unknown one yet.
        let outcomes = outcomes.into_iter().map(|outcome| {
            outcome.map_err(|refusal| match refusal {
                Refusal::Unauthorized(CredentialFault::SessionUrlUnknown) => {
                    Refusal::Unauthorized(CredentialFault::SessionUrlUsed)
                }
                refusal => refusal,
            })
        });
        let used = Refusal::Unauthorized(CredentialFault::SessionUrlUsed);
        assert_eq!(winners(outcomes.collect(), &used).len(), 1);
        assert_eq!(world.connected(&client_owner(&app)).await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_application_never_has_more_than_10_client_sessions() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let owner = client_owner(&app);
        cap_holds(&world, std::slice::from_ref(&owner), CLIENT_SESSIONS_MAX as usize).await;
        // The sessions of another application or of a user do not count.
        world.connect(&client_owner(&other)).await;
        let user = world.user("user").await;
        world.connect(&user_owner(&app, &user)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_user_never_has_more_than_3_sessions_whatever_the_application() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let (user, neighbour) = (world.user("user").await, world.user("neighbour").await);
        cap_holds(&world, &[user_owner(&app, &user), user_owner(&other, &user)], USER_SESSIONS_MAX as usize)
            .await;
        world.connect(&user_owner(&app, &neighbour)).await;
        world.connect(&client_owner(&app)).await;
    })
    .await;
}

/// Runs 40 concurrent handshakes with valid URLs of owners that share one cap.
async fn cap_holds(world: &World, owners: &[SessionOwner], cap: usize) {
    let mut urls: Vec<SessionUrlToken> = Vec::new();
    for owner in owners.iter().cycle().take(40) {
        urls.push(world.service.issue_session_url(owner.clone()).await.unwrap());
    }
    let outcomes = at_once(urls.iter().map(|url| {
        let (service, url) = (world.service.clone(), url.clone());
        async move { service.connect_session(url.expose()).await }
    }))
    .await;
    let refused_urls: Vec<&SessionUrlToken> =
        urls.iter().zip(&outcomes).filter_map(|(url, outcome)| outcome.is_err().then_some(url)).collect();
    let full = Refusal::Cap(owners[0].cap());
    let connected = winners(outcomes, &full);
    assert_eq!(connected.len(), cap);

    // While all slots are taken, none of the owners gets a new URL.
    for owner in owners {
        let url = world.service.issue_session_url(owner.clone()).await;
        assert_eq!(refused(url), full);
    }
    // After one session ended, a URL that was refused before opens one more session.
    world.service.disconnect_session(&connected[0].session_key, "client_goodbye").await.unwrap();
    let mut late = 0;
    for url in refused_urls {
        match world.service.connect_session(url.expose()).await {
            Ok(_) => late += 1,
            Err(error) => assert_eq!(crate::world::refusal(error), full),
        }
    }
    assert_eq!(late, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn ending_a_session_twice_keeps_its_first_end() {
    both(|world| async move {
        let app = world.application("app").await;
        let owner = client_owner(&app);
        let session = world.connect(&owner).await;
        world.advance_ms(1_000);
        world.service.disconnect_session(&session, "client_goodbye").await.unwrap();
        let end = world.service.clock().now();
        world.advance_ms(1_000);
        world.service.disconnect_session(&session, "ping_timeout").await.unwrap();
        assert_eq!(world.listed(&owner).await[0].disconnected_at, Some(end));
        let unknown = domain::SessionKey::stored("unknown".into());
        world.service.disconnect_session(&unknown, "client_goodbye").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_shows_the_callers_own_sessions_only_newest_first() {
    both(|world| async move {
        let (app, other) = (world.application("app").await, world.application("other").await);
        let (user, neighbour) = (world.user("user").await, world.user("neighbour").await);
        let owners = [
            client_owner(&app),
            user_owner(&app, &user),
            user_owner(&app, &neighbour),
            user_owner(&other, &user),
            client_owner(&other),
        ];
        let mut expected = vec![Vec::new(); owners.len()];
        for moment in [0, 5, 0] {
            world.advance_ms(moment);
            for (owner, sessions) in owners.iter().zip(&mut expected) {
                let session = world.connect(owner).await;
                world.service.disconnect_session(&session, "client_goodbye").await.unwrap();
                sessions.push((world.service.clock().now(), session));
            }
        }
        for (owner, mut sessions) in owners.iter().zip(expected) {
            sessions.reverse();
            let listed: Vec<_> =
                world.listed(owner).await.into_iter().map(|s| (s.connected_at, s.session_key)).collect();
            assert_eq!(listed, sessions, "{owner:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_list_are_consecutive_and_the_page_after_the_last_is_empty() {
    both(|world| async move {
        let app = world.application("app").await;
        let owner = client_owner(&app);
        for _ in 0..5 {
            let session = world.connect(&owner).await;
            world.service.disconnect_session(&session, "client_goodbye").await.unwrap();
            world.advance_ms(1);
        }
        let all = world.listed(&owner).await;
        assert_eq!(all.len(), 5);
        for (page, expected) in [(0, &all[0..2]), (1, &all[2..4]), (2, &all[4..5]), (3, &[][..])] {
            let found = world.page(&owner, 2, page).await;
            let keys = |sessions: &[domain::session::SessionListing]| {
                sessions.iter().map(|session| session.session_key.clone()).collect::<Vec<_>>()
            };
            assert_eq!(keys(&found), keys(expected), "page {page}");
        }
        assert!(world.page(&owner, SESSION_LIST_SIZE_MAX, PAGE_MAX).await.is_empty());
        let page = service::Page { size: 2, page: 9 };
        let counted = world.service.sessions(owner, page, true).await.unwrap();
        assert_eq!((counted.sessions.len(), counted.total), (0, Some(5)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_shows_ended_sessions_for_90_days_with_what_they_were_subscribed_to() {
    both(|world| async move {
        world.service.prepare_partitions().await;
        let (app, user) = (world.application("app").await, world.user("user").await);
        let owner = user_owner(&app, &user);
        let caller = world.caller(&app, &user).await;
        let session = world.connect(&owner).await;
        world.service.subscribe(&caller, &session, EventType::Donation).await.unwrap();
        world.service.subscribe(&caller, &session, EventType::Chat).await.unwrap();
        world.service.unsubscribe(&caller, &session, EventType::Donation).await.unwrap();
        world.service.disconnect_session(&session, "client_goodbye").await.unwrap();
        let still_open = world.connect(&owner).await;

        world.advance_ms(DISCONNECTED_SESSION_VISIBLE_MS as u64 - 1);
        world.service.sweep().await.unwrap();
        let listed = world.listed(&owner).await;
        let events: Vec<EventType> = listed
            .iter()
            .filter(|listed| listed.session_key == session)
            .flat_map(|listed| listed.subscribed_events.iter().map(|event| event.event_type))
            .collect();
        assert_eq!((listed.len(), events), (2, vec![EventType::Chat]));

        world.advance_ms(1);
        for _ in 0..2 {
            let listed = world.listed(&owner).await;
            assert_eq!(listed.len(), 1);
            assert_eq!(listed[0].session_key, still_open);
            world.service.sweep().await.unwrap();
        }
        // On PostgreSQL the sessions of nine days go as a whole, without those that are connected.
        world.advance_ms(9 * DAY_MS as u64);
        world.service.sweep().await.unwrap();
        assert_eq!(world.count("SELECT COUNT(*) FROM sessions").await, 1);
        assert_eq!(world.count("SELECT COUNT(*) FROM session_subscriptions").await, 0);
        assert_eq!(world.listed(&owner).await[0].session_key, still_open);
    })
    .await;
}

//! The deletion and restoration of unused applications
//! (`docs/spec/authorization.md#unused-applications`).

use domain::event::EventType;
use domain::limits::{APPLICATION_RESTORABLE_MS, DAY_MS, UNUSED_APPLICATION_MS, USE_WRITTEN_EVERY_MS};
use domain::refusal::{CredentialFault, Resource};
use domain::session::ChangeKind;
use domain::{ClientId, Refusal, ScopeSet, SessionKey};
use service::Service;
use service::application_life::Inspection;

use crate::world::{START_MS, World, at_once, both, client_owner, record, refusal, refused, user_owner};

fn client(id: &str) -> ClientId {
    ClientId::stored(id.to_owned())
}

fn days(days: i64) -> u64 {
    (days * DAY_MS) as u64
}

async fn inspect(world: &World) -> Inspection {
    world.service.inspect_unused_applications().await.unwrap()
}

async fn kinds(world: &World, id: &str) -> Vec<String> {
    let details = world.service.application_details(&client(id)).await.unwrap();
    details.life.notices.into_iter().map(|notice| notice.kind).collect()
}

/// Returns the last use, in milliseconds after the start.
async fn last_used(world: &World, id: &str) -> i64 {
    world.service.application_details(&client(id)).await.unwrap().life.last_used_at.as_millis() - START_MS
}

async fn purge(service: &Service) -> u64 {
    let mut purged = 0;
    loop {
        match service.purge_applications().await.unwrap() {
            0 => return purged,
            some => purged += some,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_application_is_warned_about_three_times_then_deleted_and_purged_after_120_days() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        world.tokens(&app, &user).await;
        let mut at = 0;
        for (day, warned, deleted, irrecoverable) in [
            (59, None, false, 0),
            (60, Some(60), false, 0),
            (79, None, false, 0),
            (80, Some(80), false, 0),
            (88, None, false, 0),
            (89, Some(89), false, 0),
            (90, None, true, 0),
            (119, None, false, 0),
            (120, None, false, 1),
        ] {
            // Nothing happens one moment before the day.
            world.advance_ms(days(day - at) - 1);
            assert_eq!(inspect(&world).await, Inspection::default(), "just before day {day}");
            world.advance_ms(1);
            at = day;
            let expected = Inspection {
                warned: warned.map(|days| (client("app"), days)).into_iter().collect(),
                deleted: deleted.then(|| client("app")).into_iter().collect(),
                irrecoverable,
            };
            assert_eq!(inspect(&world).await, expected, "day {day}");
            assert_eq!(inspect(&world).await, Inspection::default(), "day {day}, again");
            assert_eq!(world.service.application(&client("app")).await.unwrap().is_some(), day < 90);
            if day == 89 {
                assert_eq!(
                    kinds(&world, "app").await,
                    ["UNUSED_60_DAYS", "UNUSED_80_DAYS", "UNUSED_89_DAYS"]
                );
            }
            if day == 119 {
                assert_eq!(purge(&world.service).await, 0);
                assert!(world.service.application_details(&client("app")).await.is_ok());
            }
        }
        let restored = world.service.restore_application(&client("app")).await;
        assert_eq!(refused(restored), Refusal::NotFound(Resource::Application));
        assert_eq!(
            refused(world.service.application_details(&client("app")).await),
            Refusal::NotFound(Resource::Application)
        );
        assert!(purge(&world.service).await >= 2, "the consent and the application");
        assert_eq!(world.count("SELECT COUNT(*) FROM applications").await, 0);
        assert_eq!(world.count("SELECT COUNT(*) FROM consents").await, 0);
        assert_eq!(world.count("SELECT COUNT(*) FROM channels").await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_is_used_in_between_starts_over() {
    both(|world| async move {
        world.application("app").await;
        world.advance_ms(days(89));
        assert_eq!(inspect(&world).await.warned.len(), 3);
        world.service.note_scope_use(&client("app"));
        // The inspection first writes the uses that this node has recorded in memory.
        world.advance_ms(days(1));
        assert_eq!(inspect(&world).await, Inspection::default());
        assert_eq!(last_used(&world, "app").await, 89 * DAY_MS);
        assert!(kinds(&world, "app").await.is_empty());
        world.advance_ms(days(59) - 1);
        assert_eq!(inspect(&world).await, Inspection::default());
        world.advance_ms(1);
        assert_eq!(inspect(&world).await.warned, [(client("app"), 60)], "60 days after the last use");
        world.advance_ms(days(30));
        assert_eq!(inspect(&world).await.deleted, [client("app")]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_uses_adds_one_write_an_hour() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let tokens = world.tokens(&app, &user).await;
        let before = world.service.store_stats();
        let now = world.service.clock().now().as_millis() - START_MS;
        for _ in 0..500 {
            world.service.authenticate_user(tokens.access.expose()).await.unwrap();
            world.service.note_scope_use(&app.client_id);
        }
        let after = world.service.store_stats();
        assert_eq!((before.committed, before.syncs), (after.committed, after.syncs));
        world.advance_ms(60_000);
        world.service.note_scope_use(&app.client_id);
        assert_eq!(world.service.flush_uses().await, Ok(1));
        assert_eq!(last_used(&world, "app").await, now + 60_000);
        assert_eq!(world.service.store_stats().committed, before.committed + 1);

        world.advance_ms(60_000);
        world.service.note_scope_use(&app.client_id);
        assert_eq!(world.service.flush_uses().await, Ok(0), "written less than an hour ago");
        assert_eq!(world.service.store_stats().committed, before.committed + 1);
        world.advance_ms(USE_WRITTEN_EVERY_MS as u64 - 60_000);
        assert_eq!(world.service.flush_uses().await, Ok(1));
        assert_eq!(
            last_used(&world, "app").await,
            now + 120_000,
            "the time of the last use, not of the write"
        );
        assert_eq!(world.service.flush_uses().await, Ok(0));

        world.service.note_scope_use(&app.client_id);
        assert_eq!(world.service.flush_all_uses().await, Ok(1), "as when a node stops");
        assert_eq!(last_used(&world, "app").await, now + 60_000 + USE_WRITTEN_EVERY_MS);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_that_could_not_be_written_are_kept() {
    both(|world| async move {
        world.application("app").await;
        world.advance_ms(1_000);
        world.service.note_scope_use(&client("app"));
        let gone = world.node("node-b");
        gone.note_scope_use(&client("app"));
        assert_eq!(gone.flush_uses().await, Ok(1));
        assert_eq!(
            world.service.flush_uses().await,
            Ok(1),
            "another node has written the use: this is no error"
        );
        world.store.close().await;
        world.advance_ms(USE_WRITTEN_EVERY_MS as u64);
        world.service.note_scope_use(&client("app"));
        for _ in 0..2 {
            assert!(world.service.flush_uses().await.is_err());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_a_subscription_keeps_its_application() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let caller = world.caller(&app, &user).await;
        let session = world.connect(&client_owner(&app)).await;
        world.service.subscribe(&caller, &session, EventType::Chat).await.unwrap();
        world.advance_ms(days(100));
        assert_eq!(inspect(&world).await, Inspection::default());
        world.service.disconnect_session(&session, "x").await.unwrap();
        let bare = world.connect(&client_owner(&app)).await;
        world.advance_ms(days(90) - 1);
        assert!(inspect(&world).await.deleted.is_empty());
        world.advance_ms(1);
        assert_eq!(
            inspect(&world).await.deleted,
            [client("app")],
            "a session without a subscription is no use"
        );
        assert_eq!(last_used(&world, "app").await, 100 * DAY_MS);
        world.service.disconnect_session(&bare, "x").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_application_is_refused_everywhere_and_restored_completely() {
    both(|world| async move {
        let secret =
            world.service.put_application(record("app", ScopeSet::of_users())).await.unwrap().unwrap();
        let app = world.service.application(&client("app")).await.unwrap().unwrap();
        let user = world.user("user").await;
        world.advance_ms(days(90) - 20_000);
        let tokens = world.tokens(&app, &user).await;
        let idle = world.connect(&user_owner(&app, &user)).await;
        let url = world.service.issue_session_url(user_owner(&app, &user)).await.unwrap();
        world.advance_ms(20_000);
        assert_eq!(inspect(&world).await.deleted, [client("app")]);

        let proven = || world.service.authenticate_client("app", secret.expose());
        assert_eq!(refused(proven().await), Refusal::InvalidClient);
        assert!(!world.lives(&tokens).await);
        assert!(world.service.sign_in_request("app", crate::world::REDIRECT, "s").await.unwrap().is_err());
        let opened = world.service.connect_session(url.expose()).await;
        assert_eq!(refused(opened.map(drop)), Refusal::Unauthorized(CredentialFault::SessionUrlUnknown));
        // A session without subscriptions was no use of the application. It ends with the application, on
        // any node.
        assert_eq!(world.connected(&user_owner(&app, &user)).await, 0);
        let closing = world.service.sessions_closing(&SessionKey::stored(String::new())).await.unwrap();
        assert_eq!(closing, [(idle.clone(), "revoked".to_owned())]);
        world.service.disconnect_session(&idle, "revoked").await.unwrap();
        assert_eq!(world.service.sessions_closing(&SessionKey::stored(String::new())).await, Ok(Vec::new()));

        world.service.restore_application(&client("app")).await.unwrap();
        assert!(proven().await.is_ok() && world.lives(&tokens).await);
        world.service.connect_session(url.expose()).await.unwrap();
        world.service.refresh(&app, tokens.refresh.expose()).await.unwrap();
        assert_eq!(last_used(&world, "app").await, 90 * DAY_MS);
        assert_eq!(inspect(&world).await, Inspection::default());
        // Restoring an application that is not deleted keeps it for another full period.
        world.advance_ms(days(59));
        world.service.restore_application(&client("app")).await.unwrap();
        world.advance_ms(days(59));
        assert_eq!(inspect(&world).await, Inspection::default());
        let missing = world.service.restore_application(&client("missing")).await;
        assert_eq!(refused(missing), Refusal::NotFound(Resource::Application));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_restores_in_time_and_makes_a_new_application_afterwards() {
    both(|world| async move {
        let first = world.service.put_application(record("app", ScopeSet::EMPTY)).await.unwrap().unwrap();
        world.advance_ms(UNUSED_APPLICATION_MS as u64);
        assert_eq!(inspect(&world).await.deleted, [client("app")]);
        world.advance_ms(APPLICATION_RESTORABLE_MS as u64 - 1);
        assert!(world.service.put_application(record("app", ScopeSet::EMPTY)).await.unwrap().is_none());
        assert!(world.service.authenticate_client("app", first.expose()).await.is_ok());

        world.advance_ms(UNUSED_APPLICATION_MS as u64);
        assert_eq!(inspect(&world).await.deleted, [client("app")]);
        world.advance_ms(APPLICATION_RESTORABLE_MS as u64);
        // The purge has not run yet, but the application cannot be restored any more.
        let second = world.service.put_application(record("app", ScopeSet::EMPTY)).await.unwrap().unwrap();
        assert!(world.service.authenticate_client("app", second.expose()).await.is_ok());
        let old = world.service.authenticate_client("app", first.expose()).await;
        assert_eq!(refused(old), Refusal::InvalidClient);
        assert_eq!(inspect(&world).await, Inspection::default());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restore_that_races_with_the_purge_restores_everything_or_nothing() {
    both(|world| async move {
        let user = world.user("user").await;
        for n in 0..12 {
            let app = world.application(&format!("app-{n}")).await;
            world.tokens(&app, &user).await;
        }
        world.advance_ms(UNUSED_APPLICATION_MS as u64);
        assert_eq!(inspect(&world).await.deleted.len(), 12);
        world.advance_ms(APPLICATION_RESTORABLE_MS as u64 - 1);
        let (late, world_late) = (world.node("late"), world.clone());
        // One node's call began just before the end, and another node's purge runs just after the end.
        let restoring = (0..12).map(|n| {
            let service = world.service.clone();
            async move { service.restore_application(&client(&format!("app-{n}"))).await }
        });
        let restoring = restoring.collect::<Vec<_>>();
        let purging = tokio::spawn(async move {
            world_late.advance_ms(1);
            late.inspect_unused_applications().await.unwrap();
            purge(&late).await
        });
        let outcomes = at_once(restoring.into_iter()).await;
        purging.await.unwrap();
        purge(&world.service).await;
        let alive = outcomes
            .iter()
            .filter(|outcome| match outcome {
                Ok(()) => true,
                Err(refusal) => {
                    assert_eq!(*refusal, Refusal::NotFound(Resource::Application));
                    false
                }
            })
            .count() as i64;
        assert_eq!(world.count("SELECT COUNT(*) FROM applications").await, alive);
        assert_eq!(world.count("SELECT COUNT(*) FROM consents").await, alive);
        assert_eq!(world.count("SELECT COUNT(*) FROM refresh_tokens").await, alive);
        for (n, outcome) in outcomes.iter().enumerate() {
            let there = world.service.application(&client(&format!("app-{n}"))).await.unwrap().is_some();
            assert_eq!(there, outcome.is_ok());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_subscription_outlives_an_application_that_is_deleted_at_the_same_time() {
    both(|world| async move {
        let user = world.user("user").await;
        let mut cast = Vec::new();
        for n in 0..10 {
            let app = world.application(&format!("app-{n}")).await;
            cast.push(app);
        }
        world.advance_ms(UNUSED_APPLICATION_MS as u64 - 1);
        let mut ready = Vec::new();
        for app in &cast {
            ready.push((world.caller(app, &user).await, world.connect(&client_owner(app)).await));
        }
        world.advance_ms(1);
        let looking = {
            let service = world.service.clone();
            tokio::spawn(async move { service.inspect_unused_applications().await })
        };
        let subscribing = ready.clone().into_iter().map(|(caller, session)| {
            let service = world.service.clone();
            async move { service.subscribe(&caller, &session, EventType::Chat).await }
        });
        let outcomes = at_once(subscribing).await;
        looking.await.unwrap().unwrap();
        for ((app, (_, session)), outcome) in cast.iter().zip(&ready).zip(outcomes) {
            let lives = world.service.application(&app.client_id).await.unwrap().is_some();
            let kinds: Vec<_> = world.changes(session).await.into_iter().map(|(kind, ..)| kind).collect();
            match (lives, outcome) {
                (true, Ok(())) => assert_eq!(kinds, [ChangeKind::Subscribed]),
                (false, Ok(())) => assert_eq!(kinds, [ChangeKind::Subscribed, ChangeKind::Revoked]),
                (lives, Err(refusal)) => {
                    assert!(!lives && kinds.is_empty());
                    assert_eq!(refusal.kind(), "invalid_token");
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_inspect_at_the_same_time_send_each_notice_once() {
    both(|world| async move {
        for n in 0..20 {
            world.application(&format!("app-{n}")).await;
        }
        world.advance_ms(UNUSED_APPLICATION_MS as u64);
        let nodes: Vec<_> = (0..4).map(|n| world.node(&format!("node-{n}"))).collect();
        let inspections = at_once(nodes.into_iter().map(|node| async move {
            // A node that lost a race for one application handles the rest in its next inspection.
            let mut all = Inspection::default();
            for _ in 0..20 {
                let inspection = node.inspect_unused_applications().await?;
                all.warned.extend(inspection.warned);
                all.deleted.extend(inspection.deleted);
            }
            Ok(all)
        }))
        .await;
        let inspections: Vec<_> = inspections.into_iter().map(|inspection| inspection.unwrap()).collect();
        assert_eq!(inspections.iter().map(|inspection| inspection.warned.len()).sum::<usize>(), 60);
        assert_eq!(inspections.iter().map(|inspection| inspection.deleted.len()).sum::<usize>(), 20);
        assert_eq!(world.count("SELECT COUNT(*) FROM application_notices").await, 60);
        let error = world.service.authenticate_client("app-0", "x").await.unwrap_err();
        assert_eq!(refusal(error), Refusal::InvalidClient);
    })
    .await;
}

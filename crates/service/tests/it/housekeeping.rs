//! Nodes that join, leave and die, and the sweep of expired rows.

use domain::event::EventType;
use domain::limits::{
    ACCESS_TOKEN_LIFETIME_MS, DAY_MS, ENDED_TOKENS_KEPT_MS, NODE_DEAD_AFTER_MS, SESSION_URLS_KEPT_MS,
};
use service::Job;
use service::health::HealthStatus;
use service::housekeeping::NodeStatus;
use store::Tx;

use crate::world::{at_once, both, client_owner, user_owner};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_silent_for_20_seconds_loses_its_sessions_and_is_notified() {
    both(|world| async move {
        let app = world.application("app").await;
        let owner = client_owner(&app);
        let (here, there) = (world.service.clone(), world.node("node-b"));
        here.join(false).await.unwrap();
        there.join(false).await.unwrap();
        let own = world.connect(&owner).await;
        let url = there.issue_session_url(owner.clone()).await.unwrap();
        there.connect_session(url.expose()).await.unwrap();

        world.advance_ms(NODE_DEAD_AFTER_MS as u64 - 1);
        assert_eq!(here.heartbeat().await, Ok(NodeStatus::Alive));
        assert_eq!(world.connected(&owner).await, 2);
        world.advance_ms(1);
        assert_eq!(here.heartbeat().await, Ok(NodeStatus::Alive));
        let left: Vec<_> =
            world.listed(&owner).await.into_iter().filter(|s| s.disconnected_at.is_none()).collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].session_key, own);

        // The node has not noticed yet that it was declared dead, and opens another session. That session
        // has no living node either.
        for _ in 0..2 {
            let url = there.issue_session_url(owner.clone()).await.unwrap();
            there.connect_session(url.expose()).await.unwrap();
            assert_eq!(world.connected(&owner).await, 2);
            // If that node dies before it notices, other nodes end the session.
            assert_eq!(here.heartbeat().await, Ok(NodeStatus::Alive));
            assert_eq!(world.connected(&owner).await, 1);
        }
        let url = there.issue_session_url(owner.clone()).await.unwrap();
        there.connect_session(url.expose()).await.unwrap();
        assert_eq!(there.heartbeat().await, Ok(NodeStatus::WasDeclaredDead));
        assert_eq!(world.connected(&owner).await, 1);
        assert_eq!(there.heartbeat().await, Ok(NodeStatus::Alive));
        let url = there.issue_session_url(owner.clone()).await.unwrap();
        there.connect_session(url.expose()).await.unwrap();
        assert_eq!(here.heartbeat().await, Ok(NodeStatus::Alive));
        assert_eq!(world.connected(&owner).await, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_jobs_do_not_succeed_is_degraded() {
    both(|world| async move {
        let service = &world.service;
        service.join(false).await.unwrap();
        assert_eq!(service.health().status(), HealthStatus::Ok);
        world.advance_ms(11_000);
        assert_eq!(service.health().status(), HealthStatus::Down, "the store was silent for 11 s");
        assert_eq!(service.heartbeat().await, Ok(NodeStatus::Alive));
        let health = service.health();
        assert_eq!(health.status(), HealthStatus::Degraded);
        let late: Vec<_> =
            health.parts.iter().filter(|part| part.problem == Some("LATE")).map(|part| part.name).collect();
        assert!(late.contains(&"credential_watch") && !late.contains(&"sweep"), "{late:?}");
        let store = health.parts.iter().find(|part| part.name == "store").unwrap();
        assert_eq!((store.problem, store.last_success), (None, Some(service.clock().now())));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_cannot_be_swept_fails_the_sweep_and_holds_up_no_other() {
    both(|world| async move {
        let (service, app) = (&world.service, world.application("app").await);
        service.issue_session_url(client_owner(&app)).await.unwrap();
        let urls = async || {
            let count = "SELECT COUNT(*) FROM session_urls";
            let counted =
                world.store.read(async move |tx: &mut Tx| tx.query_one(count, &[]).await?.get::<i64>(0));
            counted.await.unwrap()
        };
        let rename = "ALTER TABLE claim_changes RENAME COLUMN changed_at TO altered_at";
        let broken = world.store.write(async move |tx: &mut Tx| tx.execute(rename, &[]).await);
        broken.await.unwrap();
        assert_eq!(urls().await, 1);
        // The partitions of today reach some days.
        world.advance_ms(10 * DAY_MS as u64);
        service.sweep().await.expect_err("one kind cannot be swept");
        assert_eq!(urls().await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_is_not_reached_shows_within_a_few_of_its_intervals() {
    both(|world| async move {
        let service = &world.service;
        service.join(false).await.unwrap();
        let problem = || {
            let parts = service.health().parts;
            parts.into_iter().find(|part| part.name == "archive").and_then(|part| part.problem)
        };
        service.record_job_run(Job::Archive, true);
        for (after_ms, expected) in [(15_000, None), (6_000, Some("ARCHIVE_NOT_REACHED"))] {
            world.advance_ms(after_ms);
            service.record_job_run(Job::Archive, false);
            assert_eq!(problem(), expected);
        }
        service.record_job_run(Job::Archive, true);
        assert_eq!(problem(), None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_ends_its_earlier_sessions_and_those_of_dead_nodes() {
    both(|world| async move {
        let app = world.application("app").await;
        let owner = client_owner(&app);
        world.service.join(false).await.unwrap();
        world.connect(&owner).await;
        // The same node starts again, as after a crash. There is no other node.
        assert_eq!(world.node("node-a").join(false).await, Ok(1));
        world.connect(&owner).await;
        assert_eq!(world.node("node-b").join(false).await, Ok(0), "the other node is alive");
        assert_eq!(world.connected(&owner).await, 1);
        assert_eq!(world.node("node-c").join(true).await, Ok(1), "alone, so no other node is alive");
        assert_eq!(world.connected(&owner).await, 0);
        assert_eq!(world.service.heartbeat().await, Ok(NodeStatus::WasDeclaredDead));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leaves_ends_its_last_sessions() {
    both(|world| async move {
        let app = world.application("app").await;
        let owner = client_owner(&app);
        let there = world.node("node-b");
        world.service.join(false).await.unwrap();
        there.join(false).await.unwrap();
        world.connect(&owner).await;
        let url = there.issue_session_url(owner.clone()).await.unwrap();
        there.connect_session(url.expose()).await.unwrap();
        world.service.leave().await.unwrap();
        assert_eq!(world.connected(&owner).await, 1);
        there.leave().await.unwrap();
        assert_eq!(world.connected(&owner).await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_were_all_silent_do_not_deadlock() {
    both(|world| async move {
        // Seven nodes besides this one, as many as there are connections in tests.
        let nodes: Vec<_> = (0..7).map(|n| world.node(&format!("node-{n}"))).collect();
        for node in &nodes {
            node.join(false).await.unwrap();
        }
        for round in 0..5 {
            world.advance_ms(NODE_DEAD_AFTER_MS as u64);
            let beats = at_once(nodes.iter().map(|node| {
                let node = node.clone();
                async move { node.heartbeat().await }
            }));
            let alive = beats.await.into_iter().filter(|beat| *beat == Ok(NodeStatus::Alive)).count();
            assert!(alive >= 1, "round {round}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_deletes_only_expired_rows() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let code = world.code(&app, &user).await;
        let tokens = world.service.exchange_code(&app, code.expose(), crate::world::STATE).await.unwrap();
        let caller = world.service.authenticate_user(tokens.access.expose()).await.unwrap();
        let owner = user_owner(&app, &user);
        let session = world.connect(&owner).await;
        world.service.subscribe(&caller, &session, EventType::Chat).await.unwrap();
        world.service.issue_session_url(owner.clone()).await.unwrap();
        assert_eq!(world.service.sweep().await, Ok(0), "nothing has expired yet");

        world.service.disconnect_session(&session, "client_goodbye").await.unwrap();
        world.advance_ms(30_000);
        assert_eq!(world.service.sweep().await, Ok(1), "the log of the ended session");
        world.advance_ms(SESSION_URLS_KEPT_MS as u64);
        assert_eq!(world.service.sweep().await, Ok(1), "the URL");
        world.advance_ms(ACCESS_TOKEN_LIFETIME_MS as u64);
        assert_eq!(world.service.sweep().await, Ok(0), "the access token is known to have expired");
        // The used code is still stored, so that a second use is detected.
        let again = world.service.exchange_code(&app, code.expose(), crate::world::STATE).await;
        assert_eq!(crate::world::refused(again).kind(), "bad_code");
        let refresh = world.service.refresh(&app, tokens.refresh.expose()).await;
        assert_eq!(crate::world::refused(refresh).kind(), "invalid_token");
        world.advance_ms(ENDED_TOKENS_KEPT_MS as u64);
        assert_eq!(world.service.sweep().await, Ok(1), "the access token, revoked by now");
        world.advance_ms(30 * DAY_MS as u64);
        assert_eq!(world.service.sweep().await, Ok(2), "the code and the refresh token");
        world.advance_ms(60 * DAY_MS as u64);
        // On PostgreSQL it goes with its partition.
        let sessions = u64::from(!world.store.is_remote());
        assert_eq!(world.service.sweep().await, Ok(sessions), "the session");
        assert_eq!(world.service.sweep().await, Ok(0));
    })
    .await;
}

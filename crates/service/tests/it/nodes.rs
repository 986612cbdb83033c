//! Several nodes: the choice of a node for sessions, the changes of sessions that a node reads from the
//! store, and readiness.

use domain::Refusal;
use domain::event::EventType;
use domain::session::ChangeKind;
use service::housekeeping::NodeStatus;
use service::nodes::{Membership, Readiness, Roles, STORE_SILENT_MS};

use crate::world::{both, client_owner, refused};

fn web_only() -> Membership {
    Membership { roles: Roles { gateway: false, ..Roles::ALL }, session_base: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_sockets_names_a_living_node_that_takes_sessions() {
    both(|world| async move {
        let web = world.node_of("web", web_only());
        web.join(false).await.unwrap();
        let none = Refusal::Busy { retry_after_s: 5 };
        assert_eq!(refused(web.session_base().await), none);

        let (a, b) = (world.node("a"), world.node("b"));
        a.join(false).await.unwrap();
        assert_eq!(web.session_base().await.unwrap(), "http://a");
        b.join(false).await.unwrap();
        let mut named = std::collections::BTreeMap::new();
        for _ in 0..100 {
            *named.entry(web.session_base().await.unwrap()).or_insert(0) += 1;
        }
        assert!(named.len() == 2 && named.values().all(|count| *count > 20), "spread evenly: {named:?}");
        assert_eq!(b.session_base().await.unwrap(), "http://b", "its own");

        // Two heartbeats later the silent node is not named any more, although it is not declared dead
        // yet.
        world.advance_ms(12_500);
        b.heartbeat().await.unwrap();
        assert_eq!(web.session_base().await.unwrap(), "http://b");

        // A node that is about to stop names another node, if there is one.
        b.retire().await.unwrap();
        assert_eq!(refused(web.session_base().await), none);
        assert_eq!(b.session_base().await.unwrap(), "http://b", "there is no other node");
        a.heartbeat().await.unwrap();
        assert_eq!(b.session_base().await.unwrap(), "http://a");
        // Declaring the node dead does not bring it back.
        world.advance_ms(20_000);
        a.heartbeat().await.unwrap();
        assert_eq!(b.heartbeat().await, Ok(NodeStatus::WasDeclaredDead));
        assert_eq!(web.session_base().await.unwrap(), "http://a");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_takes_every_change_of_its_sessions_from_the_store_once() {
    both(|world| async move {
        let app = world.application("app").await;
        let user = world.user("user").await;
        let caller = world.caller(&app, &user).await;
        let owner = client_owner(&app);
        // Another node receives the call, and the two nodes share no bus.
        let there = world.node_of("there", web_only());
        let (here, own) = (world.connect(&owner).await, world.node("own"));
        let url = own.issue_session_url(owner.clone()).await.unwrap();
        let elsewhere = own.connect_session(url.expose()).await.unwrap().session_key;
        for key in [&here, &elsewhere] {
            there.subscribe(&caller, key, EventType::Chat).await.unwrap();
        }
        there.unsubscribe(&caller, &here, EventType::Chat).await.unwrap();

        let (changes, taken) = world.service.take_undelivered_changes().await;
        taken.unwrap();
        let found: Vec<_> = changes.iter().map(|(key, change)| (key, change.version, change.kind)).collect();
        assert_eq!(found, [(&here, 1, ChangeKind::Subscribed), (&here, 2, ChangeKind::Unsubscribed)]);
        assert_eq!(world.service.take_undelivered_changes().await, (Vec::new(), Ok(())));
        let (changes, _) = own.take_undelivered_changes().await;
        assert_eq!(changes.len(), 1, "the other node's changes are still stored");
        assert_eq!(changes[0].0, elsewhere);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_changes_than_one_read_returns_are_all_delivered() {
    both(|world| async move {
        let app = world.application("app").await;
        let user = world.user("user").await;
        let caller = world.caller(&app, &user).await;
        let key = world.connect(&client_owner(&app)).await;
        for _ in 0..300 {
            world.service.subscribe(&caller, &key, EventType::Chat).await.unwrap();
            world.service.unsubscribe(&caller, &key, EventType::Chat).await.unwrap();
        }
        let mut versions = Vec::new();
        for expected in [500, 100, 0] {
            let (changes, taken) = world.service.take_undelivered_changes().await;
            taken.unwrap();
            assert_eq!(changes.len(), expected);
            versions.extend(changes.into_iter().map(|(_, change)| change.version));
        }
        assert_eq!(versions, (1..=600).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_ready_until_the_store_does_not_answer_or_the_node_is_about_to_stop() {
    both(|world| async move {
        world.service.join(false).await.unwrap();
        assert_eq!(world.service.readiness(), Readiness::Ready);
        world.advance_ms(STORE_SILENT_MS as u64);
        assert_eq!(world.service.readiness(), Readiness::Ready);
        world.advance_ms(1);
        assert_eq!(world.service.readiness(), Readiness::StoreAway);
        world.service.watch_credentials().await.unwrap();
        assert_eq!(world.service.readiness(), Readiness::Ready);
        world.service.retire().await.unwrap();
        assert_eq!(world.service.readiness(), Readiness::Draining);
    })
    .await;
}

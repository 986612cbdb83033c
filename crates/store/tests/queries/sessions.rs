//! Session URLs, sessions, nodes.

use std::time::Duration;

use domain::Timestamp;
use domain::event::EventType;
use domain::limits::PAGE_MAX;
use domain::session::{SessionListing, SessionOwner};
use store::queries::Page;
use store::queries::nodes::NodeRecord;
use store::{StoreError, Tx};

use crate::{
    at, both, caller, channel, client, hash, in_seeded, node, number, of_client, of_user, session, taken_url,
    tx,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_taken_once_before_its_expiry_and_gives_its_owner() {
    in_seeded(async move |tx: &mut Tx| {
        for owner in [of_client("app"), of_user("app", "a")] {
            tx.insert_session_url(&hash("url"), &owner, None, at(100)).await?;
            assert_eq!(tx.take_session_url(&hash("unknown"), at(1)).await?, None);
            assert_eq!(tx.take_session_url(&hash("url"), at(100)).await?, None);
            assert_eq!(tx.session_url(&hash("unknown")).await?, None);
            assert_eq!(tx.session_url(&hash("url")).await?, Some((owner.clone(), at(100))));
            assert_eq!(tx.take_session_url(&hash("url"), at(99)).await?, Some(taken_url(&owner, None)));
            assert_eq!(tx.take_session_url(&hash("url"), at(99)).await?, None);
            assert_eq!(tx.session_url(&hash("url")).await?, None);
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connected_sessions_are_counted_by_client_or_by_user() {
    in_seeded(async move |tx: &mut Tx| {
        let sessions = [
            ("s1", of_client("app")),
            ("s2", of_client("app")),
            ("s3", of_user("app", "a")),
            ("s4", of_user("other", "a")),
            ("s5", of_user("app", "b")),
        ];
        for (key, owner) in &sessions {
            tx.lock_session_owner(owner).await?;
            tx.insert_session(&session(key), owner, None, &node("n"), at(1)).await?;
        }
        let counts = async |tx: &mut Tx| {
            let owners = [of_client("app"), of_client("other"), of_user("app", "a"), of_user("app", "c")];
            let mut counts = Vec::new();
            for owner in &owners {
                counts.push(tx.count_connected(owner).await?);
            }
            Ok::<_, StoreError>(counts)
        };
        assert_eq!(counts(tx).await?, [2, 0, 2, 0]);
        assert!(tx.disconnect_session(&session("s1"), at(5), "client_goodbye").await?);
        assert!(!tx.disconnect_session(&session("s1"), at(6), "client_goodbye").await?);
        assert!(!tx.disconnect_session(&session("unknown"), at(6), "client_goodbye").await?);
        let keys = ["s4", "s1", "unknown"].map(session);
        let ends = keys.each_ref().map(|key| (key, "client_goodbye"));
        assert_eq!(tx.disconnect_sessions(&ends, at(6)).await?, 1);
        assert_eq!(counts(tx).await?, [1, 0, 1, 0]);
        let end = "SELECT disconnected_at FROM sessions WHERE session_key = 's1'";
        assert_eq!(number(tx, end).await?, 5);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_version_is_for_connected_sessions_that_admit_the_caller() {
    in_seeded(async move |tx: &mut Tx| {
        tx.insert_session(&session("s1"), &of_client("app"), None, &node("n"), at(1)).await?;
        tx.insert_session(&session("s2"), &of_user("app", "a"), None, &node("m"), at(1)).await?;
        for (key, app, user, expected) in [
            ("s1", "app", "a", Some((1, node("n")))),
            ("s1", "app", "b", Some((2, node("n")))),
            ("s1", "other", "a", None),
            ("s2", "app", "a", Some((1, node("m")))),
            ("s2", "app", "b", None),
            ("s2", "other", "a", None),
            ("unknown", "app", "a", None),
            ("s2", "app", "a", Some((2, node("m")))),
        ] {
            let version = tx.next_session_version(&session(key), &client(app), &channel(user)).await?;
            assert_eq!(version, expected, "{key} {app} {user}");
        }
        tx.disconnect_session(&session("s2"), at(5), "client_goodbye").await?;
        assert_eq!(tx.next_session_version(&session("s2"), &client("app"), &channel("a")).await?, None);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_a_key_of_its_own_and_an_application() {
    both(|store| async move {
        let insert = async |key: &str, owner: SessionOwner| {
            let key = session(key);
            tx!(store, tx => { tx.insert_session(&key, &owner, None, &node("n"), at(1)).await })
        };
        assert_eq!(insert("s", of_client("app")).await, Ok(()));
        assert!(insert("s", of_client("other")).await.unwrap_err().is_unique("sessions(session_key)"));
        assert_eq!(insert("t", of_client("missing")).await, Err(StoreError::ForeignKey));
        assert_eq!(insert("t", of_user("app", "missing")).await, Err(StoreError::ForeignKey));
    })
    .await;
}

async fn subscribe(tx: &mut Tx, key: &str, event: EventType, user: &str, ms: i64) -> Result<(), StoreError> {
    let caller = caller("app", user, "f");
    tx.put_subscription(&session(key), event, &caller, at(ms)).await
}

/// A listing as its key and events.
fn line(listing: &SessionListing) -> (&str, Vec<(EventType, &str)>) {
    let events = listing.subscribed_events.iter();
    (
        listing.session_key.as_str(),
        events.map(|event| (event.event_type, event.channel_id.as_str())).collect(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_the_owners_own_newest_first_with_subscriptions_in_the_order_they_were_made() {
    in_seeded(async move |tx: &mut Tx| {
        for (key, owner, connected, ended) in [
            // A key begins with its time.
            ("000000000005", of_client("app"), 5, None),
            ("00000000000a", of_client("app"), 10, None),
            ("000000000014", of_client("app"), 20, Some(50)),
            ("000000000014+", of_client("app"), 20, Some(51)),
            ("00000000001e", of_client("other"), 30, None),
            ("00000000001e+a", of_user("app", "a"), 30, None),
            ("00000000001e+b", of_user("app", "b"), 30, None),
            ("00000000001e+c", of_user("other", "a"), 30, None),
        ] {
            tx.insert_session(&session(key), &owner, None, &node("n"), at(connected)).await?;
            if let Some(ended) = ended {
                tx.disconnect_session(&session(key), at(ended), "client_goodbye").await?;
            }
        }
        subscribe(tx, "00000000000a", EventType::Subscription, "a", 1).await?;
        subscribe(tx, "00000000000a", EventType::Chat, "b", 2).await?;
        subscribe(tx, "00000000000a", EventType::Chat, "a", 2).await?;
        subscribe(tx, "000000000014+", EventType::Chat, "a", 1).await?;

        const CHAT: EventType = EventType::Chat;
        let s1 = ("00000000000a", vec![(EventType::Subscription, "a"), (CHAT, "a"), (CHAT, "b")]);
        let (s0, s2) = (("000000000005", vec![]), ("000000000014", vec![]));
        let s3 = ("000000000014+", vec![(CHAT, "a")]);
        let whole = |ended_after| (ended_after, Page { size: 50, page: 0 });
        let of = of_client;
        for (owner, (ended_after, page), expected) in [
            (of("app"), whole(49), vec![s3.clone(), s2.clone(), s1.clone(), s0.clone()]),
            (of("app"), whole(50), vec![s3.clone(), s1.clone(), s0.clone()]),
            (of("app"), whole(51), vec![s1.clone(), s0.clone()]),
            (of("app"), (49, Page { size: 3, page: 0 }), vec![s3, s2, s1]),
            (of("app"), (49, Page { size: 3, page: 1 }), vec![s0]),
            (of("app"), (49, Page { size: 3, page: 2 }), vec![]),
            (of("app"), (49, Page { size: 50, page: PAGE_MAX }), vec![]),
            (of_user("app", "a"), whole(0), vec![("00000000001e+a", vec![])]),
            (of_user("app", "c"), whole(0), vec![]),
        ] {
            let listed = tx.sessions_of(&owner, at(ended_after), page).await?;
            assert_eq!(
                listed.iter().map(line).collect::<Vec<_>>(),
                expected,
                "{owner:?} {ended_after} {page:?}"
            );
            let total = tx.count_sessions_of(&owner, at(ended_after)).await?;
            if page.size == 50 && page.page == 0 {
                assert_eq!(total, listed.len() as i64);
            }
        }
        let listed = tx.sessions_of(&of("app"), at(49), Page { size: 1, page: 0 }).await?;
        assert_eq!((listed[0].connected_at, listed[0].disconnected_at), (at(20), Some(at(51))));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_far_beyond_the_end_is_empty_and_fast() {
    const MANY: i64 = 3_000;
    both(|store| async move {
        tx!(store, tx => {
            for n in 0..MANY {
                let key = session(&format!("s{n:06}"));
                tx.insert_session(&key, &of_user("app", "a"), None, &node("n"), at(n)).await?;
            }
            Ok(())
        })
        .unwrap();
        for page in [0, MANY / 50 - 1, PAGE_MAX] {
            let read = crate::in_tx(&store, async move |tx: &mut Tx| {
                tx.sessions_of(&of_user("app", "a"), Timestamp::default(), Page { size: 50, page }).await
            });
            let listed =
                store::testing::while_running(Duration::from_millis(500), read).await.unwrap().unwrap();
            assert_eq!(listed.len(), if page == PAGE_MAX { 0 } else { 50 });
        }
    })
    .await;
}

fn introduced(name: &str) -> NodeRecord {
    NodeRecord {
        node_id: node(name),
        roles: "web gateway".to_owned(),
        session_base: Some(format!("http://{name}")),
        started_at: at(7),
        version: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_opened_on_other_live_nodes_that_accept_some() {
    in_seeded(async move |tx: &mut Tx| {
        let rest = NodeRecord { session_base: None, ..introduced("rest") };
        tx.register_node(&rest, at(50)).await?;
        for (name, seen_at) in [("n3", 30), ("n1", 10), ("n2", 20)] {
            tx.register_node(&introduced(name), at(seen_at)).await?;
        }
        for (but, seen_after, expected) in [
            ("rest", 9, vec!["http://n1", "http://n2", "http://n3"]),
            ("n2", 9, vec!["http://n1", "http://n3"]),
            ("rest", 10, vec!["http://n2", "http://n3"]),
            ("rest", 30, vec![]),
        ] {
            assert_eq!(tx.session_bases(&node(but), at(seen_after)).await?, expected, "{but} {seen_after}");
        }
        tx.retire_node(&node("n3")).await?;
        tx.retire_node(&node("unknown")).await?;
        assert_eq!(tx.session_bases(&node("rest"), at(9)).await?, ["http://n1", "http://n2"]);
        // A second registration of a node replaces whether it takes sessions. Its start time stays.
        tx.register_node(&NodeRecord { started_at: at(60), ..introduced("n3") }, at(60)).await?;
        assert_eq!(tx.session_bases(&node("rest"), at(59)).await?, ["http://n3"]);
        assert_eq!(number(tx, "SELECT started_at FROM nodes WHERE node_id = 'n3'").await?, 7);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_ended_elsewhere_are_found_until_their_sockets_are_closed() {
    in_seeded(async move |tx: &mut Tx| {
        for (key, owner, home) in [
            ("s1", of_client("app"), "n"),
            ("s2", of_user("app", "a"), "n"),
            ("s3", of_user("app", "b"), "m"),
            ("s4", of_client("other"), "n"),
            ("s5", of_client("app"), "n"),
        ] {
            tx.insert_session(&session(key), &owner, None, &node(home), at(1)).await?;
        }
        tx.disconnect_session(&session("s5"), at(5), "client_goodbye").await?;
        assert_eq!(tx.sessions_closing(&node("n"), &session(""), 10).await?, []);
        assert_eq!(tx.end_sessions_of_deleted_applications(at(8), "revoked").await?, 0);
        tx.execute("UPDATE applications SET deleted_at = 8 WHERE client_id = 'app'", &[]).await?;
        assert_eq!(tx.end_sessions_of_deleted_applications(at(9), "revoked").await?, 3);
        assert_eq!(tx.end_sessions_of_deleted_applications(at(10), "revoked").await?, 0);
        let closing = |key: &str| (session(key), "revoked".to_owned());
        for (home, after, limit, expected) in [
            ("n", "", 10, vec![closing("s1"), closing("s2")]),
            ("n", "", 1, vec![closing("s1")]),
            ("n", "s1", 10, vec![closing("s2")]),
            ("n", "s2", 10, vec![]),
            ("m", "", 10, vec![closing("s3")]),
        ] {
            let found = tx.sessions_closing(&node(home), &session(after), limit).await?;
            assert_eq!(found, expected, "{home} {after} {limit}");
        }
        assert_eq!(tx.count_connected(&of_client("app")).await?, 0);
        assert_eq!(tx.count_connected(&of_client("other")).await?, 1);
        assert_eq!(tx.count_connected_of_application(&client("other"), 9).await?, 1);
        assert_eq!(tx.count_connected_of_application(&client("other"), 0).await?, 0);
        assert_eq!(tx.count_connected_of_application(&client("app"), 9).await?, 0);
        // Its own node says that the socket is gone: the end stays what it was.
        assert!(!tx.disconnect_session(&session("s1"), at(11), "revoked").await?);
        assert_eq!(tx.sessions_closing(&node("n"), &session(""), 10).await?, [closing("s2")]);
        let end = "SELECT disconnected_at FROM sessions WHERE session_key = 's1'";
        assert_eq!(number(tx, end).await?, 9);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_register_send_heartbeats_fall_silent_and_deregister() {
    in_seeded(async move |tx: &mut Tx| {
        const COUNT: &str = "SELECT COUNT(*) FROM nodes";
        assert!(!tx.node_heartbeat(&node("n1"), at(1)).await?, "it is not on the list yet");
        for name in ["n1", "n2", "n3", "n1"] {
            tx.register_node(&introduced(name), at(10)).await?;
        }
        assert_eq!(number(tx, COUNT).await?, 3);
        assert!(tx.node_heartbeat(&node("n1"), at(20)).await?);
        // A heartbeat that read the clock earlier and is written later changes nothing.
        assert!(tx.node_heartbeat(&node("n1"), at(5)).await?);
        assert_eq!(tx.deregister_silent_nodes(at(9)).await?, []);
        assert_eq!(tx.deregister_silent_nodes(at(10)).await?.len(), 2);
        assert!(tx.node_heartbeat(&node("n1"), at(21)).await?);
        assert!(!tx.node_heartbeat(&node("n2"), at(21)).await?);
        tx.register_node(&introduced("n2"), at(21)).await?;
        tx.register_node(&introduced("n3"), at(21)).await?;
        tx.deregister_node(&node("n3")).await?;
        tx.deregister_node(&node("unknown")).await?;
        assert_eq!(number(tx, COUNT).await?, 2);
        tx.deregister_other_nodes(&node("n2")).await?;
        assert!(tx.node_heartbeat(&node("n2"), at(22)).await?);
        assert_eq!(number(tx, COUNT).await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sessions_of_unregistered_nodes_end() {
    in_seeded(async move |tx: &mut Tx| {
        tx.register_node(&introduced("alive"), at(1)).await?;
        let homes =
            [("s1", "alive"), ("s2", "dead"), ("s3", "dead"), ("s4", "a first one"), ("s5", "the last")];
        for (key, home) in homes {
            tx.insert_session(&session(key), &of_client("app"), None, &node(home), at(1)).await?;
        }
        tx.disconnect_session(&session("s3"), at(5), "client_goodbye").await?;
        assert_eq!(tx.disconnect_sessions_of_dead_nodes(at(9)).await?, 3);
        assert_eq!(tx.disconnect_sessions_of_dead_nodes(at(10)).await?, 0);
        let ended =
            "SELECT disconnected_at FROM sessions WHERE session_key = 's2' AND close_reason = 'node_dead'";
        assert_eq!(number(tx, ended).await?, 9);
        assert_eq!(tx.count_connected(&of_client("app")).await?, 1);
        tx.deregister_node(&node("alive")).await?;
        assert_eq!(tx.disconnect_sessions_of_dead_nodes(at(11)).await?, 1, "nor with an empty list");
        Ok(())
    })
    .await;
}

//! Sessions that the operator lists and ends.

use domain::SessionKey;
use domain::event::EventType;
use domain::session::{SessionDetails, SessionOwner};
use store::queries::routed_sessions::RoutedSession;
use store::queries::session_details::SessionFilter;
use store::{StoreError, Tx};

use crate::{at, caller, channel, client, in_seeded, node, of_client, of_user, session};

/// Keys grow with time; `s6` is the newest.
async fn fill(tx: &mut Tx) -> Result<(), StoreError> {
    for (key, owner, ended) in [
        ("s1", of_client("app"), None),
        ("s2", of_user("app", "a"), Some("ping_timeout")),
        ("s3", of_user("other", "a"), None),
        ("s4", of_user("app", "b"), None),
        ("s5", of_client("app"), Some("evicted")),
        ("s6", of_user("app", "a"), None),
    ] {
        tx.insert_session(&session(key), &owner, None, &node("n1"), at(10)).await?;
        if let Some(reason) = ended {
            tx.disconnect_session(&session(key), at(20), reason).await?;
        }
    }
    Ok(())
}

fn keys(sessions: &[SessionDetails]) -> Vec<&str> {
    sessions.iter().map(|details| details.session_key.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_matches_every_filter_newest_first_and_continues_after_a_key() {
    in_seeded(async move |tx: &mut Tx| {
        fill(tx).await?;
        for (app, user, connected, expected) in [
            (None, None, None, &["s6", "s5", "s4", "s3", "s2", "s1"][..]),
            (None, None, Some(true), &["s6", "s4", "s3", "s1"]),
            (None, None, Some(false), &["s5", "s2"]),
            (Some("app"), None, None, &["s6", "s5", "s4", "s2", "s1"]),
            (Some("app"), None, Some(true), &["s6", "s4", "s1"]),
            (Some("app"), None, Some(false), &["s5", "s2"]),
            (None, Some("a"), None, &["s6", "s3", "s2"]),
            (None, Some("a"), Some(true), &["s6", "s3"]),
            (None, Some("a"), Some(false), &["s2"]),
            (Some("app"), Some("a"), None, &["s6", "s2"]),
            (Some("app"), Some("a"), Some(true), &["s6"]),
            (Some("app"), Some("a"), Some(false), &["s2"]),
            (Some("missing"), None, None, &[]),
            (None, Some("c"), None, &[]),
        ] {
            let filter =
                SessionFilter { client_id: app.map(client), channel_id: user.map(channel), connected };
            assert_eq!(keys(&tx.list_session_details(&filter, None, 50).await?), expected, "{filter:?}");
            // The same in pages of two.
            let (mut walked, mut after) = (Vec::new(), None::<SessionKey>);
            loop {
                let page = tx.list_session_details(&filter, after.as_ref(), 2).await?;
                assert!(page.len() <= 2);
                let Some(last) = page.last() else { break };
                after = Some(last.session_key.clone());
                walked.extend(page);
            }
            assert_eq!(keys(&walked), expected, "{filter:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_connected_sessions_of_many_owners_are_counted_at_once() {
    in_seeded(async move |tx: &mut Tx| {
        fill(tx).await?;
        let owners = [of_client("app"), of_user("app", "a"), of_user("other", "a"), of_user("app", "b")];
        let mut counted: Vec<_> = owners.iter().map(SessionOwner::counted_as).collect();
        // More than one statement takes.
        counted.extend((0..20).map(|n| of_client(&format!("missing-{n}")).counted_as()));
        let counts = tx.counts_connected(&counted).await?;
        let counts: std::collections::BTreeMap<_, _> = counts.into_iter().collect();
        let expected = [("client:app", 1), ("user:a", 2), ("user:b", 1)];
        assert_eq!(counts, expected.map(|(owner, count)| (owner.to_owned(), count)).into());
        assert!(tx.counts_connected(&[]).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn details_have_owner_node_times_and_close_reason() {
    in_seeded(async move |tx: &mut Tx| {
        fill(tx).await?;
        for (user, event, made) in
            [("b", EventType::Chat, 12), ("a", EventType::Donation, 11), ("a", EventType::Chat, 12)]
        {
            let caller = caller("app", user, "f");
            tx.put_subscription(&session("s1"), event, &caller, at(made)).await?;
        }
        let one = tx.session_details(&session("s1")).await?.expect("it is there");
        let owner: SessionOwner = of_client("app");
        assert_eq!((one.owner, one.node_id, one.connected_at), (owner, node("n1"), at(10)));
        assert_eq!((one.disconnected_at, one.close_reason), (None, None));
        let events: Vec<_> = one
            .subscribed_events
            .iter()
            .map(|subscribed| (subscribed.event_type, subscribed.channel_id.as_str()))
            .collect();
        assert_eq!(
            events,
            [(EventType::Donation, "a"), (EventType::Chat, "a"), (EventType::Chat, "b")],
            "in the order they were made"
        );
        let ended = tx.session_details(&session("s2")).await?.expect("it is there");
        assert_eq!(ended.owner, of_user("app", "a"));
        assert_eq!(
            (ended.disconnected_at, ended.close_reason.as_deref()),
            (Some(at(20)), Some("ping_timeout"))
        );
        assert_eq!(tx.session_details(&session("s7")).await?, None);
        // Subscriptions do not count as rows of a page.
        let page = tx.list_session_details(&SessionFilter::default(), Some(&session("s3")), 2).await?;
        assert_eq!(keys(&page), ["s2", "s1"]);
        assert_eq!(page[1].subscribed_events.len(), 3);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ended_by_the_operator_is_closing_until_its_node_has_closed_it() {
    in_seeded(async move |tx: &mut Tx| {
        fill(tx).await?;
        tx.insert_session(&session("s7"), &of_client("app"), None, &node("n2"), at(30)).await?;
        for (key, home) in [
            ("s6", Some("n1")),
            ("s1", Some("n1")),
            ("s7", Some("n2")),
            ("s6", None),
            ("s2", None),
            ("unknown", None),
        ] {
            assert_eq!(tx.end_session(&session(key), at(40), "evicted").await?, home.map(node), "{key}");
        }
        let ended = tx.session_details(&session("s6")).await?.expect("it is there");
        assert_eq!((ended.disconnected_at, ended.close_reason.as_deref()), (Some(at(40)), Some("evicted")));
        let closing = async |tx: &mut Tx, home: &str| {
            let found = tx.sessions_closing(&node(home), &session(""), 50).await?;
            Ok::<_, StoreError>(
                found.into_iter().map(|(key, reason)| format!("{key} {reason}")).collect::<Vec<_>>(),
            )
        };
        assert_eq!(closing(tx, "n1").await?, ["s1 evicted", "s6 evicted"]);
        assert_eq!(closing(tx, "n2").await?, ["s7 evicted"]);
        tx.disconnect_session(&session("s1"), at(41), "evicted").await?;
        assert_eq!(closing(tx, "n1").await?, ["s6 evicted"]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_connected_sessions_of_a_node_are_read_with_their_subscriptions() {
    in_seeded(async move |tx: &mut Tx| {
        fill(tx).await?;
        tx.insert_session(&session("s7"), &of_client("app"), None, &node("n2"), at(10)).await?;
        for event in [EventType::Chat, EventType::Donation] {
            tx.put_subscription(&session("s4"), event, &caller("app", "a", "f"), at(11)).await?;
        }
        let keys = |page: &[RoutedSession]| {
            let of_each =
                |session: &RoutedSession| (session.session_key.to_string(), session.subscriptions.len());
            page.iter().map(of_each).collect::<Vec<_>>()
        };
        let owned = |expected: &[(&str, usize)]| {
            expected.iter().map(|(key, count)| ((*key).to_owned(), *count)).collect::<Vec<_>>()
        };
        let first = tx.routed_sessions(&node("n1"), &session(""), 3).await?;
        assert_eq!(keys(&first), owned(&[("s1", 0), ("s3", 0), ("s4", 2)]));
        let rest = tx.routed_sessions(&node("n1"), &session("s4"), 3).await?;
        assert_eq!(keys(&rest), owned(&[("s6", 0)]));
        assert_eq!(tx.routed_session(&node("n1"), &session("s4")).await?, Some(first[2].clone()));
        for (of, key) in [("n2", "s4"), ("n1", "s2"), ("n1", "missing")] {
            assert_eq!(tx.routed_session(&node(of), &session(key)).await?, None, "{of} {key}");
        }
        Ok(())
    })
    .await;
}

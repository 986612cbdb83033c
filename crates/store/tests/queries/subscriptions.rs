//! Event subscriptions and the log of their changes.

use domain::event::EventType;
use domain::session::{ChangeKind, SessionChange, SessionOwner, Subscription};
use store::{StoreError, Tx};

use crate::{at, both, caller, channel, client, family, in_seeded, node, of_client, of_user, session, tx};

const CHAT: EventType = EventType::Chat;
const DONATION: EventType = EventType::Donation;

async fn connect(tx: &mut Tx, sessions: &[(&str, SessionOwner)]) -> Result<(), StoreError> {
    for (key, owner) in sessions {
        tx.insert_session(&session(key), owner, None, &node("n"), at(1)).await?;
    }
    Ok(())
}

async fn subscribe(
    tx: &mut Tx,
    key: &str,
    event: EventType,
    (app, user, of): (&str, &str, &str),
) -> Result<(), StoreError> {
    let caller = caller(app, user, of);
    tx.put_subscription(&session(key), event, &caller, at(1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_subscription_is_stored_once_and_can_be_deleted() {
    in_seeded(async move |tx: &mut Tx| {
        connect(tx, &[("s", of_client("app")), ("t", of_client("app"))]).await?;
        for (key, event, user) in
            [("s", CHAT, "a"), ("s", CHAT, "a"), ("s", DONATION, "a"), ("s", CHAT, "b"), ("t", CHAT, "a")]
        {
            subscribe(tx, key, event, ("app", user, "f")).await?;
        }
        assert_eq!(tx.count_subscriptions(&session("s")).await?, 3);
        assert_eq!(tx.count_subscriptions(&session("t")).await?, 1);
        assert_eq!(tx.count_subscriptions(&session("unknown")).await?, 0);
        assert!(tx.delete_subscription(&session("s"), CHAT, &channel("a")).await?);
        assert!(!tx.delete_subscription(&session("s"), CHAT, &channel("a")).await?);
        assert!(!tx.delete_subscription(&session("s"), DONATION, &channel("b")).await?);
        assert_eq!(tx.count_subscriptions(&session("s")).await?, 2);
        assert_eq!(tx.count_subscriptions(&session("t")).await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_depending_on_tokens_are_found_in_connected_sessions_in_order() {
    in_seeded(async move |tx: &mut Tx| {
        connect(tx, &[("s2", of_client("app")), ("s1", of_user("app", "a")), ("s3", of_user("app", "a"))])
            .await?;
        connect(tx, &[("s4", of_client("other"))]).await?;
        for (key, event, of) in [
            ("s2", DONATION, ("app", "a", "f")),
            ("s2", CHAT, ("app", "a", "g")),
            ("s2", CHAT, ("app", "b", "f")),
            ("s1", CHAT, ("app", "a", "g")),
            ("s1", CHAT, ("app", "a", "f")),
            ("s3", CHAT, ("app", "a", "f")),
            ("s4", CHAT, ("other", "a", "f")),
        ] {
            subscribe(tx, key, event, of).await?;
        }
        tx.disconnect_session(&session("s3"), at(5), "client_goodbye").await?;
        for (app, user, of, expected) in [
            ("app", "a", None, vec![("s1", CHAT), ("s2", CHAT), ("s2", DONATION)]),
            // The last tokens to subscribe carry a subscription.
            ("app", "a", Some("f"), vec![("s1", CHAT), ("s2", DONATION)]),
            ("app", "a", Some("g"), vec![("s2", CHAT)]),
            ("app", "a", Some("h"), vec![]),
            ("app", "b", None, vec![("s2", CHAT)]),
            ("app", "c", None, vec![]),
            ("other", "a", None, vec![("s4", CHAT)]),
        ] {
            let of = of.map(family);
            let found = tx.subscriptions_depending_on(&client(app), &channel(user), of.as_ref()).await?;
            let found: Vec<_> = found.iter().map(|(key, event)| (key.as_str(), *event)).collect();
            assert_eq!(found, expected, "{app} {user} {of:?}");
        }
        for (app, event, expected) in [
            ("app", CHAT, vec![("s1", "a"), ("s2", "a"), ("s2", "b")]),
            ("app", DONATION, vec![("s2", "a")]),
            ("app", EventType::Subscription, vec![]),
            ("missing", CHAT, vec![]),
        ] {
            let found = tx.subscriptions_of_client(&client(app), event).await?;
            let found: Vec<_> = found.iter().map(|(key, user)| (key.as_str(), user.as_str())).collect();
            assert_eq!(found, expected, "{app} {event:?}");
        }
        Ok(())
    })
    .await;
}

fn change(version: i64, kind: ChangeKind) -> SessionChange {
    SessionChange {
        version,
        kind,
        subscription: Subscription { event_type: DONATION, channel_id: channel("a") },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_after_a_version_are_read_in_order_until_they_are_deleted() {
    both(|store| async move {
        tx!(store, tx => {
            connect(tx, &[("s", of_client("app")), ("t", of_client("app"))]).await?;
            // Eleven, so that an order by text would show.
            for version in (1..=11).rev() {
                tx.insert_session_change(&session("s"), &node("n"), &change(version, ChangeKind::Subscribed)).await?;
            }
            tx.insert_session_change(&session("t"), &node("n"), &change(1, ChangeKind::Revoked)).await?;
            for (key, after, expected) in
                [("s", 0, (1..=11).collect()), ("s", 9, vec![10, 11]), ("s", 11, vec![]), ("unknown", 0, vec![])]
            {
                let found = tx.session_changes_after(&session(key), after).await?;
                assert_eq!(found.iter().map(|change| change.version).collect::<Vec<i64>>(), expected);
            }
            assert_eq!(tx.session_changes_after(&session("t"), 0).await?, [change(1, ChangeKind::Revoked)]);
            tx.delete_session_changes(&session("s"), -5).await?;
            assert_eq!(tx.session_changes_after(&session("s"), 0).await?.len(), 11);
            tx.delete_session_changes(&session("s"), 10).await?;
            assert_eq!(tx.session_changes_after(&session("s"), 0).await?, [change(11, ChangeKind::Subscribed)]);
            assert_eq!(tx.session_changes_after(&session("t"), 0).await?.len(), 1);
            Ok(())
        })
        .unwrap();
        let twice = tx!(store, tx => { tx.insert_session_change(&session("t"), &node("n"), &change(1, ChangeKind::Revoked)).await });
        assert!(twice.unwrap_err().is_unique("session_changes(session_key, version)"));
        let orphan = tx!(store, tx => { tx.insert_session_change(&session("x"), &node("n"), &change(1, ChangeKind::Revoked)).await });
        assert_eq!(orphan, Err(StoreError::ForeignKey));
        let orphan = tx!(store, tx => { subscribe(tx, "x", CHAT, ("app", "a", "f")).await });
        assert_eq!(orphan, Err(StoreError::ForeignKey));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_takes_each_change_of_its_sessions_once_in_order() {
    in_seeded(async move |tx: &mut Tx| {
        connect(tx, &[("s", of_client("app")), ("t", of_client("app"))]).await?;
        assert!(!tx.has_unread_changes(&node("n")).await?);
        assert_eq!(tx.take_unread_changes(&node("n"), 10).await?, []);
        // Eleven, so that an order by text would show.
        for version in (1..=11).rev() {
            let one = change(version, ChangeKind::Subscribed);
            tx.insert_session_change(&session("s"), &node("n"), &one).await?;
        }
        tx.insert_session_change(&session("t"), &node("m"), &change(1, ChangeKind::Revoked)).await?;
        for home in ["n", "m"] {
            assert!(tx.has_unread_changes(&node(home)).await?);
        }
        assert!(!tx.has_unread_changes(&node("elsewhere")).await?);
        for (limit, versions) in [(4, 1..5), (10, 5..12), (10, 12..12)] {
            let taken = tx.take_unread_changes(&node("n"), limit).await?;
            let expected: Vec<_> =
                versions.map(|version| (session("s"), change(version, ChangeKind::Subscribed))).collect();
            assert_eq!(taken, expected);
        }
        assert!(!tx.has_unread_changes(&node("n")).await?);
        let taken = tx.take_unread_changes(&node("m"), 10).await?;
        assert_eq!(taken, [(session("t"), change(1, ChangeKind::Revoked))]);
        // They stay in the log for who has to catch up.
        assert_eq!(tx.session_changes_after(&session("s"), 0).await?.len(), 11);
        Ok(())
    })
    .await;
}

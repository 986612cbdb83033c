//! Applications that are used, warned, deleted, restored and purged.

use domain::event::EventType;
use store::queries::application_life::LIFE_ROWS_MAX;
use store::queries::tokens::{NewCode, NewToken};
use store::{StoreError, Tx, params};

use crate::{
    application, at, both, caller, channel, client, family, hash, in_seeded, node, number, of_client, secret,
    session, taken_url, tx,
};

const NEVER: i64 = i64::MIN / 2;

async fn last_used(tx: &mut Tx, id: &str) -> Result<i64, StoreError> {
    Ok(tx.application_life(&client(id), at(NEVER)).await?.unwrap().last_used_at.as_millis())
}

/// A session of `app` that holds a subscription.
async fn subscribed_session(tx: &mut Tx, key: &str, app: &str, ms: i64) -> Result<(), StoreError> {
    tx.insert_session(&session(key), &of_client(app), None, &node("n"), at(ms)).await?;
    let caller = caller(app, "a", "f");
    tx.put_subscription(&session(key), EventType::Chat, &caller, at(ms)).await
}

/// A code, an access and a refresh token of `a`'s consent to an application, until 1000.
async fn credentials(tx: &mut Tx, app: &str) -> Result<(), StoreError> {
    let (client_id, channel_id, family) = (&client(app), &channel("a"), &family("f"));
    let expires_at = at(1_000);
    let hashes = ["code", "access", "refresh"].map(|kind| hash(&format!("{kind} {app}")));
    let token = |hash| NewToken { hash, family, client_id, channel_id, generation: 0, expires_at };
    tx.insert_access_token(token(&hashes[1])).await?;
    tx.insert_refresh_token(token(&hashes[2]), at(0)).await?;
    let (hash, state) = (&hashes[0], &hashes[0]);
    let began_at = at(0);
    let code =
        NewCode { hash, family, client_id, channel_id, state, redirect_uri: "u", began_at, expires_at };
    tx.insert_code(code).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_was_last_used_when_it_was_made_until_a_later_use_is_noted() {
    in_seeded(async move |tx: &mut Tx| {
        assert_eq!(last_used(tx, "app").await?, 1);
        for (used_at, news) in [(0, false), (1, false), (50, true), (49, false), (50, false)] {
            assert_eq!(tx.note_application_use(&client("app"), at(used_at)).await?, news, "{used_at}");
        }
        assert!(!tx.note_application_use(&client("missing"), at(50)).await?);
        assert_eq!((last_used(tx, "app").await?, last_used(tx, "other").await?), (50, 1));
        // Being changed is no use.
        tx.put_application(&application("app"), at(70)).await?;
        assert_eq!(last_used(tx, "app").await?, 50);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn holding_a_subscription_is_a_use_until_the_session_ends() {
    in_seeded(async move |tx: &mut Tx| {
        tx.insert_session(&session("bare"), &of_client("app"), None, &node("n"), at(5)).await?;
        assert_eq!(tx.note_subscribed_applications(at(90), at(80)).await?, 0, "it holds nothing");
        subscribed_session(tx, "s", "app", 10).await?;
        assert_eq!(tx.note_subscribed_applications(at(90), at(0)).await?, 0, "used since");
        assert_eq!(tx.note_subscribed_applications(at(90), at(1)).await?, 1);
        assert_eq!((last_used(tx, "app").await?, last_used(tx, "other").await?), (90, 1));
        tx.disconnect_session(&session("s"), at(120), "x").await?;
        assert_eq!(tx.note_subscribed_applications(at(200), at(100)).await?, 1);
        assert_eq!(last_used(tx, "app").await?, 120, "not longer than it was connected");
        assert_eq!(tx.note_subscribed_applications(at(300), at(200)).await?, 0);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_notice_is_given_once_in_an_idle_time() {
    in_seeded(async move |tx: &mut Tx| {
        let kinds = async |tx: &mut Tx| -> Result<Vec<(String, i64)>, StoreError> {
            let life = tx.application_life(&client("app"), at(NEVER)).await?.unwrap();
            Ok(life.notices.into_iter().map(|n| (n.kind, n.given_at.as_millis())).collect())
        };
        tx.note_application_use(&client("other"), at(1_000)).await?;
        assert!(tx.give_application_notices("60", at(60), at(0)).await?.is_empty());
        assert_eq!(tx.give_application_notices("60", at(61), at(1)).await?, [client("app")]);
        assert!(tx.give_application_notices("60", at(62), at(2)).await?.is_empty());
        assert_eq!(tx.warned_applications(at(1), 5).await?, [(client("app"), at(1))]);
        assert!(tx.warned_applications(at(0), 5).await?.is_empty());
        assert!(tx.warned_applications(at(1), 0).await?.is_empty());
        assert_eq!(tx.give_application_notices("80", at(81), at(1)).await?, [client("app")]);
        assert_eq!(kinds(tx).await?, [("60".into(), 61), ("80".into(), 81)]);
        assert_eq!(tx.delete_outdated_notices("60", 60).await?, 0);

        tx.note_application_use(&client("app"), at(90)).await?;
        assert!(kinds(tx).await?.is_empty(), "what was said before the last use is over");
        assert_eq!(tx.delete_outdated_notices("80", 80).await?, 1);
        assert_eq!(tx.delete_outdated_notices("60", 60).await?, 1);
        // One given by a node that did not know of the use yet.
        tx.note_application_use(&client("app"), at(100)).await?;
        assert_eq!(tx.give_application_notices("60", at(150), at(100)).await?, [client("app")]);
        assert_eq!(tx.delete_outdated_notices("60", 60).await?, 1);
        assert_eq!(tx.give_application_notices("60", at(160), at(100)).await?, [client("app")]);
        assert_eq!(tx.delete_outdated_notices("60", 60).await?, 0);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_application_is_not_found_until_it_is_restored() {
    in_seeded(async move |tx: &mut Tx| {
        credentials(tx, "app").await?;
        tx.insert_application_secret(&client("app"), &secret("s"), at(1)).await?;
        tx.insert_session_url(&hash("url"), &of_client("app"), None, at(1_000)).await?;
        let caller = tx.holder(&hash("access app"), at(2)).await?.unwrap().caller;
        tx.note_application_use(&client("other"), at(1_000)).await?;
        assert_eq!(tx.delete_unused_application(at(90), at(0)).await?, None);
        assert_eq!(tx.delete_unused_application(at(90), at(1)).await?, Some(client("app")));
        assert_eq!(tx.delete_unused_application(at(91), at(1)).await?, None);

        assert!(tx.application(&client("app")).await?.is_none());
        assert!(tx.holder(&hash("access app"), at(2)).await?.is_none());
        assert!(!tx.family_lives(&caller).await?);
        assert!(tx.take_session_url(&hash("url"), at(2)).await?.is_none());
        assert!(tx.give_application_notices("60", at(91), at(1)).await?.is_empty());
        assert_eq!(tx.note_subscribed_applications(at(91), at(1)).await?, 0);
        let life = tx.application_life(&client("app"), at(89)).await?.unwrap();
        assert_eq!((life.deleted_at, life.created_at), (Some(at(90)), at(1)));
        assert_eq!(life.application.name, "application app");
        assert!(tx.application_life(&client("app"), at(90)).await?.is_none(), "gone for good");

        assert!(!tx.restore_application(&client("app"), at(120), at(90)).await?);
        assert!(!tx.restore_application(&client("missing"), at(120), at(0)).await?);
        assert!(tx.restore_application(&client("app"), at(120), at(89)).await?);
        assert!(tx.restore_application(&client("app"), at(121), at(89)).await?, "and again");
        assert_eq!(last_used(tx, "app").await?, 121);
        assert!(tx.application(&client("app")).await?.is_some());
        assert_eq!(tx.application_secrets(&client("app"), at(1)).await?.len(), 1);
        assert!(tx.holder(&hash("access app"), at(2)).await?.is_some() && tx.family_lives(&caller).await?);
        assert_eq!(tx.take_session_url(&hash("url"), at(2)).await?, Some(taken_url(&of_client("app"), None)));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_use_and_a_put_restore_an_application() {
    in_seeded(async move |tx: &mut Tx| {
        tx.note_application_use(&client("other"), at(1_000)).await?;
        tx.delete_unused_application(at(90), at(1)).await?;
        assert!(!tx.note_application_use(&client("app"), at(1)).await?, "no news");
        assert!(tx.application(&client("app")).await?.is_none());
        assert!(tx.note_application_use(&client("app"), at(89)).await?);
        assert!(tx.application(&client("app")).await?.is_some());

        tx.delete_unused_application(at(200), at(100)).await?;
        tx.put_application(&application("app"), at(210)).await?;
        assert!(tx.application(&client("app")).await?.is_some());
        assert_eq!(last_used(tx, "app").await?, 210);

        tx.delete_unused_application(at(400), at(300)).await?;
        assert_eq!(tx.begin_purge_of_applications(at(400)).await?, 1);
        assert!(!tx.note_application_use(&client("app"), at(399)).await?, "it is going");
        assert!(!tx.restore_application(&client("app"), at(401), at(0)).await?);
        assert!(tx.application_life(&client("app"), at(NEVER)).await?.is_none());
        // A node that saw it as restorable a moment ago.
        tx.put_application(&application("app"), at(401)).await?;
        assert_eq!(tx.purge_applications().await?, 0);
        assert!(tx.application(&client("app")).await?.is_some());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_application_is_deleted_with_its_rows_and_no_others() {
    in_seeded(async move |tx: &mut Tx| {
        for app in ["app", "other"] {
            credentials(tx, app).await?;
            subscribed_session(tx, app, app, 2).await?;
            tx.insert_session_url(&hash(app), &of_client(app), None, at(1_000)).await?;
            tx.insert_application_secret(&client(app), &secret(app), at(1)).await?;
            tx.give_application_notices("60", at(60), at(1)).await?;
            tx.execute("INSERT INTO application_usage VALUES ($1, 0, 'user', 1, 0)", params![app]).await?;
        }
        tx.note_application_use(&client("other"), at(1_000)).await?;
        tx.delete_unused_application(at(90), at(1)).await?;
        assert_eq!(tx.begin_purge_of_applications(at(89)).await?, 0);
        assert_eq!(tx.purge_applications().await?, 0);
        assert_eq!(tx.begin_purge_of_applications(at(90)).await?, 1);
        assert_eq!(tx.begin_purge_of_applications(at(90)).await?, 0);
        // Two tokens, a code, three consents, a URL, a session, a count of requests, and itself.
        assert_eq!(tx.purge_applications().await?, 10);
        assert_eq!(tx.purge_applications().await?, 0);
        for (sql, left) in [
            ("SELECT COUNT(*) FROM applications", 1),
            ("SELECT COUNT(*) FROM application_secrets", 1),
            ("SELECT COUNT(*) FROM application_notices", 1),
            ("SELECT COUNT(*) FROM consents", 3),
            ("SELECT COUNT(*) FROM access_tokens", 1),
            ("SELECT COUNT(*) FROM refresh_tokens", 1),
            ("SELECT COUNT(*) FROM authorization_codes", 1),
            ("SELECT COUNT(*) FROM session_urls", 1),
            ("SELECT COUNT(*) FROM sessions", 1),
            ("SELECT COUNT(*) FROM session_subscriptions", 1),
            ("SELECT COUNT(*) FROM application_usage", 1),
        ] {
            assert_eq!(number(tx, sql).await?, left, "{sql}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_a_purged_application_is_free() {
    in_seeded(async move |tx: &mut Tx| {
        credentials(tx, "app").await?;
        assert!(!tx.delete_unrestorable_application(&client("app"), at(1_000)).await?, "it lives");
        tx.note_application_use(&client("other"), at(1_000)).await?;
        tx.delete_unused_application(at(90), at(1)).await?;
        assert!(!tx.delete_unrestorable_application(&client("app"), at(89)).await?, "it can be restored");
        assert!(tx.delete_unrestorable_application(&client("app"), at(90)).await?);
        assert!(!tx.delete_unrestorable_application(&client("app"), at(90)).await?);
        assert!(tx.token_holder(&hash("access app")).await?.is_none());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_large_application_is_deleted_in_batches_and_its_row_last() {
    both(|store| async move {
        tx!(store, tx => {
            for n in 0..LIFE_ROWS_MAX + 1 {
                subscribed_session(tx, &format!("s{n}"), "app", 2).await?;
            }
            tx.note_application_use(&client("other"), at(1_000)).await?;
            tx.delete_unused_application(at(90), at(1)).await?;
            tx.begin_purge_of_applications(at(90)).await
        })
        .unwrap();
        let load = LIFE_ROWS_MAX as u64;
        assert_eq!(tx!(store, tx => { tx.purge_applications().await }), Ok(3 + load));
        assert_eq!(tx!(store, tx => { number(tx, "SELECT COUNT(*) FROM applications").await }), Ok(2));
        assert_eq!(tx!(store, tx => { tx.purge_applications().await }), Ok(2));
        assert_eq!(tx!(store, tx => { number(tx, "SELECT COUNT(*) FROM applications").await }), Ok(1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_nodes_warn_and_delete_each_application_once() {
    both(|store| async move {
        tx!(store, tx => {
            for n in 0..40 {
                tx.put_application(&application(&format!("app-{n}")), at(1)).await?;
            }
            tx.note_application_use(&client("app"), at(1_000)).await?;
            tx.note_application_use(&client("other"), at(1_000)).await.map(drop)
        })
        .unwrap();
        let looks: Vec<_> = (0..4)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move {
                    let warned = tx!(store, tx => { tx.give_application_notices("60", at(61), at(1)).await });
                    let mut deleted = Vec::new();
                    // Another node's claim leaves none for this statement, though there are more.
                    for _ in 0..120 {
                        let one = tx!(store, tx => { tx.delete_unused_application(at(90), at(1)).await });
                        deleted.extend(one.unwrap());
                    }
                    (warned.unwrap(), deleted)
                })
            })
            .collect();
        let (mut warned, mut deleted) = (Vec::new(), Vec::new());
        for look in looks {
            let (some_warned, some_deleted) = look.await.unwrap();
            warned.extend(some_warned);
            deleted.extend(some_deleted);
        }
        for mut found in [warned, deleted] {
            found.sort_by(|one, other| one.as_str().cmp(other.as_str()));
            assert_eq!(found.len(), 40);
            found.dedup();
            assert_eq!(found.len(), 40);
        }
    })
    .await;
}

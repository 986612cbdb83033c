//! Revoked credentials: secrets, applications, and the sessions that they admitted.

use domain::session::SessionOwner;
use domain::{ApplicationSecretId, SessionKey};
use store::queries::application_secrets::StoredSecret;
use store::queries::session_ends::{AdmittedBy, SESSION_ENDS_MAX};
use store::{StoreError, Tx};

use crate::{
    application, at, channel, client, hash, in_seeded, node, number, of_client, of_user, organization,
    secret, session, taken_url,
};

fn secret_id(id: &str) -> ApplicationSecretId {
    ApplicationSecretId::stored(id.to_owned())
}

/// Ids of secrets, when they were last used and when they expire.
fn times(secrets: &[StoredSecret]) -> Vec<(&str, Option<i64>, Option<i64>)> {
    let ms = |date: Option<domain::Timestamp>| date.map(domain::Timestamp::as_millis);
    secrets.iter().map(|s| (s.secret_id.as_str(), ms(s.last_used_at), ms(s.expires_at))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_listed_until_it_expires() {
    in_seeded(async move |tx: &mut Tx| {
        let app = client("app");
        for (text, ms) in [("one", 1), ("two", 2)] {
            tx.insert_application_secret(&app, &secret(text), at(ms)).await?;
        }
        tx.note_secret_use(&secret_id("one"), at(50)).await?;
        tx.note_secret_use(&secret_id("one"), at(40)).await?;
        assert!(tx.time_application_secret(&app, &secret_id("two"), Some(at(100)), at(3)).await?);
        assert!(!tx.time_application_secret(&client("other"), &secret_id("one"), None, at(3)).await?);
        assert!(!tx.time_application_secret(&app, &secret_id("none"), None, at(3)).await?);
        let found = tx.application_secrets(&app, at(99)).await?;
        assert_eq!(times(&found), [("one", Some(50), None), ("two", None, Some(100))]);
        assert_eq!(found[0].last_characters.as_deref(), Some("-one"));
        assert_eq!(times(&tx.application_secrets(&app, at(100)).await?), [("one", Some(50), None)]);
        assert!(tx.expired_secrets(at(99)).await?.is_empty());
        assert_eq!(tx.expired_secrets(at(100)).await?, [(app.clone(), secret_id("two"))]);
        assert!(!tx.time_application_secret(&app, &secret_id("two"), None, at(100)).await?, "too late");
        // Only what has expired goes.
        for id in ["one", "two"] {
            tx.delete_expired_secret(&app, &secret_id(id), at(100)).await?;
        }
        assert!(tx.expired_secrets(at(1_000)).await?.is_empty());
        assert_eq!(number(tx, "SELECT COUNT(*) FROM application_secrets").await?, 1);
        assert_eq!(tx.expire_application_secrets(&app, at(200)).await?, [secret_id("one")]);
        assert!(tx.expire_application_secrets(&app, at(200)).await?.is_empty());
        assert!(tx.application_secrets(&app, at(200)).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_url_is_invalid_once_its_secret_has_expired() {
    in_seeded(async move |tx: &mut Tx| {
        let (app, owner) = (client("app"), of_client("app"));
        for text in ["one", "two", "gone"] {
            if text != "gone" {
                tx.insert_application_secret(&app, &secret(text), at(1)).await?;
            }
            let id = secret_id(text);
            tx.insert_session_url(&hash(text), &owner, Some(&id), at(1_000)).await?;
        }
        tx.time_application_secret(&app, &secret_id("one"), Some(at(100)), at(1)).await?;
        assert_eq!(tx.take_session_url(&hash("gone"), at(2)).await?, None);
        assert_eq!(tx.take_session_url(&hash("one"), at(100)).await?, None);
        let one = tx.take_session_url(&hash("one"), at(99)).await?.unwrap();
        assert_eq!((one.owner, one.secret_id), (owner.clone(), Some(secret_id("one"))));
        tx.delete_session_urls(&AdmittedBy::Secret(app, secret_id("two"))).await?;
        assert_eq!(tx.take_session_url(&hash("two"), at(2)).await?, None);
        Ok(())
    })
    .await;
}

async fn connect(
    tx: &mut Tx,
    key: &str,
    owner: &SessionOwner,
    secret: Option<&str>,
) -> Result<(), StoreError> {
    let secret = secret.map(secret_id);
    tx.insert_session(&session(key), owner, secret.as_ref(), &node("n"), at(1)).await
}

async fn connected(tx: &mut Tx) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT session_key FROM sessions WHERE disconnected_at IS NULL ORDER BY session_key";
    tx.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_with_what_admitted_them() {
    in_seeded(async move |tx: &mut Tx| {
        connect(tx, "s1", &of_client("app"), Some("one")).await?;
        connect(tx, "s2", &of_client("app"), Some("two")).await?;
        connect(tx, "s3", &of_user("app", "a"), None).await?;
        connect(tx, "s4", &of_user("other", "a"), None).await?;
        connect(tx, "s5", &of_user("other", "b"), None).await?;
        let first = SessionKey::stored(String::new());
        let ends = [
            (AdmittedBy::Secret(client("app"), secret_id("one")), Some("s1"), 4),
            (AdmittedBy::Secret(client("other"), secret_id("two")), None, 4),
            (AdmittedBy::Application(client("app")), Some("s3"), 2),
            (AdmittedBy::Channel(channel("a")), Some("s4"), 1),
        ];
        for (admitted, last, left) in ends {
            let ended = tx.end_sessions(&admitted, &first, at(9), "revoked").await?;
            assert_eq!(ended, last.map(session), "{admitted:?}");
            assert_eq!(connected(tx).await?.len(), left, "{admitted:?}");
        }
        assert_eq!(connected(tx).await?, ["s5"]);
        let closing = tx.sessions_closing(&node("n"), &first, 10).await?;
        assert_eq!(closing.len(), 4);
        assert!(closing.iter().all(|(_, reason)| reason == "revoked"));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sessions_end_in_batches() {
    in_seeded(async move |tx: &mut Tx| {
        let sessions = usize::try_from(SESSION_ENDS_MAX).unwrap() + 1;
        for n in 0..sessions {
            connect(tx, &format!("s{n:04}"), &of_user("app", "a"), None).await?;
        }
        let admitted = AdmittedBy::Application(client("app"));
        let mut after = SessionKey::stored(String::new());
        let mut loads = 0;
        while let Some(last) = tx.end_sessions(&admitted, &after, at(9), "revoked").await? {
            after = last;
            loads += 1;
        }
        assert_eq!((loads, connected(tx).await?.len()), (2, 0));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_application_is_not_found_until_it_is_enabled() {
    in_seeded(async move |tx: &mut Tx| {
        let app = client("app");
        tx.insert_session_url(&hash("url"), &of_client("app"), None, at(1_000)).await?;
        assert!(!tx.disable_application(&client("missing"), at(5), at(0)).await?);
        for now in [5, 6] {
            assert!(tx.disable_application(&app, at(now), at(0)).await?);
        }
        assert!(tx.application(&app).await?.is_none());
        assert_eq!(tx.take_session_url(&hash("url"), at(2)).await?, None);
        let life = tx.application_life(&app, at(0)).await?.unwrap();
        assert_eq!(life.disabled_at, Some(at(5)), "since the first time");
        // Being put does not enable it.
        tx.put_application(&application("app"), at(7)).await?;
        assert!(tx.application(&app).await?.is_none());
        assert!(!tx.enable_application(&client("missing"), at(0)).await?);
        for _ in 0..2 {
            assert!(tx.enable_application(&app, at(0)).await?);
        }
        assert!(tx.application(&app).await?.is_some());
        let taken = tx.take_session_url(&hash("url"), at(2)).await?;
        assert_eq!(taken, Some(taken_url(&of_client("app"), None)));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_application_is_deleted_except_for_sessions_whose_sockets_are_open() {
    in_seeded(async move |tx: &mut Tx| {
        let app = client("app");
        let record = store::queries::nodes::NodeRecord {
            node_id: node("n"),
            roles: String::new(),
            session_base: None,
            started_at: at(1),
            version: String::new(),
        };
        tx.register_node(&record, at(1)).await?;
        connect(tx, "s1", &of_client("app"), None).await?;
        assert!(!tx.has_purging_applications().await?);
        assert!(tx.begin_purge_of_application(&app, at(5)).await?);
        assert!(!tx.begin_purge_of_application(&app, at(6)).await?);
        assert!(tx.has_purging_applications().await?);
        assert!(tx.application_life(&app, at(0)).await?.is_none());
        let (admitted, first) = (AdmittedBy::Application(app.clone()), session(""));
        tx.end_sessions(&admitted, &first, at(7), "revoked").await?;
        while tx.purge_applications().await? > 0 {}
        assert!(tx.is_application_purging(&app).await?, "its node has yet to close the socket");
        tx.disconnect_session(&session("s1"), at(8), "revoked").await?;
        while tx.purge_applications().await? > 0 {}
        assert!(!tx.is_application_purging(&app).await?);
        assert_eq!(number(tx, "SELECT COUNT(*) FROM sessions").await?, 0);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_are_listed_by_their_ids() {
    in_seeded(async move |tx: &mut Tx| {
        tx.put_organization(&organization("games", true)).await?;
        let mut owned = application("zoo");
        owned.organization = Some(organization("games", true));
        tx.put_application(&owned, at(1)).await?;
        let ids = |lives: Vec<store::queries::application_life::ApplicationLife>| {
            lives.into_iter().map(|life| life.application.client_id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids(tx.applications("", at(0), 10).await?), ["app", "other", "zoo"]);
        assert_eq!(ids(tx.applications("app", at(0), 1).await?), ["other"]);
        let games = organization("games", true).organization_id;
        assert_eq!(ids(tx.applications_of_organization(&games, "", at(0), 10).await?), ["zoo"]);
        tx.begin_purge_of_application(&client("app"), at(5)).await?;
        assert_eq!(ids(tx.applications("", at(0), 10).await?), ["other", "zoo"]);
        Ok(())
    })
    .await;
}

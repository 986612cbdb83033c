//! Sign-ins at the operator's providers.

use store::queries::upstreams::{NewUpstreamFlow, NewUpstreamIdentity};
use store::{StoreError, Tx, params};

use crate::{at, both, channel, hash, in_seeded, tx};

async fn people(tx: &mut Tx) -> Result<(), StoreError> {
    tx.insert_person(&channel("a"), "login-a", "", None).await?;
    tx.insert_person(&channel("b"), "login-b", "", None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_is_taken_once_by_its_browser_at_its_provider_in_time() {
    in_seeded(async move |tx: &mut Tx| {
        let (state, browser, other) = (&hash("state"), &hash("browser"), &hash("other"));
        let flow = NewUpstreamFlow { state, browser, provider: "one", sealed: "sealed", expires_at: at(10) };
        tx.insert_upstream_flow(flow).await?;
        assert_eq!(tx.take_upstream_flow(state, other, "one", at(9)).await?, None);
        assert_eq!(tx.take_upstream_flow(state, browser, "two", at(9)).await?, None);
        assert_eq!(tx.take_upstream_flow(other, browser, "one", at(9)).await?, None);
        assert_eq!(tx.take_upstream_flow(state, browser, "one", at(10)).await?, None);
        assert_eq!(tx.take_upstream_flow(state, browser, "one", at(9)).await?.as_deref(), Some("sealed"));
        assert_eq!(tx.take_upstream_flow(state, browser, "one", at(9)).await?, None);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_of_a_provider_has_one_account() {
    in_seeded(async move |tx: &mut Tx| {
        people(tx).await?;
        let a = &channel("a");
        let identity = |issuer, provider| NewUpstreamIdentity {
            issuer,
            subject: "s",
            provider,
            channel_id: a,
            shown_as: None,
        };
        tx.insert_upstream_identity(identity("i", "one"), at(1)).await?;
        tx.insert_upstream_identity(
            NewUpstreamIdentity { shown_as: Some("하늘"), ..identity("j", "two") },
            at(2),
        )
        .await?;
        assert_eq!(tx.upstream_identity("i", "s").await?, Some(channel("a")));
        assert_eq!(tx.upstream_identity("i", "t").await?, None);
        assert!(tx.use_upstream_identity("i", "s", a, at(5)).await?);
        assert!(!tx.use_upstream_identity("i", "s", &channel("b"), at(6)).await?);
        let linked = tx.linked_providers(a).await?;
        let found: Vec<_> = linked
            .iter()
            .map(|found| {
                (found.provider.as_str(), found.shown_as.as_deref(), found.created_at, found.last_used_at)
            })
            .collect();
        assert_eq!(found, [("one", None, at(1), at(5)), ("two", Some("하늘"), at(2), at(2))]);
        assert!(tx.delete_upstream_identity(a, "one").await?);
        assert!(!tx.delete_upstream_identity(a, "one").await?);
        assert_eq!(tx.upstream_identity("i", "s").await?, None);
        tx.execute("DELETE FROM people WHERE channel_id = $1", params![a]).await?;
        assert_eq!(tx.upstream_identity("j", "s").await?, None, "it goes with its account");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_account_of_a_person_is_refused() {
    both(|store| async move {
        let insert = |issuer: &'static str,
                      subject: &'static str,
                      provider: &'static str,
                      id: &'static str| {
            let store = store.clone();
            async move {
                tx!(store, tx => {
                    let channel_id = &channel(id);
                    let shown_as = None;
                    let identity = NewUpstreamIdentity { issuer, subject, provider, channel_id, shown_as };
                    tx.insert_upstream_identity(identity, at(1)).await
                })
            }
        };
        tx!(store, tx => { people(tx).await }).unwrap();
        insert("i", "s", "one", "a").await.unwrap();
        let taken = insert("i", "s", "one", "b").await;
        assert!(matches!(taken, Err(StoreError::Unique { .. })), "{taken:?}");
        let second = insert("i", "t", "one", "a").await;
        assert!(matches!(second, Err(StoreError::Unique { .. })), "{second:?}");
        let stranger = insert("i", "u", "one", "c").await;
        assert!(matches!(stranger, Err(StoreError::ForeignKey)), "{stranger:?}");
    })
    .await;
}

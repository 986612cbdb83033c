//! Sealed secrets are read in pages, and their seals are replaced only while they are the same.

use domain::WebhookSecretId;
use store::queries::seals::{SealedKind, SealedSecret};

use crate::webhooks::plant;
use crate::{at, both, channel, tx};

#[tokio::test(flavor = "multi_thread")]
async fn a_seal_is_replaced_once_and_never_over_another_secret() {
    both(|store| async move {
        tx!(store, tx => {
            for name in ["a", "b", "c"] {
                tx.replace_stream_key(&channel(name), &format!("sealed {name}"), at(1)).await?;
            }
            tx.put_person(&channel("b"), "login", "hash").await?;
            tx.put_two_factor(&channel("b"), "sealed two").await?;
            let webhook = plant(tx, "w").await?;
            let secret = WebhookSecretId::stored("s".to_owned());
            tx.insert_webhook_secret(&secret, &webhook, "sealed hook", at(1), at(1)).await
        })
        .unwrap();
        let of = |id: &str, owner: &str, sealed: &str| SealedSecret {
            id: id.to_owned(),
            owner: owner.to_owned(),
            sealed: sealed.to_owned(),
        };
        let page = async |kind: SealedKind, after: &'static str, limit: i64| {
            tx!(store, tx => { tx.sealed_secrets(kind, after, limit).await }).unwrap()
        };
        let [a, b, c] = ["a", "b", "c"].map(|name| of(name, name, &format!("sealed {name}")));
        assert_eq!(page(SealedKind::StreamKey, "", 2).await, [a.clone(), b]);
        assert_eq!(page(SealedKind::StreamKey, "b", 2).await, [c]);
        assert_eq!(page(SealedKind::StreamKey, "c", 2).await, []);
        assert_eq!(page(SealedKind::TwoFactor, "", 2).await, [of("b", "b", "sealed two")]);
        let hooks = page(SealedKind::WebhookSecret, "", 9).await;
        assert!(hooks.contains(&of("s", "w", "sealed hook")), "{hooks:?}");

        // One of several concurrent replacements counts.
        let tries = (0..8).map(|n| {
            let (store, a) = (store.clone(), a.clone());
            tokio::spawn(async move {
                tx!(store, tx => { tx.renew_seal(SealedKind::StreamKey, &a, &format!("new {n}")).await })
                    .unwrap()
            })
        });
        let mut replaced = 0;
        for tried in tries.collect::<Vec<_>>() {
            replaced += usize::from(tried.await.unwrap());
        }
        assert_eq!(replaced, 1);
        for (kind, secret) in [
            (SealedKind::TwoFactor, of("b", "b", "sealed two")),
            (SealedKind::WebhookSecret, of("s", "w", "sealed hook")),
        ] {
            let other = SealedSecret { sealed: "another".to_owned(), ..secret.clone() };
            assert!(!tx!(store, tx => { tx.renew_seal(kind, &other, "new").await }).unwrap());
            assert!(tx!(store, tx => { tx.renew_seal(kind, &secret, "new").await }).unwrap());
        }
    })
    .await;
}

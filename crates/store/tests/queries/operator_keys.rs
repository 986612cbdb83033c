//! The operator keys that are made over the platform API.

use domain::OperatorKeyId;
use domain::operator_key::OperatorRole;
use domain::secret::SecretHash;
use store::Tx;
use store::queries::operator_keys::StoredOperatorKey;

use crate::{at, in_seeded};

fn key(id: &str, role: OperatorRole) -> StoredOperatorKey {
    StoredOperatorKey {
        key_id: OperatorKeyId::stored(id.to_owned()),
        name: "collector".to_owned(),
        role,
        last_characters: "abcd".to_owned(),
        created_at: at(1),
        last_used_at: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_found_by_their_hashes_until_they_are_deleted() {
    in_seeded(async move |tx: &mut Tx| {
        let (first, second) = (key("k1", OperatorRole::Read), key("k2", OperatorRole::Admin));
        let (hash, other) = (SecretHash::of("first"), SecretHash::of("second"));
        tx.insert_operator_key(&first, &hash).await?;
        tx.insert_operator_key(&second, &other).await?;
        let found = tx.operator_key_of(&hash).await?;
        assert_eq!(found, Some((first.key_id.clone(), "collector".to_owned(), OperatorRole::Read)));
        assert_eq!(tx.operator_key_of(&SecretHash::of("third")).await?, None);

        tx.note_operator_key_use(&first.key_id, at(9)).await?;
        tx.note_operator_key_use(&first.key_id, at(5)).await?;
        let stored = tx.operator_key(&first.key_id).await?.expect("the key");
        assert_eq!((stored.name.as_str(), stored.last_characters.as_str()), ("collector", "abcd"));
        assert_eq!((stored.created_at, stored.last_used_at), (at(1), Some(at(9))));

        let ids = |keys: Vec<StoredOperatorKey>| {
            keys.into_iter().map(|key| key.key_id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids(tx.operator_keys("", 10).await?), ["k1", "k2"]);
        assert_eq!(ids(tx.operator_keys("k1", 10).await?), ["k2"]);
        assert_eq!(ids(tx.operator_keys("", 1).await?), ["k1"]);

        assert!(tx.delete_operator_key(&first.key_id).await?);
        assert!(!tx.delete_operator_key(&first.key_id).await?);
        assert_eq!(tx.operator_key_of(&hash).await?, None);
        assert!(tx.operator_key(&first.key_id).await?.is_none());
        Ok(())
    })
    .await;
}

//! The operator keys that are made over the platform API.

use domain::operator_key::OperatorRole;
use domain::secret::SecretHash;
use domain::{OperatorKeyId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const INSERT: &str = "
    INSERT INTO operator_keys (key_id, name, role, key_hash, last_characters, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)";

const KEYS: &str = sql!(
    "SELECT ",
    StoredOperatorKey::COLUMNS,
    " FROM operator_keys WHERE key_id > $1 ORDER BY key_id LIMIT $2"
);

const KEY: &str = sql!("SELECT ", StoredOperatorKey::COLUMNS, " FROM operator_keys WHERE key_id = $1");

const KEY_OF_HASH: &str = "SELECT key_id, name, role FROM operator_keys WHERE key_hash = $1";

const NOTE_USE: &str = "
    UPDATE operator_keys SET last_used_at = $2
    WHERE key_id = $1 AND (last_used_at IS NULL OR last_used_at < $2)";

const DELETE: &str = "DELETE FROM operator_keys WHERE key_id = $1";

/// A stored operator key.
#[derive(Clone, Debug)]
pub struct StoredOperatorKey {
    /// Its id.
    pub key_id: OperatorKeyId,
    /// Its name.
    pub name: String,
    /// What it allows.
    pub role: OperatorRole,
    /// Its last characters, by which an operator recognizes it.
    pub last_characters: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, as far as recorded.
    pub last_used_at: Option<Timestamp>,
}

columns!(StoredOperatorKey {
    key_id: "key_id",
    name: "name",
    role: "role",
    last_characters: "last_characters",
    created_at: "created_at",
    last_used_at: "last_used_at",
});

impl Tx {
    /// Adds a key.
    pub async fn insert_operator_key(
        &mut self,
        key: &StoredOperatorKey,
        hash: &SecretHash,
    ) -> Result<(), StoreError> {
        let StoredOperatorKey { key_id, name, role, last_characters, created_at, .. } = key;
        let (name, last) = (name.as_str(), last_characters.as_str());
        self.execute(INSERT, params![key_id, name, role.name(), hash, last, *created_at]).await?;
        Ok(())
    }

    /// Up to `size` keys after `after`, in the order of their ids.
    pub async fn operator_keys(
        &mut self,
        after: &str,
        size: i64,
    ) -> Result<Vec<StoredOperatorKey>, StoreError> {
        self.fetch_all(KEYS, params![after, size]).await
    }

    /// The key of an id.
    pub async fn operator_key(
        &mut self,
        id: &OperatorKeyId,
    ) -> Result<Option<StoredOperatorKey>, StoreError> {
        self.fetch_optional(KEY, params![id]).await
    }

    /// The id, the name and the role of the key with this hash.
    pub async fn operator_key_of(
        &mut self,
        hash: &SecretHash,
    ) -> Result<Option<(OperatorKeyId, String, OperatorRole)>, StoreError> {
        self.fetch_optional(KEY_OF_HASH, params![hash]).await
    }

    /// Records a use of a key.
    pub async fn note_operator_key_use(
        &mut self,
        id: &OperatorKeyId,
        used_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(NOTE_USE, params![id, used_at]).await?;
        Ok(())
    }

    /// Deletes a key: `false` if there is none.
    pub async fn delete_operator_key(&mut self, id: &OperatorKeyId) -> Result<bool, StoreError> {
        Ok(self.execute(DELETE, params![id]).await? > 0)
    }
}

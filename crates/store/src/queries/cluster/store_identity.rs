//! Which store this is, and with which service key its secrets are sealed.

use domain::StoreId;

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// What a store says of itself. Its backups repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Random, and made once, by a migration. A copy of all rows has the same.
    pub store_id: StoreId,
    /// A value that is sealed with the service key; `None` until the first start with a key.
    pub key_test: Option<String>,
    /// What the value was before the last change of the key.
    pub former_key_test: Option<String>,
}

columns!(StoreIdentity { store_id: "store_id", key_test: "key_test", former_key_test: "former_key_test" });

const IDENTITY: &str = sql!("SELECT ", StoreIdentity::COLUMNS, " FROM store_identity WHERE identity_id = 1");

const ADOPT_KEY: &str = "
    UPDATE store_identity SET key_test = $1 WHERE identity_id = 1 AND key_test IS NULL";

const CHANGE_KEY: &str = "
    UPDATE store_identity SET key_test = $2, former_key_test = $1 WHERE identity_id = 1 AND key_test = $1";

impl Tx {
    /// What the store says of itself.
    pub async fn store_identity(&mut self) -> Result<StoreIdentity, StoreError> {
        self.fetch_one(IDENTITY, params![]).await
    }

    /// Records the test of the first service key of a store, unless there is one.
    pub async fn adopt_service_key(&mut self, key_test: &str) -> Result<(), StoreError> {
        self.execute(ADOPT_KEY, params![key_test]).await?;
        Ok(())
    }

    /// Replaces the test of the service key: `false` if another node has replaced it first.
    pub async fn change_service_key(&mut self, from: &str, to: &str) -> Result<bool, StoreError> {
        Ok(self.execute(CHANGE_KEY, params![from, to]).await? > 0)
    }
}

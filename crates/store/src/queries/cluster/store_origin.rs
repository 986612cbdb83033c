//! The program that created a store, so that a sandbox is never seeded into a service's store, and never
//! served as one.

use domain::Timestamp;

use crate::{StoreError, Tx, params};

/// A store from before this table is the sandbox's if it has the sandbox's organization. Otherwise it is the
/// service's, unless it is empty.
const CLAIM: &str = "
    INSERT INTO store_origin (origin_id, made_by)
    SELECT 1, CASE
        WHEN EXISTS (SELECT 1 FROM organizations WHERE organization_id = 'sandbox-games') THEN 'dev'
        WHEN EXISTS (SELECT 1 FROM channels) OR EXISTS (SELECT 1 FROM applications) THEN 'serve'
        ELSE CAST($1 AS TEXT) END
    ON CONFLICT (origin_id) DO NOTHING";

const MADE_BY: &str = "SELECT made_by FROM store_origin WHERE origin_id = 1";

/// By the engine's clock.
const MADE_AT: &str = "SELECT MIN(applied_at) FROM schema_migrations";

impl Tx {
    /// When the first migration of the store ran.
    pub async fn store_made_at(&mut self) -> Result<Timestamp, StoreError> {
        self.fetch_one(MADE_AT, params![]).await
    }

    /// Records the program that creates the store: `false` if one was recorded.
    pub async fn claim_store(&mut self, command: &str) -> Result<bool, StoreError> {
        Ok(self.execute(CLAIM, params![command]).await? > 0)
    }

    /// The program that created the store.
    pub async fn store_made_by(&mut self) -> Result<Option<String>, StoreError> {
        self.fetch_optional(MADE_BY, params![]).await
    }
}

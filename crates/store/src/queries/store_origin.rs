//! What a store was made by, so that a sandbox is never planted into a service, and never served as one.

use crate::{StoreError, Tx, params};

/// A store from before this was noted is the sandbox's where the sandbox's organization stands in it; else the service's,
/// unless nothing stands in it.
const CLAIM: &str = "
    INSERT INTO store_origin (origin_id, made_by)
    SELECT 1, CASE
        WHEN EXISTS (SELECT 1 FROM organizations WHERE organization_id = 'sandbox-games') THEN 'dev'
        WHEN EXISTS (SELECT 1 FROM channels) OR EXISTS (SELECT 1 FROM applications) THEN 'serve'
        ELSE CAST($1 AS TEXT) END
    ON CONFLICT (origin_id) DO NOTHING";

const MADE_BY: &str = "SELECT made_by FROM store_origin WHERE origin_id = 1";

impl Tx {
    /// Notes what makes the store, unless that was noted before.
    pub async fn claim_store(&mut self, command: &str) -> Result<(), StoreError> {
        self.execute(CLAIM, params![command]).await?;
        Ok(())
    }

    /// What made the store.
    pub async fn store_made_by(&mut self) -> Result<Option<String>, StoreError> {
        self.query_opt(MADE_BY, params![]).await?.map(|row| row.get(0)).transpose()
    }
}

//! What an operator measures of a store that is a server. A file is measured by its folder.

use domain::Timestamp;

use crate::{StoreError, Tx, params};

const LAST_BACKUP: &str = "SELECT MAX(taken_at) FROM last_backup";

/// Only of PostgreSQL.
const DATABASE_BYTES: &str = "SELECT pg_database_size(current_database())";

impl Tx {
    /// When the last completed backup of a server began, as far as it was recorded.
    pub async fn last_backup(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.fetch_one(LAST_BACKUP, params![]).await
    }

    /// The size of the database on disk, with its indexes, in bytes.
    pub async fn database_bytes(&mut self) -> Result<i64, StoreError> {
        self.fetch_one(DATABASE_BYTES, params![]).await
    }
}

//! The partitions of the tables with the most rows, on PostgreSQL.

use std::time::Duration;

use store::PartitionedTable;

use crate::{Error, Service};

/// The longest time that statements can wait for the upkeep of their table beside a running service.
const LONGEST: Duration = Duration::from_secs(10);
/// The same before this node serves. The first start on a database that was copied reads its rows.
const LONGEST_AT_START: Duration = Duration::from_secs(600);

impl Service {
    /// Makes the partitions that are needed next, before the node serves. Without them a table is as before
    /// partitions, so a failure is only logged.
    pub async fn prepare_partitions(&self) {
        for table in PartitionedTable::ALL {
            if let Err(error) = self.try_to_keep_partitions(table, LONGEST_AT_START).await {
                self.log_failure("failed to make the partitions of a table: the sweep tries again", &error);
            }
        }
    }

    /// Makes the partitions of a table that are needed next, and drops the old ones. `false` on SQLite, whose
    /// rows are deleted instead. While others use the table, the next sweep tries again.
    pub(super) async fn keep_partitions(&self, table: PartitionedTable) -> Result<bool, Error> {
        match self.try_to_keep_partitions(table, LONGEST).await {
            Err(Error::Store(error)) if error.is_contention() => {
                self.log_failure(
                    "failed to keep the partitions of a table: the next sweep tries again",
                    &Error::Store(error),
                );
                Ok(true)
            }
            kept => kept,
        }
    }

    async fn try_to_keep_partitions(
        &self,
        table: PartitionedTable,
        longest: Duration,
    ) -> Result<bool, Error> {
        let kept_ms = self.retention().kept_ms(table.retained());
        let upkeep = self.0.store.keep_partitions(table, self.now(), kept_ms, longest).await?;
        if let Some(upkeep) = upkeep.filter(|upkeep| upkeep.made + upkeep.dropped > 0) {
            tracing::info!(?table, made = upkeep.made, dropped = upkeep.dropped, "partitions kept");
        }
        Ok(upkeep.is_some())
    }
}

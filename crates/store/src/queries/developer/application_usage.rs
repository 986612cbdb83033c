//! The requests of applications, by day and kind.

use std::collections::HashSet;
use std::sync::LazyLock;

use domain::usage::{RequestCount, UsageKind};
use domain::{ClientId, Timestamp};

use crate::queries::batched::{BatchedStatement, ColumnType};
use crate::{StoreError, Tx, Value, params};

/// Columns of a row.
const COLUMNS: usize = 5;

static EXISTING: LazyLock<BatchedStatement<1>> = LazyLock::new(|| {
    BatchedStatement::new([ColumnType::Text], |ids| {
        format!("SELECT client_id FROM applications WHERE client_id IN ({ids})")
    })
});

static ADD: LazyLock<BatchedStatement<COLUMNS>> = LazyLock::new(|| {
    use ColumnType::{BigInt, Text};
    BatchedStatement::new([Text, BigInt, Text, BigInt, BigInt], |rows| {
        format!(
            "
    INSERT INTO application_usage (client_id, day, kind, requests, refused) {rows}
    ON CONFLICT (client_id, day, kind) DO UPDATE SET
        requests = application_usage.requests + excluded.requests,
        refused = application_usage.refused + excluded.refused"
        )
    })
});

const OF_APPLICATION: &str = "
    SELECT day, kind, requests, refused FROM application_usage WHERE client_id = $1 AND day >= $2
    ORDER BY day, kind";

/// Requests of one application, day and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The application.
    pub client_id: ClientId,
    /// The midnight, in UTC, at which the day begins.
    pub day: Timestamp,
    /// What they were counted as.
    pub kind: UsageKind,
    /// Their numbers.
    pub count: RequestCount,
}

impl Tx {
    /// Adds requests to their days. Each row is of another application or kind. Rows of applications that do
    /// not exist are left out. The rows are in one order, so that two nodes never wait for each other.
    pub async fn add_usage(&mut self, rows: &[UsageRow]) -> Result<(), StoreError> {
        let mut ids: Vec<&ClientId> = rows.iter().map(|row| &row.client_id).collect();
        ids.dedup();
        let ids = ids.into_iter().map(|id| [Value::from(id)]).collect();
        let existing: Vec<ClientId> = self.fetch_all_batched(&EXISTING, ids).await?;
        let existing: HashSet<ClientId> = existing.into_iter().collect();
        let mut known: Vec<&UsageRow> = rows.iter().filter(|row| existing.contains(&row.client_id)).collect();
        known.sort_unstable_by_key(|row| (&row.client_id, row.day, row.kind));
        let mut values = Vec::with_capacity(known.len());
        for UsageRow { client_id, day, kind, count } in known {
            values.push([
                client_id.into(),
                (*day).into(),
                kind.name().into(),
                count.requests.into(),
                count.refused.into(),
            ]);
        }
        self.execute_batched(&ADD, values).await
    }

    /// The requests of an application from a day on, oldest first.
    pub async fn usage_of_application(
        &mut self,
        client_id: &ClientId,
        since: Timestamp,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let rows: Vec<(Timestamp, String, i64, i64)> =
            self.fetch_all(OF_APPLICATION, params![client_id, since]).await?;
        let row = |(day, kind, requests, refused): (Timestamp, String, i64, i64)| {
            // A later version may know further kinds.
            let kind = UsageKind::from_name(&kind)?;
            let count = RequestCount { requests, refused };
            Some(UsageRow { client_id: client_id.clone(), day, kind, count })
        };
        Ok(rows.into_iter().filter_map(row).collect())
    }
}

//! The load of applications by minute, which shows an operator who causes it.

use std::sync::LazyLock;

use domain::{ClientId, Timestamp};

use crate::queries::batched::{BatchedStatement, ColumnType};
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// Columns of a row.
const COLUMNS: usize = 5;

static ADD: LazyLock<BatchedStatement<COLUMNS>> = LazyLock::new(|| {
    use ColumnType::{BigInt, Text};
    BatchedStatement::new([BigInt, Text, BigInt, BigInt, BigInt], |rows| {
        format!(
            "
    INSERT INTO application_load (minute, client_id, requests, refused, events) {rows}
    ON CONFLICT (minute, client_id) DO UPDATE SET
        requests = application_load.requests + excluded.requests,
        refused = application_load.refused + excluded.refused,
        events = application_load.events + excluded.events"
        )
    })
});

/// The applications with the most of something since `$1`, up to `$2`.
macro_rules! heaviest_sql {
    ($what:literal) => {
        sql!(
            "SELECT ",
            ApplicationLoad::COLUMNS,
            "
    FROM application_load l JOIN applications a ON a.client_id = l.client_id
    WHERE l.minute >= $1 AND a.purging = FALSE
    GROUP BY l.client_id, a.name HAVING SUM(l.",
            $what,
            ") > 0 ORDER BY SUM(l.",
            $what,
            ") DESC, l.client_id LIMIT $2"
        )
    };
}

/// What applications are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBy {
    /// Their requests.
    Requests,
    /// Those of them that were refused, or failed.
    Refused,
    /// Events that their sessions received.
    Events,
}

impl LoadBy {
    const fn sql(self) -> &'static str {
        match self {
            Self::Requests => heaviest_sql!("requests"),
            Self::Refused => heaviest_sql!("refused"),
            Self::Events => heaviest_sql!("events"),
        }
    }
}

/// The load that one application causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationLoad {
    /// The application.
    pub client_id: ClientId,
    /// Its name. Empty in what is added.
    pub name: String,
    /// Its requests.
    pub requests: i64,
    /// Those of them that were refused, or failed.
    pub refused: i64,
    /// Events that its sessions received.
    pub events: i64,
}

columns!(ApplicationLoad {
    client_id: "l.client_id",
    name: "a.name",
    requests: "CAST(SUM(l.requests) AS BIGINT)",
    refused: "CAST(SUM(l.refused) AS BIGINT)",
    events: "CAST(SUM(l.events) AS BIGINT)",
});

impl Tx {
    /// Adds to the load of a minute. Each row is of another application, and they are ordered by their ids,
    /// so that two nodes never wait for each other.
    pub async fn add_load(&mut self, minute: Timestamp, rows: &[ApplicationLoad]) -> Result<(), StoreError> {
        let values = rows.iter().map(|row| {
            let (requests, refused, events) = (row.requests, row.refused, row.events);
            [minute.into(), (&row.client_id).into(), requests.into(), refused.into(), events.into()]
        });
        self.execute_batched(&ADD, values.collect()).await
    }

    /// The applications with the most load from a minute on, the heaviest first.
    pub async fn heaviest_applications(
        &mut self,
        by: LoadBy,
        since: Timestamp,
        limit: i64,
    ) -> Result<Vec<ApplicationLoad>, StoreError> {
        self.fetch_all(by.sql(), params![since, limit]).await
    }
}

//! The upkeep of partitions: it makes them, drops them, and sets the storage parameters of those that lack
//! them. It changes the schema, so it runs on a connection of its own, once a day for each table.

use std::time::Duration;

use domain::Timestamp;
use tokio_postgres::{Client, Error};

use super::Postgres;
use super::connection::failure;
use super::connector::{Endpoint, connect};
use crate::partitions::storage::{LACKING, set_storage, storage_of};
use crate::partitions::{Contents, MOVED_ROWS_MAX, Partition, PartitionUpkeep, PartitionedTable, Plan};
use crate::work::{erase, typed};
use crate::{Row, StoreError, Tx, params};

const LIST: &str = "
    SELECT CAST(c.relname AS TEXT), COALESCE(pg_get_expr(c.relpartbound, c.oid), '')
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass(CAST($1 AS TEXT))";

/// One node at a time keeps the partitions of a table.
const TRY_TURN: &str = "SELECT pg_try_advisory_lock(hashtextextended('partitions ' || current_schema() || ' ' || CAST($1 AS TEXT), 0))";

/// How long the statements of others can wait for the upkeep to get the table. A long transaction that reads
/// the table, such as a backup, makes the upkeep try again later.
const TABLE_LOCK_MS: u128 = 250;
/// How long the upkeep waits for an old partition that no request reads. The server's own vacuum gives it up
/// after a second.
const OLD_LOCK_MS: u128 = 2_000;

impl Postgres {
    pub async fn keep_partitions(
        &self,
        table: PartitionedTable,
        now: Timestamp,
        kept_ms: i64,
        longest: Duration,
    ) -> Result<PartitionUpkeep, StoreError> {
        let needs_nothing = async move |tx: &mut Tx| {
            let rows = tx.query(LIST, params![table.name()]).await?;
            let partition = |row: &Row| Ok(Partition::parse(row.get(0)?, row.get::<&str>(1)?));
            let partitions = rows.iter().map(partition).collect::<Result<Vec<_>, StoreError>>()?;
            let partitions: Vec<_> = partitions.into_iter().flatten().collect();
            let plan = Plan::of(table, &partitions, now, kept_ms);
            let old = params![plan.old_end(), plan.oldest()];
            let has_expired = plan.has_old() && tx.query_opt(table.expired(), old).await?.is_some();
            let mut is_kept = plan.is_empty(&Contents { newest: None, has_expired, is_movable: true });
            for name in table.names() {
                is_kept &= tx.query(LACKING, params![*name, in_braces(name)]).await?.is_empty();
            }
            Ok::<_, StoreError>(is_kept)
        };
        if typed::<bool, StoreError>(self.read(erase(needs_nothing)).await)? {
            return Ok(PartitionUpkeep::default());
        }
        let Endpoint { config, tls } = &self.endpoint;
        let (client, task) = connect(config, tls.as_ref()).await.map_err(|error| failure(&error, ""))?;
        let outcome = async {
            if !client.query_one(TRY_TURN, &[&table.name()]).await?.try_get::<_, bool>(0)? {
                return Ok(PartitionUpkeep::default());
            }
            let upkeep = keep(&client, table, now, kept_ms, longest).await?;
            set_lacking_storage(&client, table).await?;
            Ok(upkeep)
        };
        let outcome = outcome.await;
        // The end of the connection rolls back what failed.
        drop(client);
        task.abort();
        outcome.map_err(|error| failure(&error, ""))
    }
}

async fn keep(
    client: &Client,
    table: PartitionedTable,
    now: Timestamp,
    kept_ms: i64,
    longest: Duration,
) -> Result<PartitionUpkeep, Error> {
    let plan = Plan::of(table, &list(client, table).await?, now, kept_ms);
    let found = contents(client, table, &plan).await?;
    if !found.is_movable {
        tracing::warn!(table = table.name(), "old partitions stay: too many of their rows are still needed");
    }
    if plan.statements(&found).0.is_empty() {
        return Ok(PartitionUpkeep::default());
    }
    let old_lock_ms = if table.old_ones_are_read() { TABLE_LOCK_MS } else { OLD_LOCK_MS };
    let begin = format!(
        "BEGIN READ WRITE; SET LOCAL statement_timeout = {}; SET LOCAL lock_timeout = {old_lock_ms}",
        longest.as_millis()
    );
    client.batch_execute(&begin).await?;
    for old in plan.old() {
        client.batch_execute(&format!("LOCK TABLE {old}")).await?;
    }
    client.batch_execute(&format!("SET LOCAL lock_timeout = {TABLE_LOCK_MS}")).await?;
    for name in table.names() {
        client.batch_execute(&format!("LOCK TABLE ONLY {name}")).await?;
    }
    // Rows may have come.
    let (statements, upkeep) = plan.statements(&contents(client, table, &plan).await?);
    for statement in statements {
        client.batch_execute(&statement).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(upkeep)
}

/// Sets the storage parameters of the partitions that lack them. Only a vacuum and another change of the
/// schema wait for the lock.
async fn set_lacking_storage(client: &Client, table: PartitionedTable) -> Result<(), Error> {
    for name in table.names() {
        for row in client.query(LACKING, &[name, &in_braces(name)]).await? {
            let set = set_storage(name, row.try_get(0)?);
            let set = format!("BEGIN READ WRITE; SET LOCAL lock_timeout = {OLD_LOCK_MS}; {set}; COMMIT");
            client.batch_execute(&set).await?;
        }
    }
    Ok(())
}

/// The storage parameters of a table's partitions as an array.
fn in_braces(name: &str) -> String {
    format!("{{{}}}", storage_of(name))
}

async fn list(client: &Client, table: PartitionedTable) -> Result<Vec<Partition>, Error> {
    let rows = client.query(LIST, &[&table.name()]).await?;
    let partition = |row: &tokio_postgres::Row| Ok(Partition::parse(row.try_get(0)?, row.try_get(1)?));
    let partitions: Vec<_> = rows.iter().map(partition).collect::<Result<_, Error>>()?;
    Ok(partitions.into_iter().flatten().collect())
}

/// What the partitions hold.
async fn contents(client: &Client, table: PartitionedTable, plan: &Plan) -> Result<Contents, Error> {
    let newest = client.query_one(&table.newest_of_next(), &[]).await?.try_get(0)?;
    let has_expired = plan.has_old()
        && client.query_opt(table.expired(), &[&plan.old_end(), &plan.oldest().as_millis()]).await?.is_some();
    let is_movable = match plan.count_needed() {
        Some(count) => client.query_one(&count, &[]).await?.try_get::<_, i64>(0)? <= MOVED_ROWS_MAX,
        None => true,
    };
    Ok(Contents { newest, has_expired, is_movable })
}

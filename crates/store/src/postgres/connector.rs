//! Opens connections, and prepares the database before the first one.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Client, Config, Connection, Error, NoTls, Socket};

use super::connection::{failure, unconnected};
use super::meaning;
use super::tls::{self, Tls};
use crate::migrate::{self, Applied, MigratedEngine, Migration};
use crate::{DEADLINE, DatabaseUrl, StoreError};

/// The deadlines of the parts of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// The longest attempt to connect, with the session's settings.
    pub connect: Duration,
    /// The longest wait of a transaction for a free connection.
    pub acquire: Duration,
    /// The longest wait of a statement for a lock. Shorter than `statement`, so that the server reports which
    /// one passed.
    pub lock: Duration,
    /// The longest statement.
    pub statement: Duration,
    /// How long the server keeps an idle transaction and its locks.
    pub idle: Duration,
}

impl Deadlines {
    /// The deadlines within the deadline of the caller. For [`DEADLINE`](crate::DEADLINE): 1.5, 2, 1.75, 2
    /// and 5 s.
    pub fn within(whole: Duration) -> Self {
        Self {
            connect: whole * 3 / 5,
            acquire: whole * 4 / 5,
            lock: whole * 7 / 10,
            statement: whole * 4 / 5,
            idle: whole * 2,
        }
    }
}

/// A silent connection is probed after this time, and given up after [`Deadlines::connect`] without an
/// acknowledgement.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);

/// The longest wait at the start for another node that migrates the same database.
const MIGRATION_LOCK_DEADLINE: Duration = Duration::from_secs(60);

/// The advisory lock of migrations: "stagedor" in ASCII.
const MIGRATION_LOCK: i64 = 0x7374_6167_6564_6f72;

/// Gives every text column of the schema the collation `C`, and with it its indexes. A partition follows its
/// table. A key of partitions cannot be changed, so its migration names the collation. Text is then ordered
/// and compared by its bytes, as on SQLite.
const ORDER_TEXT_BY_BYTES: &str = r#"DO $$
DECLARE
    change TEXT;
BEGIN
    FOR change IN
        SELECT format('ALTER TABLE %s ', c.oid::regclass)
            || string_agg(format('ALTER COLUMN %I TYPE TEXT COLLATE "C"', a.attname), ', ' ORDER BY a.attnum)
        FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND a.atttypid = 'text'::regtype AND a.attcollation <> 'pg_catalog."C"'::regcollation
        GROUP BY c.oid
    LOOP
        EXECUTE change;
    END LOOP;
END $$"#;

/// Analyzes every table of the schema that has rows. Until the server's own analysis it would choose wrong
/// indexes after a migration.
pub(crate) const ANALYZE_FILLED_TABLES: &str = "DO $$
DECLARE
    filled REGCLASS;
BEGIN
    FOR filled IN
        SELECT c.oid::regclass FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND pg_relation_size(c.oid) > 0
    LOOP
        EXECUTE format('ANALYZE %s', filled);
    END LOOP;
END $$";

/// The tables and views of a schema that neither an extension nor this program has made, the first five.
const FOREIGN_TABLES: &str = "SELECT string_agg(name, ', ') FROM (
        SELECT CAST(c.relname AS TEXT) AS name FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
          AND CAST(c.relname AS TEXT) NOT IN ('schema_migrations', $1)
          AND NOT EXISTS (SELECT 1 FROM pg_depend d
              WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
        ORDER BY 1 LIMIT 5) t";

/// Opens connections with the settings of a session.
pub(super) struct Connector {
    session: String,
    tls: Option<Tls>,
}

/// The server of a URL.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub config: Config,
    /// How TLS is spoken, if it is.
    pub tls: Option<Tls>,
}

/// No JIT compilation: a statement takes milliseconds at the most. For a join of tables that have partitions
/// the server estimates far too many rows, and would compile the statement for a second or two.
const NO_JIT: &str = "SET jit = off;";

impl Connector {
    pub fn for_writing(deadlines: Deadlines, tls: Option<Tls>) -> Self {
        // An answer follows the sync, so `off` is overridden. A stricter setting of the server stays. A
        // statement whose BEGIN failed must not commit alone, so every BEGIN of a write says READ WRITE.
        Self {
            session: format!(
                "{NO_JIT} SET default_transaction_read_only = on;
                 SET statement_timeout = {statement}; SET lock_timeout = {lock};
                 SET idle_in_transaction_session_timeout = {idle};
                 SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') = 'off'",
                statement = deadlines.statement.as_millis(),
                lock = deadlines.lock.as_millis(),
                idle = deadlines.idle.as_millis(),
            ),
            tls,
        }
    }

    pub fn for_reading(deadlines: Deadlines, tls: Option<Tls>) -> Self {
        Self {
            session: format!(
                "{NO_JIT} SET statement_timeout = {}; SET default_transaction_read_only = on",
                deadlines.statement.as_millis()
            ),
            tls,
        }
    }

    pub async fn open(&self, config: &Config) -> Result<(Client, JoinHandle<()>), Error> {
        let (client, task) = connect(config, self.tls.as_ref()).await?;
        client.batch_execute(&self.session).await.inspect_err(|_| task.abort())?;
        Ok((client, task))
    }
}

impl Connect for Connector {
    fn connect(
        &self,
        config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        let config = config.clone();
        Box::pin(async move { self.open(&config).await })
    }
}

pub(super) async fn connect(config: &Config, tls: Option<&Tls>) -> Result<(Client, JoinHandle<()>), Error> {
    match tls {
        Some(tls) => config.connect(tls.clone()).await.map(run),
        None => config.connect(NoTls).await.map(run),
    }
}

/// Runs a connection until it ends.
fn run<S>((client, connection): (Client, Connection<Socket, S>)) -> (Client, JoinHandle<()>)
where
    S: TlsStream + Unpin + Send + 'static,
{
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a PostgreSQL connection ended");
        }
    });
    (client, task)
}

/// The table that a copy into this schema keeps until it is complete: see `transfer`.
pub(crate) const TRANSFER_PROGRESS: &str = "transfer_progress";

/// Connects without time-outs for statements, for work that is not a request.
pub(crate) async fn connect_alone(url: &DatabaseUrl) -> Result<(Client, JoinHandle<()>), StoreError> {
    let deadlines = Deadlines::within(DEADLINE);
    let Endpoint { config, tls } = parse(url, deadlines)?;
    let connected = tokio::time::timeout(deadlines.connect, connect(&config, tls.as_ref())).await;
    connected
        .map_err(|_| StoreError::Unavailable("the server does not answer".to_owned()))?
        .map_err(|error| unconnected(&error, &config))
}

/// Whether the schema has a table.
pub(crate) async fn has_table(client: &Client, name: &str) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = CAST($1 AS TEXT)
               AND relnamespace = current_schema()::regnamespace)";
    client.query_one(sql, &[&name]).await?.try_get(0)
}

/// The applied migrations, none for a schema without their table.
pub(crate) async fn history(client: &Client) -> Result<Vec<Applied>, Error> {
    if !has_table(client, migrate::HISTORY).await? {
        return Ok(Vec::new());
    }
    let rows = client.query(migrate::READ_HISTORY, &[]).await?;
    let applied =
        |row: &tokio_postgres::Row| Ok(Applied { version: row.try_get(0)?, checksum: row.try_get(1)? });
    rows.iter().map(applied).collect()
}

/// Refuses a schema without a store that has tables of another program. They could have the names of ours,
/// and the migrations order the texts of every table of the schema.
pub(crate) async fn check_own(client: &Client) -> Result<(), StoreError> {
    let found = client.query_one(FOREIGN_TABLES, &[&TRANSFER_PROGRESS]).await.and_then(|row| row.try_get(0));
    match found.map_err(|error| failure(&error, ""))? {
        None => Ok(()),
        Some::<String>(names) => Err(StoreError::Open(format!(
            "its schema has tables of another program ({names}): give Stagedoor an empty database, or an empty schema \
             in the search_path"
        ))),
    }
}

/// Refuses a schema into which another store is being copied.
async fn check_complete(client: &Client) -> Result<(), StoreError> {
    match has_table(client, TRANSFER_PROGRESS).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(StoreError::Open(
            "a copy into it has begun and is not complete: run `stagedoor migrate` or `stagedoor restore` again to \
             finish it"
                .to_owned(),
        )),
        Err(error) => Err(failure(&error, "")),
    }
}

/// Parses the URL, and reads the files that it names. Errors show nothing secret of it.
pub(super) fn parse(url: &DatabaseUrl, deadlines: Deadlines) -> Result<Endpoint, StoreError> {
    let (mut config, tls) = tls::configure(url.expose()).map_err(StoreError::Open)?;
    if config.get_application_name().is_none() {
        config.application_name("stagedoor");
    }
    config
        .connect_timeout(deadlines.connect)
        .tcp_user_timeout(deadlines.connect)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(deadlines.connect)
        .keepalives_retries(1);
    Ok(Endpoint { config, tls })
}

impl DatabaseUrl {
    /// Checks the URL, and reads the files that it names.
    ///
    /// # Errors
    /// A sentence for the operator that shows nothing secret of the URL.
    pub fn check(&self) -> Result<(), StoreError> {
        parse(self, Deadlines::within(DEADLINE)).map(drop)
    }
}

/// Checks the encoding and migrates the schema, on a connection of its own without a statement timeout. An
/// empty schema is refused if it has to be `existing`.
pub(super) async fn prepare_database(
    Endpoint { config, tls }: &Endpoint,
    known: &'static [Migration],
    existing: bool,
    deadlines: Deadlines,
) -> Result<(), StoreError> {
    let connected = tokio::time::timeout(deadlines.connect, connect(config, tls.as_ref())).await;
    let (client, task) = connected
        .map_err(|_| StoreError::Unavailable("the server does not answer".to_owned()))?
        .map_err(|error| unconnected(&error, config))?;
    let outcome = async {
        check_complete(&client).await?;
        if existing && !has_table(&client, migrate::HISTORY).await.map_err(|error| failure(&error, ""))? {
            return Err(StoreError::NoStore);
        }
        migrate_on(&client, known).await
    };
    let outcome = outcome.await;
    // The end of the session releases the advisory lock.
    drop(client);
    task.abort();
    outcome
}

pub(crate) async fn migrate_on(client: &Client, known: &'static [Migration]) -> Result<(), StoreError> {
    let failed = |error: Error| failure(&error, "");
    let row = client.query_one("SHOW server_encoding", &[]).await.map_err(failed)?;
    let encoding: &str = row.try_get(0).map_err(failed)?;
    if encoding != "UTF8" {
        return Err(StoreError::Open(format!("its encoding is {encoding}, not UTF8")));
    }
    let lock = format!(
        "SET lock_timeout = {}; SELECT pg_advisory_lock({MIGRATION_LOCK})",
        MIGRATION_LOCK_DEADLINE.as_millis(),
    );
    client.batch_execute(&lock).await.map_err(failed)?;
    let applied = history(client).await.map_err(failed)?;
    let pending = migrate::pending(known, &applied)?;
    if applied.is_empty() {
        check_own(client).await?;
    }
    for migration in pending {
        let applied = apply(client, migration).await;
        applied.map_err(|error| migrate::failed(migration, &meaning::schema_words(&error)))?;
        tracing::info!(version = migration.version, name = migration.name, "migration applied");
    }
    if !pending.is_empty() {
        client.batch_execute(ANALYZE_FILLED_TABLES).await.map_err(failed)?;
    }
    Ok(())
}

async fn apply(client: &Client, migration: &Migration) -> Result<(), Error> {
    client.batch_execute("BEGIN").await?;
    // With the first migration, so that a schema in which it fails stays as it was.
    client.batch_execute(migrate::CREATE_HISTORY).await?;
    // Before the migration, because it may order rows of older tables. After it, for its own tables.
    client.batch_execute(ORDER_TEXT_BY_BYTES).await?;
    client.batch_execute(&migration.text_for(MigratedEngine::Postgres)).await?;
    client.batch_execute(ORDER_TEXT_BY_BYTES).await?;
    client
        .execute(
            "INSERT INTO schema_migrations (version, name, checksum, applied_at)
             VALUES ($1, $2, $3, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT))",
            &[&migration.version, &migration.name, &migration.checksum()],
        )
        .await?;
    client.batch_execute("COMMIT").await
}

//! A connection: its statements, the end of its transaction, and the meaning of its errors.

use std::error::Error as _;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::{ClientWrapper, Object};
use tokio_postgres::config::Host;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Config, Error, Statement};

use super::meaning;
use crate::partitions::parent_of;
use crate::{Contention, Row, StoreError, Value};

// PostgreSQL takes the array of a parameter for ten rows. Without this setting it plans a statement anew for
// each shorter array, which takes longer than running it.
/// Before a statement over arrays in a transaction.
const KEEP_PLAN: &str = "SET LOCAL plan_cache_mode = force_generic_plan";
/// Before a statement over arrays on a shared connection.
const KEEP_PLANS: &str = "SET plan_cache_mode = force_generic_plan";
/// After that statement.
const RESET_PLANS: &str = "RESET plan_cache_mode";

/// The driver's words for a server that answers without TLS.
const NO_TLS: &str = "server does not support TLS";

/// The beginning of the standard library's words for a name that is not found. It has no kind of error for
/// it.
const NOT_FOUND: &str = "failed to lookup address information";

/// The error of such a name.
const HOST_NOT_FOUND: &str = "the name of its host was not found";

/// The connection of a transaction or of a look-up.
pub(crate) enum PostgresConnection {
    /// A connection of the pool, with a running transaction.
    Leased(Lease),
    /// A shared read-only connection. Each statement is a transaction of its own.
    Shared(Arc<SharedClient>),
}

impl PostgresConnection {
    fn client(&self) -> &ClientWrapper {
        match self {
            Self::Leased(lease) => lease.client(),
            Self::Shared(shared) => &shared.client,
        }
    }

    pub(crate) async fn query(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepare(sql, params).await?;
        let columns = columns(&statement)?;
        let bound: Vec<PostgresParameter<'_>> = params.iter().map(PostgresParameter).collect();
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|value| value as _).collect();
        let begin = self.take_begin();
        let run = self.client().query(&statement, &bound);
        let rows = match &*self {
            Self::Shared(shared) if params.iter().any(Value::is_array) => {
                keeping_plans(&shared.client, run).await
            }
            _ => after(self.client(), begin, run).await,
        };
        let rows = rows.map_err(|error| self.running(&error, sql))?;
        rows.iter().map(|row| read(row, &columns)).collect()
    }

    /// Runs a statement over arrays together with COMMIT, and with BEGIN if it is the first one: one round
    /// trip.
    pub(crate) async fn query_with_commit(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        match self {
            Self::Leased(lease) => {
                let before = match lease.begin.take() {
                    Some(begin) => format!("{begin}; {KEEP_PLAN}"),
                    None => KEEP_PLAN.to_owned(),
                };
                lease.query_with_commit(Some(&before), sql, params).await
            }
            Self::Shared(_) => Err(StoreError::Misuse("a look-up is no transaction and has no commit")),
        }
    }

    pub(crate) async fn execute(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        let statement = self.prepare(sql, params).await?;
        let bound: Vec<PostgresParameter<'_>> = params.iter().map(PostgresParameter).collect();
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|value| value as _).collect();
        let begin = self.take_begin();
        let changed = after(self.client(), begin, self.client().execute(&statement, &bound)).await;
        changed.map_err(|error| self.running(&error, sql))
    }

    /// The BEGIN that has to be sent with the first statement.
    fn take_begin(&mut self) -> Option<&'static str> {
        match self {
            Self::Leased(lease) => lease.begin.take(),
            Self::Shared(_) => None,
        }
    }

    /// Begins or ends a savepoint.
    pub(crate) async fn control(&mut self, sql: &'static str) -> Result<(), StoreError> {
        match self {
            Self::Leased(lease) => lease.control(sql).await,
            Self::Shared(_) => Err(StoreError::Misuse("a look-up is no transaction and has no parts")),
        }
    }

    async fn prepare(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Statement, StoreError> {
        prepare(self.client(), sql, params, |error| self.note_loss(error)).await
    }

    /// An error from running.
    fn running(&self, error: &Error, sql: &'static str) -> StoreError {
        self.note_loss(error);
        // The plan is from before another node's migration. The next call prepares the statement again.
        if error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED) {
            self.client().statement_cache.clear();
        }
        failure(error, sql)
    }

    /// Marks a lost shared connection. The driver detects the end of a connection later than the statement,
    /// and no other look-up should get the connection in between. A leased connection is closed because its
    /// rollback fails.
    fn note_loss(&self, error: &Error) {
        if let Self::Shared(shared) = self
            && error.as_db_error().is_none_or(|error| meaning::outage(error).is_some())
        {
            shared.lost.store(true, Ordering::Relaxed);
        }
    }
}

/// A connection for look-ups.
pub(crate) struct SharedClient {
    client: ClientWrapper,
    lost: AtomicBool,
}

impl SharedClient {
    pub(super) fn new(client: ClientWrapper) -> Self {
        Self { client, lost: AtomicBool::new(false) }
    }

    pub(super) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.lost.load(Ordering::Relaxed)
    }
}

/// Sends BEGIN or a setting, if there is one, together with a statement. Both are polled, and so sent, in
/// this order.
///
/// When BEGIN fails, the server runs the statement outside of a transaction. It changes nothing there,
/// because the session is read-only outside of a transaction.
async fn after<T>(
    client: &ClientWrapper,
    before: Option<&str>,
    statement: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let Some(before) = before else { return statement.await };
    let (begun, outcome) = tokio::join!(biased; client.batch_execute(before), statement);
    begun?;
    outcome
}

/// Sends a statement over arrays on a shared connection. The setting also holds for look-ups that are sent
/// meanwhile: only their plans differ.
async fn keeping_plans<T>(
    client: &ClientWrapper,
    statement: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let (set, reset) = (client.batch_execute(KEEP_PLANS), client.batch_execute(RESET_PLANS));
    let (set, outcome, reset) = tokio::join!(biased; set, statement, reset);
    set?;
    let outcome = outcome?;
    reset?;
    Ok(outcome)
}

/// A pooled connection for one transaction. The connection returns to the pool when the end of the
/// transaction is confirmed. Dropped before, it is closed, and the server rolls back.
pub(crate) struct Lease {
    connection: Option<Box<Object>>,
    /// BEGIN, until it is sent with the first statement.
    begin: Option<&'static str>,
    /// Set before the server may have committed.
    committing: Arc<AtomicBool>,
    /// The last statement was sent with COMMIT, and the server confirmed it.
    is_committed: bool,
}

impl Lease {
    /// A transaction that begins with its first statement.
    pub(super) fn new(connection: Object, begin: &'static str, committing: Arc<AtomicBool>) -> Self {
        Self { connection: Some(Box::new(connection)), begin: Some(begin), committing, is_committed: false }
    }

    #[expect(clippy::expect_used, reason = "it is taken only by methods that consume the lease")]
    fn client(&self) -> &ClientWrapper {
        self.connection.as_ref().expect("a lease holds its connection until it ends")
    }

    /// Gives the connection back to the pool.
    fn give_back(mut self) {
        self.connection.take();
    }

    /// Whether the last statement was committed with its own COMMIT.
    pub(super) fn is_committed(&self) -> bool {
        self.is_committed
    }

    async fn control(&mut self, sql: &'static str) -> Result<(), StoreError> {
        let outcome = match self.begin.take() {
            Some(begin) => self.client().batch_execute(&format!("{begin}; {sql}")).await,
            None => self.client().batch_execute(sql).await,
        };
        outcome.map_err(|error| failure(&error, sql))
    }

    /// Commits. The error is [`StoreError::CommitUnknown`] unless the server said that it did not commit.
    /// Nothing is sent if there was no statement, or if the last one was committed.
    pub(super) async fn commit(self) -> Result<(), StoreError> {
        if self.begin.is_none() && !self.is_committed {
            self.committing.store(true, Ordering::Relaxed);
            match self.client().batch_execute("COMMIT").await {
                Ok(()) => {}
                Err(error) if refused_commit(&error) => return Err(failure(&error, "COMMIT")),
                Err(_) => return Err(StoreError::CommitUnknown),
            }
        }
        self.give_back();
        Ok(())
    }

    /// Runs a last statement and [`commit`](Self::commit)s, in one round trip.
    pub(super) async fn commit_with(
        mut self,
        LastStatement { sql, params }: LastStatement,
    ) -> Result<(), StoreError> {
        let begin = self.begin.take();
        self.query_with_commit(begin, sql, &params).await?;
        self.give_back();
        Ok(())
    }

    /// Sends `before`, a statement and COMMIT.
    async fn query_with_commit(
        &mut self,
        before: Option<&str>,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let statement = prepare(self.client(), sql, params, |_| {}).await?;
        let columns = columns(&statement)?;
        let bound: Vec<PostgresParameter<'_>> = params.iter().map(PostgresParameter).collect();
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|value| value as _).collect();
        self.committing.store(true, Ordering::Relaxed);
        let client = self.client();
        // Both are polled, and so sent, in this order. Neither waits for the other's answer.
        let query = after(client, before, client.query(&statement, &bound));
        let (rows, committed) = tokio::join!(biased; query, client.batch_execute("COMMIT"));
        match (rows, committed) {
            (Ok(rows), Ok(())) => {
                self.is_committed = true;
                rows.iter().map(|row| read(row, &columns)).collect()
            }
            // A failed statement fails its transaction: the server treats this COMMIT as a ROLLBACK.
            (Err(error), _) if error.as_db_error().is_some() => {
                self.committing.store(false, Ordering::Relaxed);
                Err(failure(&error, sql))
            }
            (_, Err(error)) if refused_commit(&error) => Err(failure(&error, "COMMIT")),
            _ => Err(StoreError::CommitUnknown),
        }
    }

    pub(super) async fn roll_back(self) {
        if self.begin.is_some() || self.client().batch_execute("ROLLBACK").await.is_ok() {
            self.give_back();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            // Removes the connection from the pool and closes it.
            drop(Object::take(*connection));
        }
    }
}

/// A statement that is sent together with COMMIT.
pub(crate) struct LastStatement {
    pub(crate) sql: &'static str,
    pub(crate) params: Vec<Value<'static>>,
}

/// Whether the server refused the commit, and so has rolled back: a violated constraint, a lost race, a
/// cancelled statement or a full disk.
fn refused_commit(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| {
        let code = error.code();
        ["23", "40"].iter().any(|class| code.code().starts_with(class))
            || *code == SqlState::QUERY_CANCELED
            || (*code == SqlState::DISK_FULL && rolled_back(error))
    })
}

/// Whether the server goes on after the error. A server that panics because its log has no room may have
/// written the commit before.
fn rolled_back(error: &DbError) -> bool {
    error.parsed_severity() == Some(Severity::Error)
}

/// Prepares a statement once on each connection, and checks the parameters against the types that the server
/// inferred.
async fn prepare(
    client: &ClientWrapper,
    sql: &'static str,
    params: &[Value<'_>],
    on_error: impl Fn(&Error),
) -> Result<Statement, StoreError> {
    let statement = client.prepare_cached(sql).await.map_err(|error| {
        on_error(&error);
        preparing(&error, sql)
    })?;
    check_parameters(statement.params(), params, sql)?;
    Ok(statement)
}

fn check_parameters(wanted: &[Type], params: &[Value<'_>], sql: &'static str) -> Result<(), StoreError> {
    if wanted.len() != params.len() {
        let problem = format!("{} parameters given", params.len());
        return Err(StoreError::Parameter { parameter: wanted.len(), problem, sql });
    }
    for (index, (value, wanted)) in params.iter().zip(wanted).enumerate() {
        let fits = match value {
            Value::Null => [Type::INT8, Type::BOOL, Type::TEXT].contains(wanted),
            Value::Int(_) => *wanted == Type::INT8,
            Value::Bool(_) => *wanted == Type::BOOL,
            Value::Text(_) => *wanted == Type::TEXT,
            Value::Ints(_) => *wanted == Type::INT8_ARRAY,
            Value::Bools(_) => *wanted == Type::BOOL_ARRAY,
            Value::Texts(_) => *wanted == Type::TEXT_ARRAY,
        };
        if !fits {
            let problem = format!("a {} where the statement has a {}", value.kind(), wanted.name());
            return Err(StoreError::Parameter { parameter: index + 1, problem, sql });
        }
    }
    Ok(())
}

/// A parameter as PostgreSQL takes it; [`check_parameters`] has checked its type.
#[derive(Debug)]
struct PostgresParameter<'a>(&'a Value<'a>);

impl ToSql for PostgresParameter<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(value) => value.to_sql(ty, out),
            Value::Bool(value) => value.to_sql(ty, out),
            Value::Text(text) => text.as_ref().to_sql(ty, out),
            Value::Ints(values) => values.to_sql(ty, out),
            Value::Bools(values) => values.to_sql(ty, out),
            Value::Texts(texts) => texts.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::BOOL, Type::TEXT, Type::INT8_ARRAY, Type::BOOL_ARRAY, Type::TEXT_ARRAY]
            .contains(ty)
    }

    to_sql_checked!();
}

/// How a column is read.
#[derive(Clone, Copy)]
enum Column {
    Text,
    Int8,
    /// A literal such as `SELECT 1`: no column of ours is INTEGER.
    Int4,
    Bool,
}

fn columns(statement: &Statement) -> Result<Vec<Column>, StoreError> {
    let kind = |(column, found): (usize, &tokio_postgres::Column)| match *found.type_() {
        Type::TEXT => Ok(Column::Text),
        Type::INT8 => Ok(Column::Int8),
        Type::INT4 => Ok(Column::Int4),
        Type::BOOL => Ok(Column::Bool),
        ref other => Err(StoreError::Decode {
            column,
            wanted: "text, bigint or boolean",
            found: other.name().to_owned(),
        }),
    };
    statement.columns().iter().enumerate().map(kind).collect()
}

fn read(row: &tokio_postgres::Row, columns: &[Column]) -> Result<Row, StoreError> {
    let value = |(index, column): (usize, &Column)| {
        let value = match column {
            Column::Text => row.try_get::<_, Option<String>>(index)?.into(),
            Column::Int8 => row.try_get::<_, Option<i64>>(index)?.into(),
            Column::Int4 => row.try_get::<_, Option<i32>>(index)?.map(i64::from).into(),
            Column::Bool => row.try_get::<_, Option<bool>>(index)?.into(),
        };
        Ok(value)
    };
    let values: Result<_, Error> = columns.iter().enumerate().map(value).collect();
    Ok(Row::new(values.map_err(|error| failure(&error, ""))?))
}

/// An error from preparing. No parameter was sent, so the server's message is safe to keep.
fn preparing(error: &Error, sql: &'static str) -> StoreError {
    match failure(error, sql) {
        StoreError::Statement { code, sql, .. } => {
            let message = error.as_db_error().map(|error| error.message().to_owned()).unwrap_or_default();
            StoreError::Statement { code, message, sql }
        }
        other => other,
    }
}

/// The meaning of an error of the server or the driver. `sql` is empty for work that is not a statement of a
/// request: to connect, to prepare a schema, to read a whole one. It contains only the code and the names of
/// a server's error, because the server's message and detail quote values.
pub(crate) fn failure(error: &Error, sql: &'static str) -> StoreError {
    let Some(server) = error.as_db_error() else { return unreachable_server(error) };
    let code = server.code();
    match *code {
        SqlState::UNIQUE_VIOLATION => StoreError::Unique {
            constraint: unique_name(
                server.table().unwrap_or_default(),
                server.detail().unwrap_or_default(),
                server.constraint().unwrap_or_default(),
            ),
        },
        SqlState::FOREIGN_KEY_VIOLATION | SqlState::RESTRICT_VIOLATION => StoreError::ForeignKey,
        SqlState::CHECK_VIOLATION => StoreError::Check,
        SqlState::NOT_NULL_VIOLATION => StoreError::NotNull,
        SqlState::READ_ONLY_SQL_TRANSACTION if !sql.is_empty() => StoreError::ReadOnly,
        SqlState::T_R_DEADLOCK_DETECTED => Contention::Deadlock.into(),
        SqlState::T_R_SERIALIZATION_FAILURE => Contention::LostRace.into(),
        SqlState::LOCK_NOT_AVAILABLE => Contention::LockTimeout.into(),
        SqlState::QUERY_CANCELED => Contention::StatementTimeout.into(),
        SqlState::DISK_FULL => StoreError::DiskFull,
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => meaning::corrupt(server),
        _ => meaning::outage(server).unwrap_or_else(|| match sql {
            "" => meaning::preparation(server),
            _ => meaning::statement(server, sql),
        }),
    }
}

/// The error of an unreachable server. The driver's message contains no value. The operating system's error
/// names the problem of the network.
fn unreachable_server(error: &Error) -> StoreError {
    if let Some(meaning) = error.source().and_then(tls_files::meaning) {
        return StoreError::Refused(meaning);
    }
    let cause = error.source();
    if cause.is_some_and(|cause| cause.to_string() == NO_TLS) {
        return StoreError::Refused(
            "the server does not support TLS: set ssl=on there, or use sslmode=prefer or disable".to_owned(),
        );
    }
    let cause = cause.and_then(|cause| cause.downcast_ref::<std::io::Error>());
    match cause {
        // The text is of this program: a file that cannot be read.
        Some(cause) if cause.kind() == std::io::ErrorKind::Other => {
            StoreError::Refused(format!("{error}: {cause}"))
        }
        Some(cause) if cause.to_string().starts_with(NOT_FOUND) => {
            StoreError::Unavailable(HOST_NOT_FOUND.to_owned())
        }
        Some(cause) => StoreError::Unavailable(format!("{error}: {}", cause.kind())),
        None => StoreError::Unavailable(error.to_string()),
    }
}

/// The error of a connection, with the hosts of the URL if none of their names is found.
pub(super) fn unconnected(error: &Error, config: &Config) -> StoreError {
    let hosts = config.get_hosts().iter().filter_map(|host| match host {
        Host::Tcp(name) => Some(name.as_str()),
        Host::Unix(_) => None,
    });
    match failure(error, "") {
        StoreError::Unavailable(problem) if problem == HOST_NOT_FOUND => {
            let hosts: Vec<_> = hosts.collect();
            StoreError::Unavailable(format!("{problem}: {}", hosts.join(", ")))
        }
        other => other,
    }
}

/// `table(column, …)` from the detail `Key (column, …)=(value, …) already exists.`, in any language of the
/// server, without the values.
fn unique_name(table: &str, detail: &str, constraint: &str) -> String {
    let columns = detail.split_once('(').and_then(|(_, rest)| rest.split_once(")=("));
    // A violation in a partition is one of its table.
    match columns {
        Some((columns, _)) => format!("{}({columns})", parent_of(table)),
        None => constraint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_constraints_are_named_by_table_and_columns_and_never_by_value() {
        for (detail, name) in [
            ("Key (hash)=(s3cret) already exists.", "codes(hash)"),
            ("Key (a, b)=(1, )=(x) already exists.", "codes(a, b)"),
            ("Schlüssel »(hash)=(s3cret)« existiert bereits.", "codes(hash)"),
            ("", "codes_pkey"),
        ] {
            assert_eq!(unique_name("codes", detail, "codes_pkey"), name);
            assert_eq!(unique_name("codes__until_20261127", detail, "codes_pkey"), name);
        }
    }
}

//! Where the store is, and how it runs.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::log_archive::LogArchiving;
use crate::migrate::{MIGRATIONS, Migration};

/// The longest that a caller waits for the store, queue and commit included, unless [`Options`] say
/// otherwise. A request may take 3 seconds while the store is unreachable. The remaining half second is for
/// its answer.
pub const DEADLINE: Duration = Duration::from_millis(2_500);

/// Requests that may wait for one kind of work (writes, reads). The next one fails at once with
/// [`StoreError::Busy`](crate::StoreError::Busy).
pub const QUEUE_CAP: usize = 4_096;

/// Threads that read from a SQLite file.
pub const SQLITE_READERS: usize = 4;

/// PostgreSQL connections for transactions.
pub const POSTGRES_CONNECTIONS: usize = 16;

/// Shared PostgreSQL connections for single look-ups. Each runs many look-ups at the same time.
pub const POSTGRES_READ_CONNECTIONS: usize = 4;

/// The database.
#[derive(Debug, Clone)]
pub enum Target {
    /// A SQLite file, used by this process alone.
    Sqlite {
        /// The data file. The store creates the file, but not its folder.
        path: PathBuf,
    },
    /// A PostgreSQL server, shared by many nodes.
    Postgres {
        /// `postgres://user:password@host:port/database`, and TLS by the parameters `sslmode`, `sslrootcert`,
        /// `sslcert` and `sslkey`.
        url: DatabaseUrl,
    },
}

/// A database URL. It contains a password, so it has no `Display`, and its `Debug` shows nothing of it.
#[derive(Clone)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl")
    }
}

/// How the store runs. `Options::default()` is for production.
#[derive(Debug, Clone)]
pub struct Options {
    /// The schema's history, oldest first.
    pub migrations: &'static [Migration],
    /// Requests that may wait, for writes and for reads each.
    pub queue_cap: usize,
    /// Reader threads on SQLite.
    pub sqlite_readers: usize,
    /// Whether a commit on SQLite is synced. Without it a power failure can undo commits, which is right for
    /// files that do not outlive the process.
    pub sqlite_sync: bool,
    /// Connections for transactions on PostgreSQL.
    pub postgres_connections: usize,
    /// Connections for [`Store::read`](crate::Store::read) on PostgreSQL.
    pub postgres_read_connections: usize,
    /// The longest that a caller waits: see [`DEADLINE`].
    pub deadline: Duration,
    /// How the log of a SQLite file is archived; `None` if it is not.
    pub log_archiving: Option<LogArchiving>,
    /// Whether the store is there already: then none is made, and an empty place is
    /// [`StoreError::NoStore`](crate::StoreError::NoStore).
    pub existing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            migrations: MIGRATIONS,
            queue_cap: QUEUE_CAP,
            sqlite_readers: SQLITE_READERS,
            sqlite_sync: true,
            postgres_connections: POSTGRES_CONNECTIONS,
            postgres_read_connections: POSTGRES_READ_CONNECTIONS,
            deadline: DEADLINE,
            log_archiving: None,
            existing: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_url_shows_nothing_of_itself() {
        let target = Target::Postgres { url: "postgres://u:hunter2@h/d".to_owned().into() };
        assert!(!format!("{target:?}").contains("hunter2"));
    }
}

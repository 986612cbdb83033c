//! What a node is told to be, once the command line and the environment have been read.

use std::net::SocketAddr;
use std::path::PathBuf;

use domain::seal::ServiceKey;
use domain::secret::OperatorKey;
use domain::{Language, Profile};
use store::DatabaseUrl;

/// Where everything is kept.
#[derive(Clone, Debug)]
pub enum StoreSettings {
    /// In one file, by this process alone.
    Sqlite {
        /// The file.
        path: PathBuf,
    },
    /// In a PostgreSQL database, which other nodes may share.
    Postgres {
        /// Its address. Its `Debug` hides it.
        url: DatabaseUrl,
    },
}

/// The settings of one node. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where to listen for the platform API, which is then nowhere else; beside everything else, if not given.
    pub platform_listen: Option<SocketAddr>,
    /// Where everything is kept.
    pub store: StoreSettings,
    /// Where clients reach the service; the address that it listens on, if not given.
    pub base_url: Option<String>,
    /// Where clients reach this node's sockets; the base URL, if not given.
    pub session_base: Option<String>,
    /// The key of the platform API; without it that API is off.
    pub operator_key: Option<OperatorKey>,
    /// What cursors are proved and stream keys and webhook secrets sealed with; the same on every node.
    pub service_key: ServiceKey,
    /// Whether this is a sandbox, whose sign-in page lists people to pick from.
    pub sandbox: bool,
    /// The profile of applications that chose none.
    pub profile: Profile,
    /// The language of messages.
    pub language: Language,
    /// Whether quotas are enforced.
    pub quotas: bool,
}

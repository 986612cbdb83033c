//! What a node is told to be, once the command line and the environment have been read.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use domain::client_address::TrustedProxies;
use domain::seal::ServiceKey;
use domain::secret::OperatorKey;
use domain::{Language, Profile};
use service::PasswordCost;
use service::nodes::Roles;
use service::webhooks::WebhookSettings;
use store::DatabaseUrl;

use crate::hosts::Hosts;

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

impl StoreSettings {
    /// The name of the kind of store.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => "sqlite",
            Self::Postgres { .. } => "postgres",
        }
    }
}

/// What nodes tell each other over.
#[derive(Clone, Debug)]
pub enum BusSettings {
    /// There is one node, which tells itself.
    Local,
    /// Over NATS.
    Nats {
        /// Where it is. Its `Debug` hides who signs in.
        address: bus::Address,
        /// What its subjects begin with.
        prefix: bus::Prefix,
    },
}

/// The settings of one node. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where to listen for the platform API, which is then nowhere else; beside everything else, if not given.
    pub platform_listen: Option<SocketAddr>,
    /// The proxies that are believed when they name their clients.
    pub trusted_proxies: TrustedProxies,
    /// Whether these proxies speak the PROXY protocol to `listen`.
    pub proxy_protocol: bool,
    /// Where everything is kept.
    pub store: StoreSettings,
    /// The longest a request waits for the store.
    pub store_deadline: Duration,
    /// What nodes tell each other over.
    pub bus: BusSettings,
    /// Where clients reach the service; the address that it listens on, if not given.
    pub base_url: Option<String>,
    /// Where clients reach this node's sockets; if not given, the base URL where it serves that too, else the address that
    /// it listens on.
    pub session_base: Option<String>,
    /// The names that are answered; all of them, if not given.
    pub hosts: Option<Hosts>,
    /// What this node does.
    pub roles: Roles,
    /// How long it goes on serving after it has said that it is about to stop.
    pub drain_delay: Duration,
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
    /// How webhooks are called; the same on every node.
    pub webhooks: WebhookSettings,
    /// What the passwords of people cost to guess, and to check.
    pub password_cost: PasswordCost,
}

//! The settings of a node, read from the command line and the environment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use domain::client_address::TrustedProxies;
use domain::mail::MailHook;
use domain::retention::Retention;
use domain::seal::ServiceKey;
use domain::secret::OperatorKey;
use domain::{Language, Profile};
use http_server::hosts::Hosts;
use http_server::terminator::Terminator;
use service::nodes::Roles;
use service::webhooks::WebhookSettings;
use service::{AccountSettings, DeveloperSettings, PasswordCost};
use store::DatabaseUrl;
use upstream::ProviderSettings;
use web::Brand;

use crate::archiving::ArchiveConfig;
use crate::tls::{HttpsSettings, TlsSettings};

/// The store.
#[derive(Clone, Debug)]
pub enum StoreSettings {
    /// An SQLite file. Only this process uses it.
    Sqlite {
        /// The file.
        path: PathBuf,
    },
    /// A PostgreSQL database. Several nodes may share it.
    Postgres {
        /// Its URL, which `Debug` hides.
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

/// What is known of the store before the start.
#[derive(Clone, Debug, Default)]
pub struct ExpectedStore {
    /// Whether it was made before: then an empty place is refused.
    pub existing: bool,
    /// The first start makes this file. A later one finds it, and expects a store.
    pub marker: Option<PathBuf>,
    /// Whether the former service key is lost: then the store takes the present one.
    pub key_lost: bool,
}

/// The bus between nodes.
#[derive(Clone, Debug)]
pub enum BusSettings {
    /// No bus: there is one node.
    Local,
    /// NATS.
    Nats {
        /// Its address and its files. `Debug` hides the login.
        access: bus::Access,
        /// The prefix of its subjects.
        prefix: bus::Prefix,
    },
}

/// How much of the machine a node takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footprint {
    /// All cores.
    Whole,
    /// One thread for each task, and no sync of the data: for a world of a sandbox.
    Small,
}

/// The settings of one node. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// A separate address for the platform API; if not given, `listen` serves it too.
    pub platform_listen: Option<SocketAddr>,
    /// The path of a Unix socket that serves the same as `listen`, without TLS; only of `serve`.
    pub listen_socket: Option<PathBuf>,
    /// The proxies that may name their clients.
    pub trusted_proxies: TrustedProxies,
    /// Whether these proxies speak the PROXY protocol to `listen`.
    pub proxy_protocol: bool,
    /// The store.
    pub store: StoreSettings,
    /// What is known of the store before the start; only of `serve`.
    pub expected_store: ExpectedStore,
    /// Deadline of the store for a request.
    pub store_deadline: Duration,
    /// How the log of a SQLite store is archived; only of `serve`.
    pub archive: Option<ArchiveConfig>,
    /// The bus between nodes.
    pub bus: BusSettings,
    /// The URL of the service for clients; if not given, the address that it listens on.
    pub base_url: Option<String>,
    /// The URL of this node's sockets for clients. If not given: the base URL if the node has the role web,
    /// else the address that it listens on.
    pub session_base: Option<String>,
    /// The accepted host names; if not given, all of them.
    pub hosts: Option<Hosts>,
    /// TLS on the listeners; only of a sandbox.
    pub tls: Option<TlsSettings>,
    /// HTTPS on the listeners; only of `serve`.
    pub https: Option<HttpsSettings>,
    /// The roles of this node.
    pub roles: Roles,
    /// How long the node serves after `/health/ready` has begun to fail.
    pub drain_delay: Duration,
    /// The key of the platform API; without it the platform API is off.
    pub operator_key: Option<OperatorKey>,
    /// Another key of the platform API, while the key is changed.
    pub other_operator_key: Option<OperatorKey>,
    /// Authenticates cursors, and seals stream keys and webhook secrets. The same on every node.
    pub service_key: ServiceKey,
    /// Whether this is a sandbox, whose sign-in page lists people to choose from.
    pub sandbox: bool,
    /// The interval of the pings, and how long an answer may take; `None` for those of the platform.
    pub ping_times: Option<[Duration; 2]>,
    /// The network profile that the applications of a sandbox are behind from the beginning.
    pub network: Option<String>,
    /// The profile of applications without their own profile.
    pub profile: Profile,
    /// The language of messages.
    pub language: Language,
    /// Whether quotas are enforced.
    pub quotas: bool,
    /// The settings of webhooks. The same on every node.
    pub webhooks: WebhookSettings,
    /// The settings of accounts. The same on every node.
    pub accounts: AccountSettings,
    /// The settings of the developer center. The same on every node.
    pub developers: DeveloperSettings,
    /// How long rows are kept that grow with use. The same on every node.
    pub retention: Retention,
    /// The providers at which people sign in. The same on every node.
    pub upstreams: Vec<ProviderSettings>,
    /// Where messages to people go; if not given, a sandbox records them and `serve` sends none.
    pub mail_hook: Option<MailHook>,
    /// The cost of checking a password.
    pub password_cost: PasswordCost,
    /// How much of the machine the node takes.
    pub footprint: Footprint,
    /// The brand of the pages.
    pub brand: Brand,
}

impl Settings {
    /// What ends TLS on the listeners.
    pub fn terminator(&self) -> Option<&Terminator> {
        let https = self.https.as_ref().map(|https| &https.terminator);
        https.or(self.tls.as_ref().map(|tls| &tls.terminator))
    }

    /// The scheme of the listeners' URLs. A sandbox with TLS still serves plain HTTP.
    pub fn scheme(&self) -> &'static str {
        if self.https.is_some() { "https" } else { "http" }
    }
}

//! The options of `stagedoor serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use commands::secret;
use domain::outbound::Reach;
use domain::seal::ServiceKey;
use domain::secret::OperatorKey;
use domain::webhook::{self, HEADER_PREFIX, HEADER_PREFIX_BYTES_MAX};
use service::nodes::Roles;
use service::webhooks::WebhookSettings;
use service::{AccountSettings, Entropy, Purpose};
use telemetry::Telemetry;

use super::archive_options::{ArchiveOptions, check_place};
use super::bus_files::BusFileOptions;
use super::collector_options::CollectorOptions;
use super::common::{ACCOUNTS, CommonOptions, KEYS, NETWORKING, NODES, SERVE_LOG, STORE, check_base};
use super::expected_store::ExpectedStoreOptions;
use super::service_key::read_keys;
use super::store_options::{check_data_folder, check_folder};
use super::upstream_options::UpstreamOptions;
use crate::config::{BusSettings, Settings, StoreSettings};
use crate::tls::HttpsOptions;

/// The heading of the options about webhooks.
const WEBHOOKS: &str = "Webhooks";

/// The end of the help of `stagedoor serve`.
pub(super) const EXAMPLES: &str = "\
Examples:
  stagedoor serve --listen 0.0.0.0:8080 --data /var/lib/stagedoor --base-url https://api.example.com
  STAGEDOOR_OPERATOR_KEY_FILE=/etc/stagedoor/operator-key stagedoor serve
  STAGEDOOR_DATABASE_URL_FILE=/etc/stagedoor/database-url stagedoor serve";

/// `stagedoor serve`
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// The options shared with `dev`.
    #[command(flatten)]
    pub common: CommonOptions,

    /// The folder of the SQLite store, when there is no --database-url.
    #[arg(long, value_name = "DIR", env = "STAGEDOOR_DATA", default_value = "stagedoor-data",
        help_heading = STORE)]
    data: PathBuf,

    /// The archive of the SQLite store.
    #[command(flatten)]
    archive: ArchiveOptions,

    /// What is known of the store.
    #[command(flatten)]
    expected: ExpectedStoreOptions,

    /// The key of the platform API, at least 32 characters. Without it the platform API is off. Better set by
    /// STAGEDOOR_OPERATOR_KEY or STAGEDOOR_OPERATOR_KEY_FILE.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_OPERATOR_KEY", hide_env_values = true, help_heading = KEYS)]
    operator_key: Option<String>,

    /// The base URL for clients, as in `https://api.example.com`. Default: the address that the node listens
    /// on.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_BASE_URL", help_heading = NETWORKING)]
    base_url: Option<String>,

    /// Joins other nodes on the same PostgreSQL database over NATS: nats://user:password@host:port, with
    /// further servers after commas; tls:// instead demands TLS. Also STAGEDOOR_BUS_URL or
    /// STAGEDOOR_BUS_URL_FILE. Without it this is the only node.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_BUS_URL", hide_env_values = true, help_heading = NODES)]
    bus_url: Option<String>,

    /// The files for NATS.
    #[command(flatten)]
    bus_files: BusFileOptions,

    /// The prefix of the subjects on NATS, the same on every node, so that several services can share one
    /// NATS.
    #[arg(long, value_name = "WORDS", env = "STAGEDOOR_BUS_PREFIX", default_value = "stagedoor",
        help_heading = NODES)]
    bus_prefix: String,

    /// The base URL of this node's sockets for clients, as in `https://node1.api.example.com`. Default: the
    /// base URL, or the address that the node listens on if it has the role gateway without web.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_SESSION_BASE", help_heading = NODES)]
    session_base: Option<String>,

    /// The roles of this node, so that several nodes can share the work: web (REST, sign-in, platform API),
    /// gateway (sockets), jobs (background work). Needs PostgreSQL, unless the node has all roles.
    #[arg(
        long,
        value_name = "ROLES",
        env = "STAGEDOOR_ROLES",
        value_enum,
        value_delimiter = ',',
        default_value = "web,gateway,jobs",
        help_heading = NODES
    )]
    roles: Vec<RoleOption>,

    /// How long to continue serving after a signal to stop, while /health/ready answers 503, in seconds: give
    /// the load balancer time to notice. Everything else takes 8 seconds at most, 10 with --archive.
    #[arg(long, value_name = "SECONDS", env = "STAGEDOOR_DRAIN_DELAY", default_value = "2",
        value_parser = clap::value_parser!(u64).range(..=DRAIN_DELAY_MAX_S), help_heading = NODES)]
    drain_delay: u64,

    /// The key that signs cursors and encrypts stream keys and webhook secrets: at least 32 characters, the
    /// same on every node. Default: derived from the operator key, which then cannot be changed without
    /// losing the encrypted secrets. Better set by STAGEDOOR_SERVICE_KEY or STAGEDOOR_SERVICE_KEY_FILE.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_SERVICE_KEY", hide_env_values = true, help_heading = KEYS)]
    service_key: Option<String>,

    /// A second key of the platform API, valid beside --operator-key while the key is changed. Better set by
    /// STAGEDOOR_OTHER_OPERATOR_KEY or STAGEDOOR_OTHER_OPERATOR_KEY_FILE.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_OTHER_OPERATOR_KEY", hide_env_values = true, help_heading = KEYS)]
    other_operator_key: Option<String>,

    /// A second service key that opens what it has sealed, and seals nothing, while the key is changed: first
    /// the next key, then the former one, whose seals are replaced. Better set by
    /// STAGEDOOR_OTHER_SERVICE_KEY or STAGEDOOR_OTHER_SERVICE_KEY_FILE.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_OTHER_SERVICE_KEY", hide_env_values = true, help_heading = KEYS)]
    other_service_key: Option<String>,

    /// Whether people can make accounts by themselves, at /register: open or closed. The same on every node.
    #[arg(long, value_name = "STATE", env = "STAGEDOOR_REGISTRATION", value_enum, default_value = "closed",
        help_heading = ACCOUNTS)]
    registration: RegistrationOption,

    /// Also listens on this Unix socket, without TLS, for a proxy on this machine. Its user and its group may
    /// connect. Its peers have the address 127.0.0.1, so name that in --trusted-proxies.
    #[arg(long, value_name = "PATH", env = "STAGEDOOR_LISTEN_SOCKET", help_heading = NETWORKING)]
    listen_socket: Option<PathBuf>,

    /// HTTPS.
    #[command(flatten)]
    https: HttpsOptions,

    /// The providers at which people sign in.
    #[command(flatten)]
    upstream: UpstreamOptions,

    /// The OpenTelemetry collector.
    #[command(flatten)]
    collector: CollectorOptions,

    /// Allowed targets of webhooks besides public addresses: loopback (this machine), private (10.0.0.0/8,
    /// 172.16.0.0/12, 192.168.0.0/16, fc00::/7, and names like receiver.internal). These may also use http.
    /// The same on every node.
    #[arg(long, value_name = "ZONES", env = "STAGEDOOR_WEBHOOK_ALLOW", value_enum, value_delimiter = ',',
        help_heading = WEBHOOKS)]
    webhook_allow: Vec<ZoneOption>,

    /// The prefix of a webhook's header names, as in `Service-Event-Message-Signature`. The same on every
    /// node.
    #[arg(long, value_name = "PREFIX", env = "STAGEDOOR_WEBHOOK_HEADER_PREFIX", default_value = HEADER_PREFIX,
        help_heading = WEBHOOKS)]
    webhook_header_prefix: String,
}

/// `--registration`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RegistrationOption {
    /// Anybody can make an account.
    Open,
    /// Only the platform API makes accounts.
    Closed,
}

/// One of `--webhook-allow`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ZoneOption {
    /// This machine.
    Loopback,
    /// The operator's own networks.
    Private,
}

/// One of `--roles`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleOption {
    /// REST, the sign-in, the platform API.
    Web,
    /// The sockets.
    Gateway,
    /// Background work.
    Jobs,
}

/// Maximum of `--drain-delay`, in seconds.
const DRAIN_DELAY_MAX_S: u64 = 600;
/// Minimum length of an operator key, in characters.
const OPERATOR_KEY_CHARS_MIN: usize = 32;
impl ServeOptions {
    /// What to log, and how.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub fn telemetry(&self) -> Result<Telemetry, String> {
        self.common.telemetry(SERVE_LOG, self.collector.collector()?)
    }

    /// The settings of the service.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub fn settings(&self) -> Result<Settings, String> {
        let store = self.common.store(&self.data)?;
        let expected_store = self.expected.settings()?;
        if let StoreSettings::Sqlite { path } = &store {
            check_data_folder(&self.data)?;
            expected_store.check_folder(path)?;
        }
        let operator_key = secret("STAGEDOOR_OPERATOR_KEY", self.operator_key.as_deref())?;
        let other_operator_key = secret("STAGEDOOR_OTHER_OPERATOR_KEY", self.other_operator_key.as_deref())?;
        if other_operator_key.is_some() && operator_key.is_none() {
            return Err("--other-operator-key needs --operator-key".to_owned());
        }
        let roles = self.roles(&store)?;
        let bus = self.bus(&store)?;
        let (upstreams, passwords) = self.upstream.read(self.base_url.is_some())?;
        let registration = self.registration == RegistrationOption::Open;
        if registration && !passwords {
            return Err(
                "--registration open needs --local-passwords on: providers make accounts as --upstreams says"
                    .to_owned(),
            );
        }
        let https = self.https.settings()?;
        let base_url = self.base_url.as_deref().map(|url| check_base("--base-url", url)).transpose()?;
        if https.is_some() && base_url.as_ref().is_some_and(|url| url.starts_with("http://")) {
            return Err("--base-url must begin with https:// when --tls-certificate is given".to_owned());
        }
        let archive = self.archive.config(&store, &self.data)?;
        let common = self.common.settings(store)?;
        Ok(Settings {
            archive,
            expected_store,
            https,
            listen_socket: self.listen_socket.clone(),
            roles,
            upstreams,
            drain_delay: Duration::from_secs(self.drain_delay),
            base_url,
            session_base: self
                .session_base
                .as_deref()
                .map(|url| check_base("--session-base", url))
                .transpose()?,
            service_key: self.service_key(operator_key.as_deref())?,
            operator_key: operator_key.map(|key| check_operator_key(&key)).transpose()?,
            other_operator_key: other_operator_key.map(|key| check_operator_key(&key)).transpose()?,
            bus,
            webhooks: self.webhooks()?,
            accounts: AccountSettings { registration, passwords, ..common.accounts },
            ..common
        })
    }
}

impl ServeOptions {
    /// Whether the folders of the store and of the archive can be made and written. It tries to.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub(super) fn check_folders(&self, settings: &Settings) -> Result<(), String> {
        if let StoreSettings::Sqlite { .. } = settings.store {
            check_folder("--data", &self.data)?;
        }
        check_place(settings.archive.as_ref())
    }

    fn webhooks(&self) -> Result<WebhookSettings, String> {
        let allows = |zone| self.webhook_allow.contains(&zone);
        let reach = Reach { loopback: allows(ZoneOption::Loopback), private: allows(ZoneOption::Private) };
        let header_prefix = self.webhook_header_prefix.clone();
        if !webhook::is_header_prefix(&header_prefix) {
            return Err(format!(
                "--webhook-header-prefix must be 1 to {HEADER_PREFIX_BYTES_MAX} letters, digits and '-', beginning with a letter, and not make Content-Type"
            ));
        }
        Ok(WebhookSettings { reach, header_prefix })
    }

    fn service_key(&self, operator_key: Option<&str>) -> Result<ServiceKey, String> {
        let given = read_keys(self.service_key.as_deref(), self.other_service_key.as_deref())?;
        Ok(match (given, operator_key) {
            (Some(key), _) => key,
            (None, Some(key)) => ServiceKey::of_text(key),
            // A store whose secrets are sealed is refused. Of another one only old cursors are invalid.
            (None, None) => ServiceKey::unkept(Entropy::system().bytes(Purpose::Nonce)),
        })
    }

    fn bus(&self, store: &StoreSettings) -> Result<BusSettings, String> {
        let Some(url) = secret("STAGEDOOR_BUS_URL", self.bus_url.as_deref())? else {
            return Ok(BusSettings::Local);
        };
        if let StoreSettings::Sqlite { .. } = store {
            return Err(
                "--bus-url needs --database-url: SQLite belongs to one node, which needs no bus".to_owned()
            );
        }
        let address = bus::Address::parse(&url).map_err(|error| format!("--bus-url {error}"))?;
        let access = self.bus_files.access(address)?;
        let prefix = bus::Prefix::parse(&self.bus_prefix).map_err(|error| format!("--bus-prefix {error}"))?;
        Ok(BusSettings::Nats { access, prefix })
    }

    fn roles(&self, store: &StoreSettings) -> Result<Roles, String> {
        let has = |role| self.roles.contains(&role);
        let roles = Roles {
            web: has(RoleOption::Web),
            gateway: has(RoleOption::Gateway),
            jobs: has(RoleOption::Jobs),
        };
        let names = roles.names().replace(' ', ",");
        if roles != Roles::ALL && matches!(store, StoreSettings::Sqlite { .. }) {
            return Err(format!(
                "--roles {names} needs --database-url: a SQLite store belongs to one process, which has to do everything"
            ));
        }
        if !roles.web && self.common.platform_listen.is_some() {
            return Err(format!("--platform-listen needs the role web, and --roles is {names}"));
        }
        let hidden = self.common.listen.ip().is_unspecified() && self.session_base.is_none();
        if roles.gateway && !roles.web && hidden {
            return Err(format!(
                "--roles {names} needs --session-base: clients cannot connect to {}",
                self.common.listen
            ));
        }
        Ok(roles)
    }
}

fn check_operator_key(key: &str) -> Result<OperatorKey, String> {
    let long_enough = key.chars().count() >= OPERATOR_KEY_CHARS_MIN;
    OperatorKey::presented(key)
        .filter(|_| long_enough)
        .ok_or(format!("the operator key must have {OPERATOR_KEY_CHARS_MIN} to 512 characters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_are_refused() {
        assert!(check_operator_key(&"k".repeat(31)).is_err());
        assert!(check_operator_key(&"k".repeat(32)).is_ok());
    }
}

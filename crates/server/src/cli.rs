//! The command line. Every option can also be set by the environment. A secret can also be read from a file,
//! whose path is in a variable that ends in `_FILE`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use commands::clock::ClockOptions;
use commands::drops::DropsCommand;
use commands::listen::WebhookCommand;
use commands::logs::LogsOptions;
use commands::token::TokenOptions;
use commands::trigger::TriggerOptions;
use commands::{secret, state_file};
use domain::client_address::TrustedProxies;
use domain::outbound::Reach;
use domain::seal::ServiceKey;
use domain::secret::OperatorKey;
use domain::webhook::{self, HEADER_PREFIX, HEADER_PREFIX_BYTES_MAX};
use domain::{Language, Profile};
use service::nodes::Roles;
use service::webhooks::WebhookSettings;
use service::{Entropy, PasswordCost};
use store::DatabaseUrl;

use crate::config::{BusSettings, Settings, StoreSettings};
use crate::hosts::Hosts;
use crate::node::Environment;

const ABOUT: &str = "The open API service of a live-streaming platform: REST, sign-in, realtime sessions.

  stagedoor dev      a world on your laptop: seeded people, ready tokens, any event on demand
  stagedoor serve    the service for real
  stagedoor clock    in a sandbox: show the time, stop it, move it forward
  stagedoor logs     in a sandbox: what happened, as it happens
  stagedoor trigger  in a sandbox: let something happen
  stagedoor token    in a sandbox: a new access token
  stagedoor drops    in a sandbox: let a viewer watch, and claim
  stagedoor webhook  forwards the messages to a webhook to your machine";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "stagedoor", version, about = ABOUT, max_term_width = 110)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of `stagedoor`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the service in a small seeded world, for the developers of bots, overlays and games.
    ///
    /// Prints an overview: addresses, two applications with their secrets, people with ready tokens, and what
    /// to try next. Nothing else needs to be installed or started.
    Dev(DevOptions),
    /// Runs the service in production: no seed, no sign-in without a password.
    ///
    /// SIGTERM and SIGINT stop it: /health/ready fails and the node serves for the time of --drain-delay.
    /// Then it accepts no new work, finishes running requests, and ends with status 0. By default that takes
    /// less than 10 seconds.
    Serve(ServeOptions),
    /// Checks the configuration of `serve`, shows it without its secrets, and ends.
    CheckConfig(ServeOptions),
    /// Shows the clock of the sandbox that runs, or moves it forward.
    ///
    /// Everything that becomes due happens before the command ends, in the order of its due times.
    Clock(ClockOptions),
    /// Shows what happened in the sandbox that runs: requests with their answers, moves of the clock.
    Logs(LogsOptions),
    /// Lets something happen in the sandbox that runs: a chat message, a donation, a withdrawn consent.
    ///
    /// Fields are given as `--field value`. People, channels and applications are given by id, login or name,
    /// and by the ending of an id: haneul for streamer-haneul.
    #[command(after_help = sandbox::trigger_help())]
    Trigger(TriggerOptions),
    /// Prints a new access token of a user for an application, without a browser.
    Token(TokenOptions),
    /// Reports watched minutes and claims rewards for a viewer, over the platform API of a running service.
    #[command(subcommand)]
    Drops(DropsCommand),
    /// Forwards the messages to an application's webhook to this machine.
    #[command(subcommand)]
    Webhook(WebhookCommand),
}

/// The options that `dev` and `serve` share.
#[derive(Debug, Args)]
pub struct CommonOptions {
    /// The address to listen on. Port 0 picks a free port.
    #[arg(long, value_name = "ADDR", env = "STAGEDOOR_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// A separate address for the platform API. Then only those who reach this address can try the operator's
    /// key. Default: the platform API is served on --listen too.
    #[arg(long, value_name = "ADDR", env = "STAGEDOOR_PLATFORM_LISTEN")]
    pub platform_listen: Option<SocketAddr>,

    /// The proxies in front of this node, as in `10.0.0.5,192.168.0.0/16,fd00::/8`. A connection from one of
    /// them counts for the client that it names: the right-most address in X-Forwarded-For or Forwarded that
    /// is not a trusted proxy. Without this option those headers are ignored, and all clients of a proxy
    /// share its address and its limits.
    #[arg(long, value_name = "LIST", env = "STAGEDOOR_TRUSTED_PROXIES")]
    trusted_proxies: Option<String>,

    /// The trusted proxies speak the PROXY protocol, version 1 or 2, to --listen. Connections from them must
    /// then begin with its header. Other connections must not.
    #[arg(long, env = "STAGEDOOR_PROXY_PROTOCOL")]
    proxy_protocol: bool,

    /// The spelling of answers: that of the documentation, or that which clients of the modelled platform
    /// expect. An application can have its own.
    #[arg(long, value_enum, env = "STAGEDOOR_PROFILE", default_value = "documented")]
    pub profile: ProfileOption,

    /// The language of error messages: ko or en.
    #[arg(long, value_enum, env = "STAGEDOOR_LANGUAGE", default_value = "ko")]
    pub language: LanguageOption,

    /// Turns rate limits off: for load and race tests.
    #[arg(long, env = "STAGEDOOR_NO_QUOTA")]
    pub no_quota: bool,

    /// Stores everything in PostgreSQL: postgres://user:password@host/database. Also STAGEDOOR_DATABASE_URL
    /// or STAGEDOOR_DATABASE_URL_FILE, which keep the password out of the list of processes.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,

    /// What to log, to stderr: error, warn, info, debug, or per crate as in "info,web=debug".
    #[arg(long, value_name = "FILTER", env = "STAGEDOOR_LOG", default_value = "info")]
    pub log: String,
}

/// `stagedoor dev`
#[derive(Debug, Args)]
pub struct DevOptions {
    /// The options shared with `serve`.
    #[command(flatten)]
    pub common: CommonOptions,

    /// Keeps the world in this folder, for the next start. Without it the world is deleted at exit.
    #[arg(long, value_name = "DIR", env = "STAGEDOOR_DATA")]
    data: Option<PathBuf>,

    /// The base URL for clients, as in `https://sandbox.example.com`, when a TLS proxy is in front of the
    /// sandbox. Session URLs begin with it. Default: the address that the sandbox listens on.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_BASE_URL")]
    base_url: Option<String>,

    /// Further host names of the sandbox, as in `sandbox.internal`. Without it: loopback names, the address
    /// of --listen and the host of --base-url. Requests for other hosts are refused, so that no web page can
    /// point its own name at the sandbox.
    #[arg(long, value_name = "HOSTS", env = "STAGEDOOR_ALLOW_HOST", value_delimiter = ',')]
    allow_host: Vec<String>,

    /// The name of this sandbox, for the commands of other terminals when several sandboxes run:
    /// `stagedoor clock --sandbox NAME`. 1 to 32 letters, digits, `-` and `_`.
    #[arg(long, value_name = "NAME", env = "STAGEDOOR_SANDBOX_NAME", default_value = state_file::DEFAULT_NAME,
        value_parser = sandbox_name)]
    pub name: String,

    /// Prints one JSON object instead of the overview, as the first line of stdout, when the service is
    /// ready.
    #[arg(long)]
    pub json: bool,

    /// Leaves out the sandbox API, its record, its faults and its clock: for load tests. The seeded world then
    /// runs on exactly what `serve` runs.
    #[arg(long, env = "STAGEDOOR_NO_SANDBOX")]
    pub no_sandbox: bool,
}

impl DevOptions {
    /// The time, the randomness and the sandbox that the options ask for.
    pub fn environment(&self) -> Environment {
        if self.no_sandbox { Environment::system() } else { Environment::sandbox() }
    }
}

/// `stagedoor serve`
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// The options shared with `dev`.
    #[command(flatten)]
    pub common: CommonOptions,

    /// The folder of the SQLite store, when there is no --database-url.
    #[arg(long, value_name = "DIR", env = "STAGEDOOR_DATA", default_value = "stagedoor-data")]
    data: PathBuf,

    /// Joins other nodes on the same PostgreSQL database over NATS: nats://user:password@host:port, with
    /// further servers after commas. Also STAGEDOOR_BUS_URL or STAGEDOOR_BUS_URL_FILE. Without it this is the
    /// only node.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_BUS_URL", hide_env_values = true)]
    bus_url: Option<String>,

    /// The prefix of the subjects on NATS, the same on every node, so that several services can share one
    /// NATS.
    #[arg(long, value_name = "WORDS", env = "STAGEDOOR_BUS_PREFIX", default_value = "stagedoor")]
    bus_prefix: String,

    /// The base URL for clients, as in `https://api.example.com`. Default: the address that the node listens
    /// on.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_BASE_URL")]
    base_url: Option<String>,

    /// The base URL of this node's sockets for clients, as in `https://node1.api.example.com`. Default: the
    /// base URL, or the address that the node listens on if it has the role gateway without web.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_SESSION_BASE")]
    session_base: Option<String>,

    /// The roles of this node, so that several nodes can share the work: web (REST, sign-in, platform API),
    /// gateway (sockets), jobs (background work). Needs PostgreSQL, unless the node has all roles.
    #[arg(
        long,
        value_name = "ROLES",
        env = "STAGEDOOR_ROLES",
        value_enum,
        value_delimiter = ',',
        default_value = "web,gateway,jobs"
    )]
    roles: Vec<RoleOption>,

    /// How long to continue serving after a signal to stop, while /health/ready answers 503, in seconds: give
    /// the load balancer time to notice. Everything else takes 8 seconds at most.
    #[arg(long, value_name = "SECONDS", env = "STAGEDOOR_DRAIN_DELAY", default_value = "2",
        value_parser = clap::value_parser!(u64).range(..=DRAIN_DELAY_MAX_S))]
    drain_delay: u64,

    /// The key of the platform API, at least 32 characters. Without it the platform API is off. Better set by
    /// STAGEDOOR_OPERATOR_KEY or STAGEDOOR_OPERATOR_KEY_FILE.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_OPERATOR_KEY", hide_env_values = true)]
    operator_key: Option<String>,

    /// The key that signs cursors and encrypts stream keys and webhook secrets: at least 32 characters, the
    /// same on every node. Default: derived from the operator key, which then cannot be changed without
    /// losing the encrypted secrets. Better set by STAGEDOOR_SERVICE_KEY or STAGEDOOR_SERVICE_KEY_FILE.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_SERVICE_KEY", hide_env_values = true)]
    service_key: Option<String>,

    /// Allowed targets of webhooks besides public addresses: loopback (this machine), private (10.0.0.0/8,
    /// 172.16.0.0/12, 192.168.0.0/16, fc00::/7, and names like receiver.internal). These may also use http.
    /// The same on every node.
    #[arg(long, value_name = "ZONES", env = "STAGEDOOR_WEBHOOK_ALLOW", value_enum, value_delimiter = ',')]
    webhook_allow: Vec<ZoneOption>,

    /// The prefix of a webhook's header names, as in `Service-Event-Message-Signature`. The same on every
    /// node.
    #[arg(long, value_name = "PREFIX", env = "STAGEDOOR_WEBHOOK_HEADER_PREFIX", default_value = HEADER_PREFIX)]
    webhook_header_prefix: String,
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

/// `--profile`
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ProfileOption {
    /// The spelling of the specification.
    Documented,
    /// The spelling that published clients expect.
    Observed,
}

/// `--language`
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LanguageOption {
    /// 한국어
    Ko,
    /// English
    En,
}

/// Maximum of `--drain-delay`, in seconds.
const DRAIN_DELAY_MAX_S: u64 = 600;
/// Minimum length of an operator key, in characters.
const OPERATOR_KEY_CHARS_MIN: usize = 32;
/// The service key of every sandbox, so that the next sandbox can read an old database. A sandbox has no
/// secrets to protect.
const SANDBOX_SERVICE_KEY: &str = "a sandbox has nothing to protect";

/// The folder of a world.
#[derive(Debug)]
pub enum Folder {
    /// A kept folder: `--data`.
    Kept(PathBuf),
    /// Deleted when it is dropped.
    Temporary(tempfile::TempDir),
}

impl Folder {
    /// The path of the folder.
    pub fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

impl DevOptions {
    /// The settings of a sandbox, and its folder.
    ///
    /// # Errors
    /// A sentence for the developer.
    pub fn settings(&self) -> Result<(Settings, Folder), String> {
        let folder = match &self.data {
            Some(path) => Folder::Kept(make_folder(path)?),
            None => Folder::Temporary(
                tempfile::Builder::new()
                    .prefix("stagedoor-")
                    .tempdir()
                    .map_err(|error| format!("failed to create a temporary folder: {error}"))?,
            ),
        };
        let store = self.common.store(folder.path())?;
        if let StoreSettings::Sqlite { path } = &store {
            crate::dev::check_folder(folder.path(), path)?;
        }
        let operator_key = crate::dev::operator_key(folder.path())?;
        let base_url = self.base_url.as_deref().map(|url| check_base("--base-url", url)).transpose()?;
        let hosts = Hosts::of(self.common.listen.ip(), base_url.as_deref(), &self.allow_host)?;
        // The receivers of a sandbox are on the developer's machine.
        let reach = Reach { loopback: true, ..Reach::PUBLIC };
        let settings = Settings {
            sandbox: true,
            base_url,
            hosts: Some(hosts),
            operator_key: Some(operator_key),
            webhooks: WebhookSettings { reach, ..WebhookSettings::default() },
            ..self.common.settings(store)?
        };
        Ok((settings, folder))
    }
}

impl ServeOptions {
    /// The settings of the service.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub fn settings(&self) -> Result<Settings, String> {
        let store = self.common.store(&self.data)?;
        let operator_key = secret("STAGEDOOR_OPERATOR_KEY", self.operator_key.as_deref())?;
        let service_key = secret("STAGEDOOR_SERVICE_KEY", self.service_key.as_deref())?;
        let roles = self.roles(&store)?;
        Ok(Settings {
            roles,
            drain_delay: Duration::from_secs(self.drain_delay),
            base_url: self.base_url.as_deref().map(|url| check_base("--base-url", url)).transpose()?,
            session_base: self
                .session_base
                .as_deref()
                .map(|url| check_base("--session-base", url))
                .transpose()?,
            service_key: match (&service_key, &operator_key) {
                (Some(key), _) => check_service_key(key)?,
                (None, Some(key)) => ServiceKey::of_text(key),
                // Without the platform API no secret is encrypted. After a restart, only old cursors are
                // invalid.
                (None, None) => ServiceKey::new(Entropy::system().bytes()),
            },
            operator_key: operator_key.map(|key| check_operator_key(&key)).transpose()?,
            bus: self.bus(&store)?,
            webhooks: self.webhooks()?,
            ..self.common.settings(store)?
        })
    }
}

impl ServeOptions {
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
        let prefix = bus::Prefix::parse(&self.bus_prefix).map_err(|error| format!("--bus-prefix {error}"))?;
        Ok(BusSettings::Nats { address, prefix })
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

impl CommonOptions {
    fn settings(&self, store: StoreSettings) -> Result<Settings, String> {
        Ok(Settings {
            listen: self.listen,
            platform_listen: self.platform_listen,
            trusted_proxies: self.trusted_proxies()?,
            proxy_protocol: self.proxy_protocol,
            store,
            store_deadline: store::DEADLINE,
            bus: BusSettings::Local,
            base_url: None,
            session_base: None,
            hosts: None,
            roles: Roles::ALL,
            // A sandbox stops at once.
            drain_delay: Duration::ZERO,
            operator_key: None,
            service_key: ServiceKey::of_text(SANDBOX_SERVICE_KEY),
            sandbox: false,
            profile: match self.profile {
                ProfileOption::Documented => Profile::Documented,
                ProfileOption::Observed => Profile::Observed,
            },
            language: match self.language {
                LanguageOption::Ko => Language::Korean,
                LanguageOption::En => Language::English,
            },
            quotas: !self.no_quota,
            webhooks: WebhookSettings::default(),
            password_cost: PasswordCost::default(),
        })
    }

    fn trusted_proxies(&self) -> Result<TrustedProxies, String> {
        let trusted = TrustedProxies::parse(self.trusted_proxies.as_deref().unwrap_or_default())
            .map_err(|problem| format!("--trusted-proxies {problem}"))?;
        if self.proxy_protocol && trusted.is_empty() {
            return Err(
                "--proxy-protocol needs --trusted-proxies: only these may use the protocol".to_owned()
            );
        }
        Ok(trusted)
    }

    fn store(&self, folder: &Path) -> Result<StoreSettings, String> {
        Ok(match secret("STAGEDOOR_DATABASE_URL", self.database_url.as_deref())? {
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                StoreSettings::Postgres { url: DatabaseUrl::from(url) }
            }
            Some(_) => return Err("--database-url must begin with postgres://".to_owned()),
            None => StoreSettings::Sqlite { path: folder.join("stagedoor.db") },
        })
    }
}

fn sandbox_name(text: &str) -> Result<String, String> {
    let wrong = format!("it must be 1 to {} letters, digits, '-' and '_'", state_file::NAME_CHARS_MAX);
    state_file::is_name(text).then(|| text.to_owned()).ok_or(wrong)
}

fn check_base(option: &str, url: &str) -> Result<String, String> {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let plain = host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']));
    if plain {
        Ok(url.to_owned())
    } else {
        Err(format!("{option} must be scheme and host, as in https://api.example.com"))
    }
}

fn check_operator_key(key: &str) -> Result<OperatorKey, String> {
    let long_enough = key.chars().count() >= OPERATOR_KEY_CHARS_MIN;
    OperatorKey::presented(key)
        .filter(|_| long_enough)
        .ok_or(format!("the operator key must have {OPERATOR_KEY_CHARS_MIN} to 512 characters"))
}

fn check_service_key(key: &str) -> Result<ServiceKey, String> {
    if key.chars().count() < OPERATOR_KEY_CHARS_MIN {
        return Err(format!("the service key must have {OPERATOR_KEY_CHARS_MIN} characters or more"));
    }
    Ok(ServiceKey::of_text(key))
}

fn make_folder(path: &Path) -> Result<PathBuf, String> {
    std::fs::create_dir_all(path).map_err(|error| format!("--data {}: {error}", path.display()))?;
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bases_are_scheme_and_host() {
        for (url, ok) in [
            ("https://api.example.com", true),
            ("http://127.0.0.1:8080", true),
            ("https://api.example.com/", false),
            ("api.example.com", false),
            ("https://", false),
            ("ftp://api.example.com", false),
        ] {
            assert_eq!(check_base("--base-url", url).is_ok(), ok, "{url}");
        }
    }

    #[test]
    fn short_keys_are_refused() {
        assert!(check_service_key(&"k".repeat(31)).is_err());
        assert!(check_service_key(&"k".repeat(32)).is_ok());
        assert!(check_operator_key(&"k".repeat(31)).is_err());
        assert!(check_operator_key(&"k".repeat(32)).is_ok());
    }
}

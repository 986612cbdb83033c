//! The options that `dev` and `serve` share.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backup::DATA_FILE;
use clap::{Args, ValueEnum};
use domain::client_address::TrustedProxies;
use domain::limits::{DAY_MS, PASSWORD_CHARS_MIN, PASSWORD_CHARS_MIN_MAX, TOKEN_DAYS_MAX};
use domain::mail::MailHook;
use domain::outbound::WebhookUrl;
use domain::retention::Retention;
use domain::seal::ServiceKey;
use domain::secret::WebhookSecret;
use domain::{Language, Profile};
use service::nodes::Roles;
use service::webhooks::WebhookSettings;
use service::{AccountSettings, DeveloperSettings, PasswordCost};
use telemetry::{Collector, LogFormat, Telemetry};

use super::brand::BrandOptions;
use super::listen_address;
use super::store_options::database_url;
use crate::config::{BusSettings, Footprint, Settings, StoreSettings};

/// The heading of the options about addresses, in the help.
pub(super) const NETWORKING: &str = "Networking";
/// The heading of the options about stored data.
pub(super) const STORE: &str = "Store";
/// The heading of the options about the form of answers, and quotas.
pub(super) const ANSWERS: &str = "Answers";
/// The heading of the options about the accounts of people.
pub(super) const ACCOUNTS: &str = "Accounts";
/// The heading of the options about several nodes.
pub(super) const NODES: &str = "Nodes";
/// The heading of the options about keys.
pub(super) const KEYS: &str = "Keys";
/// The heading of the options about the log.
pub(super) const LOG: &str = "Log";

/// What `serve` logs without `--log`.
pub const SERVE_LOG: &str = "info";
/// What `dev` logs without `--log`: what its developer needs to know. Its own log has each refused request.
pub const DEV_LOG: &str = "info,store=warn,gateway=warn,server::descriptors=warn";

/// The options that `dev` and `serve` share.
#[derive(Debug, Args)]
pub struct CommonOptions {
    /// The address to listen on: `8080`, `localhost:8080`, `0.0.0.0:8080` or `[::1]:8080`. A port alone is on
    /// 127.0.0.1. Port 0 picks a free port.
    #[arg(long, value_name = "ADDR", env = "STAGEDOOR_LISTEN", default_value = "127.0.0.1:8080",
        value_parser = listen_address::parse, help_heading = NETWORKING)]
    pub listen: SocketAddr,

    /// Catches a usual mistake, and names the right option.
    #[arg(long, short = 'p', hide = true, value_name = "PORT", value_parser = listen_instead_of_port,
        allow_hyphen_values = true)]
    pub port: Option<Infallible>,

    /// A separate address for the platform API. Then only those who reach this address can try the operator's
    /// key. Default: the platform API is served on --listen too.
    #[arg(long, value_name = "ADDR", env = "STAGEDOOR_PLATFORM_LISTEN", value_parser = listen_address::parse,
        help_heading = NETWORKING)]
    pub platform_listen: Option<SocketAddr>,

    /// The proxies in front of this node, as in `10.0.0.5,192.168.0.0/16,fd00::/8`. A connection from one of
    /// them counts for the client that it names: the right-most address in X-Forwarded-For or Forwarded that
    /// is not a trusted proxy. Without this option those headers are ignored, and all clients of a proxy
    /// share its address and its limits.
    #[arg(long, value_name = "LIST", env = "STAGEDOOR_TRUSTED_PROXIES", help_heading = NETWORKING)]
    trusted_proxies: Option<String>,

    /// The trusted proxies speak the PROXY protocol, version 1 or 2, to --listen. Connections from them must
    /// then begin with its header. Other connections must not.
    #[arg(long, env = "STAGEDOOR_PROXY_PROTOCOL", help_heading = NETWORKING)]
    proxy_protocol: bool,

    /// The spelling of answers: that of the documentation, or that which clients of the modelled platform
    /// expect. An application can have its own.
    #[arg(long, value_enum, env = "STAGEDOOR_PROFILE", default_value = "documented", help_heading = ANSWERS)]
    pub profile: ProfileOption,

    /// The language of error messages: ko or en.
    #[arg(long, value_enum, env = "STAGEDOOR_LANGUAGE", default_value = "ko", help_heading = ANSWERS)]
    pub language: LanguageOption,

    /// Turns rate limits off: for load and race tests.
    #[arg(long, env = "STAGEDOOR_NO_QUOTA", help_heading = ANSWERS)]
    pub no_quota: bool,

    /// The operator approves the scopes that people choose for their applications at /developers. The scope
    /// of drops always needs an approval. The same on every node.
    #[arg(long, env = "STAGEDOOR_REVIEW_SCOPES", help_heading = ACCOUNTS)]
    review_scopes: bool,

    /// Fewest characters of a password that its owner chooses, 8 to 64. NIST SP 800-63B wants 15 where a
    /// password is the only proof. Passwords that the operator sets are not checked.
    #[arg(long, value_name = "CHARACTERS", env = "STAGEDOOR_PASSWORD_MIN", default_value_t = PASSWORD_CHARS_MIN,
        value_parser = password_chars_min, help_heading = ACCOUNTS)]
    password_min: usize,

    /// For how many days after a sign-in an application can refresh its tokens, 1 to 3650. Then the person
    /// has to allow it again. Left out: for ever. The same on every node.
    #[arg(long, value_name = "DAYS", env = "STAGEDOOR_TOKEN_DAYS_MAX",
        value_parser = clap::value_parser!(i64).range(1..=TOKEN_DAYS_MAX), help_heading = ACCOUNTS)]
    token_days_max: Option<i64>,

    /// Where messages to people go, such as the link of a password reset: an address of your own that takes
    /// signed POST requests and sends e-mails. Also STAGEDOOR_MAIL_HOOK_FILE. Without it `serve` sends
    /// none, and `dev` shows them in its log.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_MAIL_HOOK", hide_env_values = true, help_heading = ACCOUNTS)]
    mail_hook: Option<String>,

    /// Signs the messages to --mail-hook: 32 to 256 printable characters. Better set by
    /// STAGEDOOR_MAIL_HOOK_SECRET or by --mail-hook-secret-file.
    #[arg(long, value_name = "SECRET", env = "STAGEDOOR_MAIL_HOOK_SECRET", hide_env_values = true,
        help_heading = ACCOUNTS)]
    mail_hook_secret: Option<String>,

    /// The file that holds the secret of --mail-hook.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_MAIL_HOOK_SECRET_FILE", help_heading = ACCOUNTS,
        conflicts_with = "mail_hook_secret")]
    mail_hook_secret_file: Option<PathBuf>,

    /// Stores everything in PostgreSQL: postgres://user:password@host/database. Also STAGEDOOR_DATABASE_URL
    /// or STAGEDOOR_DATABASE_URL_FILE, which keep the password out of the list of processes.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_DATABASE_URL", hide_env_values = true,
        help_heading = STORE)]
    database_url: Option<String>,

    /// How long rows are kept that grow with use, in days, as in `chat-messages=7,donations=400`. What is not
    /// named keeps its default. docs/operating.md#retention has the names. The same on every node.
    #[arg(long, value_name = "NAME=DAYS", env = "STAGEDOOR_RETAIN", value_parser = Retention::parse,
        help_heading = STORE)]
    retain: Option<Retention>,

    /// The brand of the pages.
    #[command(flatten)]
    brand: BrandOptions,

    /// What to log, to stderr: error, warn, info, debug, or per crate as in "info,web=debug". Default: info;
    /// `dev` logs refused requests and warnings.
    #[arg(long, value_name = "FILTER", env = "STAGEDOOR_LOG", help_heading = LOG)]
    pub log: Option<String>,

    /// The lines of the log: text for people, or json for programs, one object in each line.
    #[arg(long, value_name = "FORMAT", env = "STAGEDOOR_LOG_FORMAT", value_enum, default_value = "text",
        help_heading = LOG)]
    log_format: LogFormatOption,
}

/// `--log-format`
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormatOption {
    /// For people.
    Text,
    /// One JSON object in each line.
    Json,
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

/// The service key of every sandbox, so that the next sandbox can read an old database. A sandbox has no
/// secrets to protect.
const SANDBOX_SERVICE_KEY: &str = "a sandbox has nothing to protect";

impl CommonOptions {
    /// What to log, and how. `default` is the filter without `--log`.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub fn telemetry(&self, default: &str, collector: Option<Collector>) -> Result<Telemetry, String> {
        let format = match self.log_format {
            LogFormatOption::Text => LogFormat::Text,
            LogFormatOption::Json => LogFormat::Json,
        };
        Telemetry::new(self.log.as_deref().unwrap_or(default), format, collector)
    }

    /// How long rows are kept that grow with use.
    pub(super) fn retention(&self) -> Retention {
        self.retain.unwrap_or_default()
    }

    pub(super) fn settings(&self, store: StoreSettings) -> Result<Settings, String> {
        check_listeners(self.listen, self.platform_listen)?;
        let mail_hook = self.mail_hook()?;
        let language = match self.language {
            LanguageOption::Ko => Language::Korean,
            LanguageOption::En => Language::English,
        };
        Ok(Settings {
            listen: self.listen,
            platform_listen: self.platform_listen,
            listen_socket: None,
            trusted_proxies: self.trusted_proxies()?,
            proxy_protocol: self.proxy_protocol,
            store,
            expected_store: Default::default(),
            store_deadline: store::DEADLINE,
            archive: None,
            bus: BusSettings::Local,
            base_url: None,
            session_base: None,
            hosts: None,
            tls: None,
            https: None,
            roles: Roles::ALL,
            // A sandbox stops at once.
            drain_delay: Duration::ZERO,
            operator_key: None,
            other_operator_key: None,
            service_key: ServiceKey::of_text(SANDBOX_SERVICE_KEY),
            sandbox: false,
            ping_times: None,
            network: None,
            profile: match self.profile {
                ProfileOption::Documented => Profile::Documented,
                ProfileOption::Observed => Profile::Observed,
            },
            language,
            quotas: !self.no_quota,
            webhooks: WebhookSettings::default(),
            accounts: AccountSettings {
                registration: false,
                password_chars_min: self.password_min,
                sends_mail: mail_hook.is_some(),
                passwords: true,
                language,
                token_chain_max_ms: self.token_days_max.map(|days| days * DAY_MS),
            },
            developers: DeveloperSettings { reviews_scopes: self.review_scopes },
            retention: self.retention(),
            upstreams: Vec::new(),
            mail_hook,
            password_cost: PasswordCost::default(),
            footprint: Footprint::Whole,
            brand: self.brand.brand()?,
        })
    }

    fn mail_hook(&self) -> Result<Option<MailHook>, String> {
        let secret = match &self.mail_hook_secret_file {
            Some(path) => Some(read_secret(path)?),
            None => self.mail_hook_secret.clone(),
        };
        match (commands::secret("STAGEDOOR_MAIL_HOOK", self.mail_hook.as_deref())?, secret) {
            (Some(url), Some(secret)) => {
                let url = WebhookUrl::parse(&url, MailHook::REACH)
                    .map_err(|invalid| format!("--mail-hook {}", invalid.rule.text(Language::English)))?;
                let secret = WebhookSecret::given(&secret).map_err(|invalid| {
                    format!("--mail-hook-secret {}", invalid.rule.text(Language::English))
                })?;
                Ok(Some(MailHook { url, secret }))
            }
            (Some(_), None) => {
                Err("--mail-hook needs --mail-hook-secret, which signs its messages".to_owned())
            }
            (None, Some(_)) => Err("--mail-hook-secret needs --mail-hook".to_owned()),
            (None, None) => Ok(None),
        }
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

    pub(super) fn store(&self, folder: &Path) -> Result<StoreSettings, String> {
        let url = database_url(self.database_url.as_deref())?;
        Ok(url.map_or_else(
            || StoreSettings::Sqlite { path: folder.join(DATA_FILE) },
            |url| StoreSettings::Postgres { url },
        ))
    }
}

/// Refuses two listeners of which the second one would find its address in use.
fn check_listeners(listen: SocketAddr, platform: Option<SocketAddr>) -> Result<(), String> {
    let Some(platform) = platform.filter(|platform| platform.port() == listen.port() && listen.port() != 0)
    else {
        return Ok(());
    };
    let (one, other) = (listen.ip(), platform.ip());
    if one == other || one.is_unspecified() || other.is_unspecified() {
        return Err(format!(
            "--platform-listen {platform} is an address of --listen {listen}: give it another port"
        ));
    }
    Ok(())
}

fn read_secret(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map(|secret| secret.trim_end_matches(['\r', '\n']).to_owned())
        .map_err(|error| format!("--mail-hook-secret-file {}: {error}", path.display()))
}

fn password_chars_min(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|chars| (PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MIN_MAX).contains(chars))
        .ok_or_else(|| format!("it must be {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MIN_MAX}"))
}

/// Refuses `--port`, and says what to use.
fn listen_instead_of_port(port: &str) -> Result<Infallible, String> {
    let port = port.trim_start_matches([':', '=']);
    Err(format!("the option is --listen: `--listen {port}`, or `--listen ADDRESS:{port}`"))
}

pub(super) fn check_base(option: &str, url: &str) -> Result<String, String> {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let plain = host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']));
    if plain {
        Ok(url.to_owned())
    } else {
        Err(format!("{option} must be scheme and host, as in https://api.example.com"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_listeners_need_two_addresses() {
        for (listen, platform, ok) in [
            ("127.0.0.1:8080", "127.0.0.1:8081", true),
            ("127.0.0.1:8080", "127.0.0.1:8080", false),
            ("0.0.0.0:8080", "127.0.0.1:8080", false),
            ("127.0.0.1:8080", "[::]:8080", false),
            ("127.0.0.1:8080", "10.0.0.1:8080", true),
            ("127.0.0.1:0", "127.0.0.1:0", true),
        ] {
            let of = |text: &str| text.parse().expect("an address");
            assert_eq!(check_listeners(of(listen), Some(of(platform))).is_ok(), ok, "{listen} {platform}");
        }
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
}

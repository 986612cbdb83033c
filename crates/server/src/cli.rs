//! The command line. Every option can also be set by the environment. A secret can also be read from a file,
//! whose path is in a variable that ends in `_FILE`.

mod archive_options;
mod archive_restore;
mod backup;
mod backup_place;
mod brand;
mod bus_files;
mod check_config;
mod collector_options;
mod common;
mod deep;
mod expected_store;
mod listen_address;
mod progress;
mod router_finding;
mod serve;
mod service_key;
mod shell_files;
mod store_options;
mod upstream_options;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};
use commands::TargetOptions;
use commands::clock::ClockOptions;
use commands::code::{self, CodeOptions};
use commands::doctor;
use commands::drops::DropsCommand;
use commands::env::{self, EnvOptions};
use commands::expect::{self, ExpectOptions};
use commands::explain::{self, ExplainOptions};
use commands::fault::FaultOptions;
use commands::health::{self, HealthOptions};
use commands::logs::LogsOptions;
use commands::mark;
use commands::open::OpenOptions;
use commands::run::{self, RunOptions};
use commands::scenario::ScenarioCommand;
use commands::session_listen::{self, SessionListenOptions};
use commands::state_file;
use commands::trigger::TriggerOptions;
use commands::user_options::UserOptions;
use commands::webhook_listen::WebhookCommand;
use commands::world::{self, WorldOptions as WorldCommand};
use domain::Timestamp;
use domain::outbound::Reach;
use http_server::hosts::Hosts;
use sandbox::MAIN_WORLD;
use service::webhooks::WebhookSettings;
use service::{AccountSettings, PasswordCost};
use temporary_folder::TemporaryFolder;

use crate::config::{Settings, StoreSettings};
use crate::dev::{Opening, WorldOptions};
use crate::tls::TlsOptions;
use common::{NETWORKING, check_base};

pub use archive_options::ArchiveOptions;
pub use backup::{BackupOptions, MigrateOptions, RestoreOptions, run_backup, run_migrate, run_restore};
pub use check_config::{CheckConfigOptions, check_config};
pub use collector_options::CollectorOptions;
pub use common::{CommonOptions, DEV_LOG, LanguageOption, LogFormatOption, ProfileOption, SERVE_LOG};
pub use deep::{DoctorCommand, examine_store};
pub use router_finding::MENDS as ROUTER_MENDS;
pub use serve::{RegistrationOption, RoleOption, ServeOptions, ZoneOption};
pub use shell_files::{CompletionsOptions, ManualOptions, completions, write_manual};
pub use upstream_options::{
    CheckOptions, LocalPasswords, UpstreamCommand, UpstreamOptions, check as check_upstream,
};

const ABOUT: &str = "The open API service of a live-streaming platform: REST, sign-in, realtime sessions.

`stagedoor dev` runs it on a laptop, with a small world. Other commands find that sandbox by themselves.
`stagedoor serve` runs it in production.";

const DEV_EXAMPLES: &str = "\
Examples:
  stagedoor dev                             a new world, deleted at the end
  stagedoor dev --data world                a world that is kept, with its keys and secrets
  stagedoor dev --listen 9000 --name two    a second sandbox beside the first one
  stagedoor dev --tls --host api.example    HTTPS, also under a host that clients have built in
  stagedoor dev --json > world.json         for programs: addresses, keys and tokens as JSON
  stagedoor dev --world world.yaml          people and applications of your own
  stagedoor dev --seed 7 --clock 2027-01-01T00:00:00Z    the same answers at every start";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "stagedoor", version, about = ABOUT, max_term_width = 110)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What the program reads. A flag stands alone, or has a value behind `=`, as in `--json=false`.
    pub fn parser() -> clap::Command {
        with_values_of_flags(Self::command())
    }
}

fn with_values_of_flags(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| match arg.get_action() {
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .default_value("false")
            .value_name("true|false")
            .hide_default_value(true)
            .hide_possible_values(true),
        _ => arg,
    });
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_values_of_flags))
}

/// The commands of `stagedoor`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the service in a small seeded world, for the developers of bots, overlays and games.
    ///
    /// Prints an overview: addresses, keys, two applications with their secrets, people, and what to try
    /// next. Nothing else needs to be installed or started.
    #[command(after_help = DEV_EXAMPLES)]
    Dev(DevOptions),
    /// Runs the service in production: no seed, no sign-in without a password.
    ///
    /// SIGTERM and SIGINT stop it: /health/ready fails and the node serves for the time of --drain-delay.
    /// Then it accepts no new work, finishes running requests, and ends with status 0. By default that takes
    /// less than 10 seconds.
    #[command(after_help = serve::EXAMPLES)]
    Serve(ServeOptions),
    /// Checks the configuration of `serve`, shows each option with its source, and ends.
    ///
    /// Give it the options, variables and user of `serve`. It refuses what `serve` would refuse before it
    /// opens the store, in the same words. It connects to nothing, listens nowhere and writes nothing.
    /// Secrets are shown as "set".
    #[command(after_help = check_config::HELP)]
    CheckConfig(CheckConfigOptions),
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
    Token(UserOptions),
    /// Prints a new authorization code, as the redirect of a sign-in has it, without a browser.
    #[command(after_help = code::HELP)]
    Code(CodeOptions),
    /// Prints the settings of a bot: addresses, an application with its secret, a user's new tokens.
    #[command(after_help = env::HELP)]
    Env(EnvOptions),
    /// Shows the events of a user's session live, and forwards them to a program.
    ///
    /// It is a session like that of a bot: with a session URL, SYSTEM messages and subscriptions. When it
    /// ends, the command opens a new one. Ctrl-C ends the command.
    #[command(after_help = session_listen::HELP)]
    Listen(SessionListenOptions),
    /// Prints the mark of the newest record in the log of the sandbox that runs, for --after of expect and
    /// logs.
    #[command(after_help = mark::HELP)]
    Mark(TargetOptions),
    /// Waits until something has happened in the sandbox that runs, or fails with the nearest misses.
    #[command(after_help = expect::HELP)]
    Expect(ExpectOptions),
    /// Opens a page of the sandbox that runs in the browser, and prints its address.
    Open(OpenOptions),
    /// Says what an id or a word is, what the record says of it, and what to do next.
    #[command(after_help = explain::HELP)]
    Explain(ExplainOptions),
    /// Runs scenarios: timelines of triggers, clock moves, faults and expectations in the sandbox that runs.
    #[command(subcommand)]
    Scenario(ScenarioCommand),
    /// Runs your bot in sandboxes of its own, lets happen what hurts, and judges what the bot does. With
    /// --deep: examines the store of an operator.
    ///
    /// Each check starts a fresh sandbox and the command. Reports say what the bot did, and what to change.
    #[command(after_help = doctor::help())]
    Doctor(DoctorCommand),
    /// Starts a command that reaches the sandbox under the hosts that it has built in.
    #[command(after_help = run::HELP)]
    Run(RunOptions),
    /// Lets requests and socket messages of the sandbox that runs fail, by rules.
    ///
    /// Without a word after it, lists the rules with the number of their hits.
    #[command(after_help = commands::fault::EXAMPLES)]
    Fault(FaultOptions),
    /// Further worlds in the sandbox that runs, snapshots of them, and world files.
    #[command(after_help = world::HELP)]
    World(WorldCommand),
    /// Reports watched minutes and claims rewards for a viewer, over the platform API of a running service.
    #[command(subcommand)]
    Drops(DropsCommand),
    /// Forwards the messages to an application's webhook to this machine.
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// The OpenID Connect providers at which people sign in.
    #[command(subcommand)]
    Upstream(UpstreamCommand),
    /// Takes a backup of the store beside the running service, and verifies it.
    #[command(after_help = backup::BACKUP_HELP)]
    Backup(BackupOptions),
    /// Restores a backup into an empty place, or proves in a drill that it can be restored.
    #[command(after_help = backup::RESTORE_HELP)]
    Restore(RestoreOptions),
    /// Moves the store from SQLite to PostgreSQL, or back, while no node runs.
    #[command(after_help = backup::MIGRATE_HELP)]
    Migrate(MigrateOptions),
    /// Asks a node for its health.
    #[command(after_help = health::HELP)]
    Health(HealthOptions),
    /// Prints the script with which a shell completes commands and options.
    #[command(after_help = shell_files::COMPLETIONS_HELP)]
    Completions(CompletionsOptions),
    /// Writes the manual pages: one for each command.
    #[command(after_help = shell_files::MANUAL_HELP)]
    Manual(ManualOptions),
}

/// The beginning of the names of the folders in which sandboxes keep their worlds.
const WORLDS_PREFIX: &str = "stagedoor-world-";
/// The heading of the options of a sandbox, in the help.
const SANDBOX: &str = "Sandbox";

/// `stagedoor dev`
#[derive(Debug, Args)]
pub struct DevOptions {
    /// Keeps the world in this folder, for the next start. Without it the world is deleted at exit.
    #[arg(long, value_name = "DIR", env = "STAGEDOOR_DATA", help_heading = SANDBOX)]
    data: Option<PathBuf>,

    /// Makes ids, secrets and tokens the same at every start. With --clock the same calls in the same order
    /// give the same answers, byte for byte.
    #[arg(long, value_name = "N", env = "STAGEDOOR_SEED", help_heading = SANDBOX)]
    seed: Option<u64>,

    /// Begins at this time (RFC 3339), as in 2027-01-01T00:00:00Z. The clock stands still until `stagedoor
    /// clock` moves it.
    #[arg(long, value_name = "TIME", env = "STAGEDOOR_CLOCK", value_parser = clock_time, help_heading = SANDBOX)]
    clock: Option<Timestamp>,

    /// The people, applications and everything else of a new world, as YAML: `stagedoor world schema` says
    /// what can be in it, `stagedoor world export` writes one.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_WORLD", help_heading = SANDBOX)]
    world: Option<PathBuf>,

    /// The name of this sandbox, for the commands of other terminals when several sandboxes run:
    /// `stagedoor clock --sandbox NAME`. 1 to 32 letters, digits, `-` and `_`.
    /// Default: default, or default-2 and so on beside others.
    #[arg(long, value_name = "NAME", env = "STAGEDOOR_SANDBOX_NAME", value_parser = sandbox_name,
        help_heading = SANDBOX)]
    pub name: Option<String>,

    /// Prints one JSON object instead of the overview, as the first line of stdout, when the service is
    /// ready.
    #[arg(long, help_heading = SANDBOX)]
    pub json: bool,

    /// Puts all applications behind a network that is slow, breaks, or is not there: `stagedoor fault
    /// profiles` says what each does.
    #[arg(long, value_name = "PROFILE", env = "STAGEDOOR_NET", conflicts_with = "no_sandbox",
        value_parser = PossibleValuesParser::new(sandbox::network_names()))]
    pub net: Option<String>,

    /// Seconds between two pings of a socket: less, to see sooner what a client does without them.
    #[arg(long, value_name = "SECONDS", default_value = "25", value_parser = clap::value_parser!(u32).range(1..=25),
        help_heading = SANDBOX)]
    pub ping_interval: u32,

    /// Seconds that the answer to a ping may take.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=60),
        help_heading = SANDBOX)]
    pub ping_timeout: u32,

    /// Leaves out the sandbox API, its record, its faults and its clock: for load tests. The seeded world
    /// then runs on exactly what `serve` runs.
    #[arg(long, env = "STAGEDOOR_NO_SANDBOX", help_heading = SANDBOX, conflicts_with_all = ["seed", "clock"])]
    pub no_sandbox: bool,

    /// The options shared with `serve`.
    #[command(flatten)]
    pub common: CommonOptions,

    /// The base URL for clients, as in `https://sandbox.example.com`, when a TLS proxy is in front of the
    /// sandbox. Session URLs begin with it. Default: the address that the sandbox listens on.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_BASE_URL", help_heading = NETWORKING)]
    base_url: Option<String>,

    /// Further host names of the sandbox, as in `sandbox.internal`. Without it: loopback names, the address
    /// of --listen and the host of --base-url. Requests for other hosts are refused, so that no web page can
    /// point its own name at the sandbox.
    #[arg(long, value_name = "HOSTS", env = "STAGEDOOR_ALLOW_HOST", value_delimiter = ',',
        help_heading = NETWORKING)]
    allow_host: Vec<String>,

    /// TLS and fixed hosts.
    #[command(flatten)]
    pub tls: TlsOptions,
}

impl DevOptions {
    /// The folder in which the world is kept.
    pub fn kept(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    /// How the sandbox begins.
    ///
    /// # Errors
    /// A sentence for the developer.
    pub fn opening(&self) -> Result<Opening, String> {
        let root = TemporaryFolder::create(WORLDS_PREFIX)
            .map_err(|error| format!("failed to create a temporary folder: {error}"))?;
        let folder = make_folder(self.data.as_deref().unwrap_or(&root.path().join(MAIN_WORLD)))?;
        let store = self.common.store(&folder)?;
        if let StoreSettings::Sqlite { path } = &store {
            crate::dev::check_folder(&folder, path)?;
        }
        let world = self.world.as_deref();
        let (seed, clock, steered) = (self.seed, self.clock, !self.no_sandbox);
        let options = WorldOptions { folder: &folder, seed, clock, world, steered };
        let (beginning, operator_key) = options.read()?;
        let base_url = self.base_url.as_deref().map(|url| check_base("--base-url", url)).transpose()?;
        let further: Vec<_> =
            self.allow_host.iter().cloned().chain(self.tls.names().map(str::to_owned)).collect();
        let hosts = Hosts::of(self.common.listen.ip(), base_url.as_deref(), &further)?;
        // The receivers of a sandbox are on the developer's machine.
        let reach = Reach { loopback: true, ..Reach::PUBLIC };
        let common = self.common.settings(store)?;
        let settings = Settings {
            sandbox: true,
            accounts: AccountSettings {
                registration: true,
                sends_mail: common.accounts.sends_mail || !self.no_sandbox,
                ..common.accounts
            },
            network: self.net.clone(),
            ping_times: Some([self.ping_interval, self.ping_timeout].map(|s| Duration::from_secs(s.into()))),
            base_url,
            hosts: Some(hosts),
            tls: self.tls.settings(self.common.listen.ip(), &self.allow_host)?,
            operator_key: Some(operator_key),
            webhooks: WebhookSettings { reach, ..WebhookSettings::default() },
            // A sandbox has no secrets to protect, and a load test measures what `serve` does.
            password_cost: if self.no_sandbox { PasswordCost::default() } else { PasswordCost::LEAST },
            ..common
        };
        Ok(Opening::new(settings, root, beginning))
    }
}

fn sandbox_name(text: &str) -> Result<String, String> {
    let wrong = format!("it must be 1 to {} letters, digits, '-' and '_'", state_file::NAME_CHARS_MAX);
    state_file::is_name(text).then(|| text.to_owned()).ok_or(wrong)
}

fn clock_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text).ok_or_else(|| "it must be a time as in 2027-01-01T00:00:00Z".to_owned())
}

fn make_folder(path: &Path) -> Result<PathBuf, String> {
    temporary_folder::make_private(path).map_err(|error| format!("--data {}: {error}", path.display()))?;
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        Cli::parser().debug_assert();
    }

    /// The flags of a command and of the commands below it, each behind the words that lead to it.
    fn flags(command: &clap::Command, words: &[String]) -> Vec<Vec<String>> {
        let is_flag = |arg: &&clap::Arg| {
            let values: Vec<_> =
                arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            values == ["true", "false"] && !arg.is_positional()
        };
        let own = command.get_arguments().filter(is_flag);
        let own = own.map(|arg| [words, &[format!("--{}", arg.get_long().expect("a name"))]].concat());
        let below = command.get_subcommands().flat_map(|sub| {
            let words = [words, &[sub.get_name().to_owned()]].concat();
            flags(sub, &words)
        });
        own.chain(below).collect()
    }

    #[test]
    fn every_flag_takes_true_and_false_and_stands_alone() {
        let all = flags(&Cli::parser(), &["stagedoor".to_owned()]);
        assert!(all.len() > 40, "{all:?}");
        for flag in all {
            for value in ["", "=true", "=false"] {
                let mut words = flag.clone();
                words.last_mut().expect("the flag").push_str(value);
                // Only what else the command needs may be missing.
                let missing = [
                    ErrorKind::MissingRequiredArgument,
                    ErrorKind::MissingSubcommand,
                    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
                ];
                if let Err(error) = Cli::parser().try_get_matches_from(&words) {
                    assert!(missing.contains(&error.kind()), "{words:?}: {error}");
                }
            }
        }
        let dev = |word: &str| {
            Cli::from_arg_matches(
                &Cli::parser().try_get_matches_from(["stagedoor", "dev", word]).expect("a command line"),
            )
        };
        for (word, expected) in [("--json", true), ("--json=true", true), ("--json=false", false)] {
            let Command::Dev(options) = dev(word).expect("options").command else { panic!("dev") };
            assert_eq!(options.json, expected, "{word}");
        }
    }
}

//! `stagedoor doctor`: runs a developer's bot in sandboxes of its own, lets happen what hurts, and judges
//! what the bot does.
//!
//! | Module | What it does |
//! |---|---|
//! | `sandbox` | a sandbox of its own for each check |
//! | `bot` | the bot as a child process |
//! | `stage` | both of them, and what happened so far |
//! | `exchange` | the calls of the bot, read from the records |
//! | `rules` | the rules: calls in, findings out |
//! | `finding` | the misdeeds, and what to change |
//! | `checks` | the checks |
//! | `report` | the report |

mod bot;
mod checks;
mod exchange;
mod finding;
mod report;
mod rules;
mod sandbox;
mod stage;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use domain::Language;
use domain::outbound::WebhookUrl;
use service::Clock;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::env::name_prefix;
use crate::failure::CommandFailure;
use crate::forward_target::REACH;
use crate::hosts_file::fixed_host;
use crate::junit::report_file;
use crate::run::{RoadChoice, RoadOption};
use checks::{CHECKS, Check, make};
use report::CheckReport;
use stage::BotOptions;

/// Maximum of `--jobs`.
const JOBS_MAX: u64 = 16;
/// Maximum number of bots that start at the same time.
const STARTING_MAX: usize = 4;
/// Maximum of `--timeout`, in seconds.
const TIMEOUT_MAX_S: u64 = 600;

/// `stagedoor doctor`
#[derive(Debug, Args)]
pub struct DoctorOptions {
    /// Only these checks.
    #[arg(long, value_name = "CHECK", value_delimiter = ',', value_parser = check_name)]
    only: Vec<String>,

    /// Not these checks.
    #[arg(long, value_name = "CHECK", value_delimiter = ',', value_parser = check_name)]
    skip: Vec<String>,

    /// How long the bot may take to make its first calls, and to come back, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "20",
        value_parser = clap::value_parser!(u64).range(1..=TIMEOUT_MAX_S))]
    timeout: u64,

    /// How many checks run at the same time. 1 for a bot that needs a port of its own.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u64).range(1..=JOBS_MAX))]
    jobs: u64,

    /// The beginning of the names of the bot's variables.
    #[arg(long, value_name = "PREFIX", default_value = "STAGEDOOR_", value_parser = name_prefix)]
    prefix: String,

    /// Pings every 2 seconds, and waits 4 for an answer, in the checks silent-socket and subway. They then
    /// take seconds, for a bot that takes both from the handshake, as client libraries do.
    #[arg(long)]
    fast_pings: bool,

    /// The address of the bot's webhook receiver, as in http://127.0.0.1:3000/webhook, for the check webhook.
    #[arg(long, value_name = "URL", value_parser = webhook_address)]
    webhook: Option<String>,

    /// Fixed hosts, for a bot that has the addresses of the platform built in. The sandboxes speak TLS, and
    /// the bot reaches them under these names, as with `stagedoor run --host`.
    #[arg(long, value_name = "HOSTS", value_delimiter = ',', value_parser = fixed_host)]
    host: Vec<String>,

    /// The sandboxes speak TLS, and the bot trusts their certificate.
    #[arg(long)]
    tls: bool,

    /// How the bot reaches the fixed hosts. The road hosts-file needs --jobs 1.
    #[arg(long, value_enum, default_value = "auto", requires = "host")]
    road: RoadOption,

    /// The bot reaches its sandbox and nothing else. Needs Linux.
    #[arg(long, requires = "host")]
    offline: bool,

    /// The spelling of answers: documented, or observed for clients of the modelled platform.
    #[arg(long, value_name = "PROFILE", default_value = "documented", value_parser = ["documented", "observed"])]
    profile: String,

    /// Writes a report for CI servers, as JUnit XML.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(report_file))]
    junit: Option<PathBuf>,

    /// Prints JSON.
    #[arg(long)]
    json: bool,

    /// The command that starts the bot, with its arguments.
    #[arg(value_name = "COMMAND", required_unless_present = "deep", last = true)]
    command: Vec<String>,
}

impl DoctorOptions {
    /// Whether JSON is wanted.
    pub fn is_json(&self) -> bool {
        self.json
    }
}

/// The end of the command's help.
pub fn help() -> String {
    let checks: String =
        CHECKS.iter().map(|check| format!("  {:<18} {}\n", check.name, check.about)).collect();
    format!(
        "Checks:\n{checks}
Variables of the bot:
  STAGEDOOR_BASE_URL, STAGEDOOR_AUTH_URL, STAGEDOOR_TOKEN_URL, STAGEDOOR_CLIENT_ID, STAGEDOOR_CLIENT_SECRET,
  STAGEDOOR_REDIRECT_URI, STAGEDOOR_CHANNEL_ID, STAGEDOOR_ACCESS_TOKEN, STAGEDOOR_REFRESH_TOKEN; in the check
  webhook also STAGEDOOR_WEBHOOK_URL, STAGEDOOR_WEBHOOK_SECRET

Examples:
  stagedoor doctor -- node bot.js
  stagedoor doctor --only token-expiry,socket-closed -- python bot.py
  stagedoor doctor --junit report.xml --jobs 1 -- ./bot
  stagedoor doctor --deep --data /var/lib/stagedoor
  stagedoor doctor --deep --data /var/lib/stagedoor --node http://127.0.0.1:8080
  stagedoor doctor --fast-pings --jobs 16 --timeout 10 -- node bot.js
  stagedoor doctor --host api.example,auth.example --profile observed -- python bot.py

Exit codes: 0 no check failed, 1 a check failed, 2 wrong use, 3 a sandbox did not start."
    )
}

fn check_name(name: &str) -> Result<String, String> {
    let known = || CHECKS.iter().map(|check| check.name).collect::<Vec<_>>().join(", ");
    let found = CHECKS.iter().find(|check| check.name == name);
    found.map(|check| check.name.to_owned()).ok_or_else(|| format!("the checks are {}", known()))
}

/// Checks the address of `--webhook`.
fn webhook_address(url: &str) -> Result<String, String> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(
            "it must begin with https://, or with http:// if the receiver is on this machine".to_owned()
        );
    }
    let address = WebhookUrl::parse(url, REACH).map_err(|invalid| invalid.message(Language::English))?;
    Ok(address.as_str().to_owned())
}

/// Runs the command until it ends or `stop` is ready.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &DoctorOptions, stop: impl Future<Output = ()>) -> Result<(), CommandFailure> {
    tokio::select! {
        ended = examine(options) => ended,
        () = stop => Err(CommandFailure::Failed("the doctor was stopped".to_owned())),
    }
}

async fn examine(options: &DoctorOptions) -> Result<(), CommandFailure> {
    let reports = all(options).await?;
    let (verdict, is_good) = report::verdict(&reports);
    match options.json {
        true => crate::out_line!("{}", report::json(&reports)),
        false => crate::out_line!("{verdict}"),
    }
    if let Some(path) = &options.junit {
        report::junit(&reports).save(path)?;
    }
    let names = || {
        let failed =
            reports.iter().filter(|report| matches!(report.outcome, finding::CheckOutcome::Failed(_)));
        failed.map(|report| report.name).collect::<Vec<_>>().join(", ")
    };
    if is_good { Ok(()) } else { Err(CommandFailure::Failed(format!("these checks failed: {}", names()))) }
}

/// Makes the wanted checks, some at the same time. Returns the reports in the order of the checks.
async fn all(options: &DoctorOptions) -> Result<Vec<CheckReport>, CommandFailure> {
    let DoctorOptions {
        only,
        skip,
        timeout,
        jobs,
        prefix,
        profile,
        webhook,
        fast_pings,
        host,
        tls,
        road,
        offline,
        command,
        json,
        ..
    } = options;
    if *road == RoadOption::HostsFile && *jobs > 1 {
        let text = "--road hosts-file: the machine has one hosts file, so only one check can run: --jobs 1";
        return Err(CommandFailure::Usage(text.to_owned()));
    }
    // Several checks at a time cannot share the hosts file of the machine.
    let road = if *road == RoadOption::Auto && *jobs > 1 { RoadOption::Own } else { *road };
    let is_wanted = |check: &&Check| {
        (only.is_empty() || only.iter().any(|name| name == check.name))
            && skip.iter().all(|name| name != check.name)
    };
    let bot = BotOptions {
        command: command.clone(),
        prefix: prefix.clone(),
        profile: profile.clone(),
        webhook: webhook.clone(),
        fast_pings: *fast_pings,
        hosts: host.clone(),
        tls: *tls || !host.is_empty(),
        road: RoadChoice { road, offline: *offline },
        receiving: Arc::new(Semaphore::new(1)),
        starting: Arc::new(Semaphore::new(STARTING_MAX)),
        patience: Duration::from_secs(*timeout),
    };
    let places = Arc::new(Semaphore::new(usize::try_from(*jobs).unwrap_or(1)));
    let mut running = JoinSet::new();
    for (number, check) in CHECKS.iter().filter(is_wanted).enumerate() {
        let (bot, places) = (bot.clone(), places.clone());
        running.spawn(async move {
            // The semaphore is never closed.
            let _place = places.acquire_owned().await;
            report_of(check, &bot).await.map(|report| (number, report))
        });
    }
    let mut reports = Vec::new();
    while let Some(joined) = running.join_next().await {
        let made =
            joined.map_err(|error| CommandFailure::Failed(format!("a check failed to run: {error}")))?;
        let (number, report) = made?;
        if !json {
            crate::out_text!("{}", report.text());
        }
        reports.push((number, report));
    }
    reports.sort_by_key(|(number, _)| *number);
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

async fn report_of(check: &'static Check, bot: &BotOptions) -> Result<CheckReport, CommandFailure> {
    let clock = Clock::system();
    let began = clock.monotonic();
    let (outcome, output) = make(check, bot).await?;
    let took = clock.monotonic().saturating_sub(began);
    Ok(CheckReport { name: check.name, about: check.about, outcome, output, took })
}

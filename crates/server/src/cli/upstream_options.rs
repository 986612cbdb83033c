//! The options about the providers of the operator, and `stagedoor upstream`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use commands::CommandFailure;
use serde_json::json;
use service::Clock;
use upstream::{Provider, ProviderSettings, Report, StepState};

use super::common::{ACCOUNTS, check_base};

/// The options about the providers at which people sign in.
#[derive(Debug, Args)]
pub struct UpstreamOptions {
    /// The OpenID Connect providers at which people can sign in, as YAML: docs/upstream.md has an example.
    /// Needs --base-url. The same on every node.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_UPSTREAMS", help_heading = ACCOUNTS)]
    upstreams: Option<PathBuf>,

    /// Whether accounts have passwords here: on or off. With off people sign in at a provider of --upstreams
    /// only. The same on every node.
    #[arg(long, value_name = "STATE", env = "STAGEDOOR_LOCAL_PASSWORDS", value_enum, default_value = "on",
        help_heading = ACCOUNTS)]
    local_passwords: LocalPasswords,
}

/// `--local-passwords`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LocalPasswords {
    /// People can sign in with a password.
    On,
    /// People sign in at a provider only.
    Off,
}

impl UpstreamOptions {
    /// The providers, and whether accounts have passwords.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub(super) fn read(&self, has_base_url: bool) -> Result<(Vec<ProviderSettings>, bool), String> {
        let providers = self.upstreams.as_deref().map(upstream::read_file).transpose()?.unwrap_or_default();
        let has_passwords = self.local_passwords == LocalPasswords::On;
        if !has_passwords && providers.is_empty() {
            return Err("--local-passwords off needs --upstreams: nobody could sign in".to_owned());
        }
        if !providers.is_empty() && !has_base_url {
            return Err("--upstreams needs --base-url: the providers send browsers back there".to_owned());
        }
        Ok((providers, has_passwords))
    }
}

/// The end of the help of `stagedoor upstream check`.
const EXAMPLES: &str = "\
Examples:
  stagedoor upstream check company --upstreams upstreams.yaml --base-url https://api.example.com
  stagedoor upstream check company --json

The last step sends a code that the provider must refuse. It creates nothing there.

Exit codes: 0 sign-ins work, 1 a step failed, 2 wrong use, 3 the provider was not reached.";

/// The commands about providers.
#[derive(Debug, Subcommand)]
pub enum UpstreamCommand {
    /// Checks a provider of --upstreams step by step, and says what to do.
    #[command(after_help = EXAMPLES)]
    Check(CheckOptions),
}

/// `stagedoor upstream check`
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// The name of the provider in the file.
    name: String,

    /// The file with the providers, as for `serve`.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_UPSTREAMS")]
    upstreams: PathBuf,

    /// The base URL of the service for browsers, as for `serve`.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_BASE_URL", default_value = "http://127.0.0.1:8080")]
    base_url: String,

    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command, and prints its report.
///
/// # Errors
/// [`CommandFailure`] when a step failed, with the exit code.
pub async fn check(options: &CheckOptions) -> Result<(), CommandFailure> {
    let base_url = check_base("--base-url", &options.base_url).map_err(CommandFailure::Usage)?;
    let providers = upstream::read_file(&options.upstreams).map_err(CommandFailure::Usage)?;
    let names: Vec<_> = providers.iter().map(|provider| provider.name.clone()).collect();
    let settings = providers.into_iter().find(|provider| provider.name == options.name);
    let settings = settings.ok_or_else(|| {
        let names = names.join(", ");
        CommandFailure::Usage(format!("no provider is named {}: the file has {names}", options.name))
    })?;
    let provider = Provider::new(settings)?;
    let report = upstream::check(&provider, &base_url, Clock::system().now()).await;
    match options.json {
        true => commands::out_line!("{}", as_json(&options.name, &report)),
        false => commands::out_text!("{}", as_text(&report)),
    }
    match (report.is_good(), report.is_reached) {
        (true, _) => Ok(()),
        (false, true) => Err(CommandFailure::Failed(format!("sign-ins at {} do not work", options.name))),
        (false, false) => Err(CommandFailure::Unreachable(format!("{} was not reached", options.name))),
    }
}

const fn word(state: StepState) -> &'static str {
    match state {
        StepState::Ok => "ok",
        StepState::Warning => "warning",
        StepState::Failed => "failed",
    }
}

fn as_json(name: &str, report: &Report) -> serde_json::Value {
    let steps = report.steps.iter().map(|step| {
        json!({ "name": step.name, "state": word(step.state), "found": step.found, "advice": step.advice })
    });
    json!({
        "provider": name,
        "ok": report.is_good(),
        "reached": report.is_reached,
        "redirectAddress": report.redirect_address,
        "steps": steps.collect::<Vec<_>>(),
    })
}

fn as_text(report: &Report) -> String {
    let mut text = String::new();
    for step in &report.steps {
        let _ = writeln!(text, "{:8} {}: {}", word(step.state), step.name, step.found);
        if !step.advice.is_empty() {
            let _ = writeln!(text, "         {}", step.advice);
        }
    }
    let _ =
        writeln!(text, "\nThe redirect address to register at the provider:\n  {}", report.redirect_address);
    text
}

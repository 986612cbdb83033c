//! `stagedoor doctor`: the doctor of bots, and with `--deep` that of a store.

use backup::{Finding, inspect, inspect_service_key};
use clap::Args;
use commands::CommandFailure;
use commands::doctor::DoctorOptions;
use serde_json::json;
use service::Clock;

use super::backup::failure;
use super::router_finding::{self, RouterFinding};
use super::service_key::ServiceKeyOptions;
use super::store_options::StoreOptions;

/// The heading of the options of `--deep`, in the help.
const DEEP: &str = "Of a store";

/// `stagedoor doctor`
#[derive(Debug, Args)]
pub struct DoctorCommand {
    /// The options about the bot.
    #[command(flatten)]
    pub bot: DoctorOptions,

    /// Examines no bot, but the store: sentences that are true of every store, in one snapshot, beside the
    /// running service. Says what contradicts them, and how to mend it.
    #[arg(long, conflicts_with = "command", help_heading = DEEP)]
    pub deep: bool,

    /// The address of a running node, as in http://10.0.0.1:8080, once for each node. Its router, the
    /// sessions and subscriptions in its memory, is compared with the store.
    #[arg(long = "node", value_name = "URL", requires = "deep", help_heading = DEEP)]
    pub nodes: Vec<String>,

    /// The operator key of the nodes. Better set by STAGEDOOR_OPERATOR_KEY or STAGEDOOR_OPERATOR_KEY_FILE,
    /// which keep it out of the list of processes.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_OPERATOR_KEY", hide_env_values = true, help_heading = DEEP)]
    pub operator_key: Option<String>,

    /// The store.
    #[command(flatten, next_help_heading = DEEP)]
    pub store: StoreOptions,

    /// The service key.
    #[command(flatten, next_help_heading = DEEP)]
    pub key: ServiceKeyOptions,
}

/// Examines a store, and prints what it finds.
///
/// # Errors
/// [`CommandFailure`] when a sentence is not true, with the exit code.
pub async fn examine_store(options: &DoctorCommand) -> Result<(), CommandFailure> {
    let target = options.store.target().map_err(CommandFailure::Usage)?;
    let now = Clock::system().now();
    let mut findings = inspect(&target, now).await.map_err(failure)?;
    if let Some(key) = options.key.key().map_err(CommandFailure::Usage)? {
        findings.push(inspect_service_key(&target, &key).await.map_err(failure)?);
    }
    let router = RouterFinding::of(&options.nodes, options.operator_key.as_deref(), &target, now).await?;
    match options.bot.is_json() {
        true => commands::out_line!("{}", as_json(&findings, &router)),
        false => {
            findings.iter().for_each(|finding| commands::out_text!("{}", as_text(finding)));
            commands::out_text!("{}", router.as_text());
        }
    }
    let broken = findings.iter().filter(|finding| !is_true(finding)).map(|found| found.name);
    let broken: Vec<_> = broken.chain((!router.is_true()).then_some(router_finding::NAME)).collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(CommandFailure::Failed(format!("not true of this store: {}", broken.join(", "))))
}

fn is_true(finding: &Finding) -> bool {
    finding.contradictions.is_empty()
}

fn as_json(findings: &[Finding], router: &RouterFinding) -> serde_json::Value {
    let sentences = findings.iter().map(|finding| {
        json!({ "name": finding.name, "sentence": finding.sentence, "ok": is_true(finding), "mend": finding.mend,
            "contradictions": finding.contradictions, "more": finding.are_more })
    });
    let is_ok = findings.iter().all(is_true) && router.is_true();
    json!({ "ok": is_ok, "sentences": sentences.collect::<Vec<_>>(), "router": router.as_json() })
}

fn as_text(finding: &Finding) -> String {
    if is_true(finding) {
        return format!("ok      {:<22} {}\n", finding.name, finding.sentence);
    }
    let mut text = format!("BROKEN  {:<22} {}\n", finding.name, finding.sentence);
    for name in &finding.contradictions {
        text.push_str(&format!("          {name}\n"));
    }
    if finding.are_more {
        text.push_str("          and more\n");
    }
    text.push_str(&format!("        To mend it: {}\n", finding.mend));
    text
}

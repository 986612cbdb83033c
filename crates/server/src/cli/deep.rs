//! `stagedoor doctor`: the doctor of bots, and with `--deep` that of a store.

use backup::{Finding, inspect};
use clap::Args;
use commands::CommandFailure;
use commands::doctor::DoctorOptions;
use serde_json::json;
use service::Clock;

use super::backup::failure;
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

    /// The store.
    #[command(flatten, next_help_heading = DEEP)]
    pub store: StoreOptions,
}

/// Examines a store, and prints what it finds.
///
/// # Errors
/// [`CommandFailure`] when a sentence is not true, with the exit code.
pub async fn examine_store(options: &DoctorCommand) -> Result<(), CommandFailure> {
    let target = options.store.target().map_err(CommandFailure::Usage)?;
    let findings = inspect(&target, Clock::system().now()).await.map_err(failure)?;
    match options.bot.is_json() {
        true => println!("{}", as_json(&findings)),
        false => findings.iter().for_each(|finding| print!("{}", as_text(finding))),
    }
    let broken: Vec<_> =
        findings.iter().filter(|finding| !is_true(finding)).map(|found| found.name).collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(CommandFailure::Failed(format!("not true of this store: {}", broken.join(", "))))
}

fn is_true(finding: &Finding) -> bool {
    finding.contradictions.is_empty()
}

fn as_json(findings: &[Finding]) -> serde_json::Value {
    let sentences = findings.iter().map(|finding| {
        json!({ "name": finding.name, "sentence": finding.sentence, "ok": is_true(finding), "mend": finding.mend,
            "contradictions": finding.contradictions, "more": finding.are_more })
    });
    json!({ "ok": findings.iter().all(is_true), "sentences": sentences.collect::<Vec<_>>() })
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
    text.push_str(&format!("        To mend it: {}.\n", finding.mend));
    text
}

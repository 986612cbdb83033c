//! `stagedoor mark`: the end of a sandbox's log, after which `stagedoor expect` and `stagedoor logs` look.

use crate::failure::CommandFailure;
use crate::recording::latest_mark;
use crate::target::TargetOptions;

/// The end of the command's help.
pub const HELP: &str = "\
Example:
  MARK=$(stagedoor mark)
  stagedoor trigger revoke-consent --user haneul --client demo
  stagedoor expect '/open/v1/*' --after \"$MARK\" --at-most 5 --within 10s";

/// Runs the command, and returns its output.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &TargetOptions) -> Result<String, CommandFailure> {
    let mark = latest_mark(&options.find().await?, 0).await?;
    Ok(if options.json { format!("{}\n", serde_json::json!({ "mark": mark })) } else { format!("{mark}\n") })
}

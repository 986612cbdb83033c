//! `stagedoor code`: a new authorization code in a sandbox, without a browser.

use std::time::Duration;

use clap::Args;
use http::Method;
use serde_json::Value;

use crate::failure::CommandFailure;
use crate::user_options::UserOptions;

/// `stagedoor code`
#[derive(Debug, Args)]
pub struct CodeOptions {
    #[command(flatten)]
    user: UserOptions,

    /// A redirect address of the application. Default: the first one of its program.
    #[arg(long, value_name = "URL")]
    redirect_uri: Option<String>,

    /// The state, with which the code has to be exchanged. Default: sandbox.
    #[arg(long, value_name = "TEXT")]
    state: Option<String>,

    /// A code that has expired.
    #[arg(long, conflicts_with = "used")]
    expired: bool,

    /// A code that was exchanged already.
    #[arg(long)]
    used: bool,
}

/// The end of the command's help.
pub const HELP: &str = "\
Examples:
  stagedoor code --user haneul --client demo
  stagedoor code --expired
  stagedoor code --state right   # exchanged with another state, the code is refused

The code is exchanged at POST /auth/v1/token, with the state. Exit codes: 0 done, 1 refused, 2 wrong use, 3 no
sandbox was reached.";

/// Runs the command, and returns its output: the code alone, or all of the answer as JSON.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &CodeOptions) -> Result<String, CommandFailure> {
    let CodeOptions { user, redirect_uri, state, expired, used } = options;
    let target = user.target.find().await?;
    let mut body = user.body();
    let end = [("expired", *expired), ("used", *used)].into_iter().find(|(_, is_wanted)| *is_wanted);
    let end = end.map(|(end, _)| end.to_owned());
    for (name, value) in [("redirectUri", redirect_uri), ("state", state), ("end", &end)] {
        if let Some(value) = value {
            body[name] = Value::from(value.as_str());
        }
    }
    let issued = target.call(Method::POST, "/sandbox/v1/codes", Some(&body), Duration::ZERO).await?;
    let code = issued["code"].as_str().unwrap_or_default();
    Ok(if user.target.json { format!("{issued}\n") } else { format!("{code}\n") })
}

//! `stagedoor token`: a new access token in a sandbox, without a browser.

use std::time::Duration;

use http::Method;

use crate::failure::CommandFailure;
use crate::user_options::UserOptions;

/// Runs the command, and returns its output: the access token alone, or all of the answer as JSON.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &UserOptions) -> Result<String, CommandFailure> {
    let target = options.target.find().await?;
    let issued =
        target.call(Method::POST, "/sandbox/v1/tokens", Some(&options.body()), Duration::ZERO).await?;
    let token = issued["accessToken"].as_str().unwrap_or_default();
    Ok(if options.target.json { format!("{issued}\n") } else { format!("{token}\n") })
}

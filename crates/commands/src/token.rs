//! `stagedoor token`: a new access token in a sandbox, without a browser.

use std::time::Duration;

use clap::Args;
use http::Method;
use serde_json::{Map, Value};

use crate::failure::CommandFailure;
use crate::target::TargetOptions;

/// `stagedoor token`
#[derive(Debug, Args)]
pub struct TokenOptions {
    #[command(flatten)]
    target: TargetOptions,

    /// The user, by id, login or channel name. Default: the first person.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The application, by id or name. Default: the first one.
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
}

/// Runs the command, and returns its output: the access token alone, or all of the answer as JSON.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &TokenOptions) -> Result<String, CommandFailure> {
    let target = options.target.find()?;
    let given = [("user", &options.user), ("client", &options.client)];
    let fields = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into())));
    let body = Value::Object(fields.collect::<Map<_, _>>());
    let issued = target.call(Method::POST, "/sandbox/v1/tokens", Some(&body), Duration::ZERO).await?;
    let token = issued["accessToken"].as_str().unwrap_or_default();
    Ok(if options.target.json { format!("{issued}\n") } else { format!("{token}\n") })
}

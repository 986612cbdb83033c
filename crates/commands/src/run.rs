//! `stagedoor run`: starts a command that reaches a sandbox under the hosts that it has built in.

mod forward;
mod namespace;
mod options;
mod own_sandbox;
mod proxy;
mod road;
mod signals;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use http::Method;
use temporary_folder::TemporaryFolder;
use tokio::process::Command;

use crate::failure::CommandFailure;
use crate::target::Target;
use own_sandbox::CommandSandbox;
use signals::Signals;

pub use options::{HELP, RoadOption, RunOptions};
pub(crate) use road::{Road, RoadChoice};

/// The exit code of a command that a signal ended is this and the number of the signal.
const SIGNALLED: i32 = 128;

/// Runs a command.
///
/// # Errors
/// [`CommandFailure`]: the command was not started, or its exit code is not 0.
pub async fn run(options: &RunOptions) -> Result<(), CommandFailure> {
    let mut signals = Signals::listen()?;
    let folder = TemporaryFolder::create("stagedoor-run-");
    let folder = folder.map_err(|error| format!("failed to create a temporary folder: {error}"))?;
    let (own, target) = match existing(options).await? {
        Some(target) => (None, target),
        None => {
            let own = CommandSandbox::start(options, folder.path()).await?;
            let target = Target::new(&own.base_url, &own.operator_key)?;
            (Some(own), target)
        }
    };
    let ended = with_target(options, &target, folder.path(), &mut signals).await;
    if let Some(own) = own {
        own.stop().await;
    }
    ended
}

/// The sandbox that the options name, or the one that runs. `None` if a new one is to be started.
async fn existing(options: &RunOptions) -> Result<Option<Target>, CommandFailure> {
    let RunOptions { target, host, profile, data, .. } = options;
    let names_one = target.server.is_some() || target.sandbox.is_some() || target.world.is_some();
    let starts_one = !host.is_empty() || profile.is_some() || data.is_some();
    if names_one && starts_one {
        let text = "--host, --profile and --data start a new sandbox: leave them out, or --server, --sandbox and --world";
        return Err(CommandFailure::Usage(text.to_owned()));
    }
    if starts_one {
        return Ok(None);
    }
    match target.find().await {
        Ok(target) => Ok(Some(target)),
        Err(CommandFailure::Unreachable(_)) if !names_one => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn with_target(
    options: &RunOptions,
    target: &Target,
    folder: &Path,
    signals: &mut Signals,
) -> Result<(), CommandFailure> {
    let variables = settings(target).await?;
    let choice = RoadChoice { road: options.road, offline: options.offline };
    let road = Road::to(target, choice, folder).await?;
    let mut command = Command::new(&options.command[0]);
    command.args(&options.command[1..]).envs(variables);
    let (child, _forwarders) = road.start(command)?;
    let status = signals.pass_on(child).await;
    let status = status.map_err(|error| format!("failed to wait for the command: {error}"))?;
    match exit_code(status) {
        0 => Ok(()),
        code => Err(CommandFailure::Ended(code)),
    }
}

/// The settings of a bot, as `stagedoor env` prints them, and the address of the sandbox for other commands.
async fn settings(target: &Target) -> Result<BTreeMap<String, String>, CommandFailure> {
    let body = serde_json::json!({});
    let answer = target.call(Method::POST, "/sandbox/v1/environment", Some(&body), Duration::ZERO).await?;
    let fields = answer.as_object().into_iter().flatten();
    let named = fields.filter_map(|(name, value)| Some((variable(name), value.as_str()?.to_owned())));
    let mut variables: BTreeMap<_, _> = named.collect();
    variables.insert("STAGEDOOR_SERVER".to_owned(), target.server().base().to_owned());
    variables.insert("STAGEDOOR_OPERATOR_KEY".to_owned(), target.operator_key().to_owned());
    Ok(variables)
}

/// `STAGEDOOR_BASE_URL` for `baseUrl`.
fn variable(field: &str) -> String {
    let mut name = "STAGEDOOR_".to_owned();
    for letter in field.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(SIGNALLED + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_variables() {
        assert_eq!(variable("baseUrl"), "STAGEDOOR_BASE_URL");
        assert_eq!(variable("clientId"), "STAGEDOOR_CLIENT_ID");
    }
}

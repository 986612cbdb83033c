//! A sandbox for the time of one command.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use super::namespace::end_with_parent;
use super::options::RunOptions;
use crate::failure::CommandFailure;

/// Deadline of the start.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Deadline of the end.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// Number of lines of the log that are shown when the sandbox does not start.
const TAIL_LINES: usize = 10;

/// A running sandbox. Dropping it kills it.
pub(super) struct CommandSandbox {
    child: Child,
    /// Kept open, so that the sandbox can write to it.
    _stdout: BufReader<ChildStdout>,
    pub base_url: String,
    pub operator_key: String,
}

impl CommandSandbox {
    /// Starts `stagedoor dev`.
    pub async fn start(options: &RunOptions, folder: &Path) -> Result<Self, CommandFailure> {
        let log = folder.join("sandbox.log");
        let failed =
            |error: std::io::Error| CommandFailure::Failed(format!("failed to start a sandbox: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(arguments(options)).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(&log).map_err(failed)?).kill_on_drop(true);
        // Settings of another sandbox, as `stagedoor env` prints them, are not those of this one.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("STAGEDOOR_") && name != "STAGEDOOR_TLS_FOLDER" {
                command.env_remove(name);
            }
        }
        // The keys of a terminal end the command, and then this sandbox.
        command.process_group(0);
        end_with_parent(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        let (mut stdout, mut line) = (BufReader::new(stdout), String::new());
        let read = tokio::time::timeout(START_DEADLINE, stdout.read_line(&mut line)).await;
        let world: Option<Value> = read.ok().and_then(|_| serde_json::from_str(&line).ok());
        let text = |name: &str| Some(world.as_ref()?[name].as_str()?.to_owned());
        match (text("baseUrl"), text("operatorKey")) {
            (Some(base_url), Some(operator_key)) => {
                Ok(Self { child, _stdout: stdout, base_url, operator_key })
            }
            _ => Err(CommandFailure::Failed(format!("the sandbox did not start:\n{}", tail(&log)))),
        }
    }

    /// Ends the sandbox.
    pub async fn stop(mut self) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        // A sandbox that does not end is killed when this value is dropped.
        let _ = tokio::time::timeout(STOP_DEADLINE, self.child.wait()).await;
    }
}

fn arguments(options: &RunOptions) -> Vec<String> {
    let name = format!("run-{}", std::process::id());
    let mut arguments: Vec<String> =
        ["dev", "--json", "--tls", "--listen", "127.0.0.1:0", "--name", &name].map(str::to_owned).into();
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    for host in &options.host {
        option("--host", host.clone());
    }
    if let Some(profile) = &options.profile {
        option("--profile", profile.clone());
    }
    if let Some(data) = &options.data {
        option("--data", data.display().to_string());
    }
    arguments
}

/// The last lines of the log.
fn tail(log: &PathBuf) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

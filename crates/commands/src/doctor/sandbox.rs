//! A sandbox of its own for each check: `stagedoor dev` as a child process.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use temporary_folder::TemporaryFolder;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::failure::CommandFailure;
use crate::target::Target;

/// How long a sandbox may take to start, and to stop.
const START_MAX: Duration = Duration::from_secs(30);
/// The variable of the folder of the local authority.
const TLS_FOLDER: &str = "STAGEDOOR_TLS_FOLDER";
/// Number of lines of its log that a failure shows.
const LOG_LINES: usize = 5;

/// A running sandbox. It ends when this value is dropped.
pub struct OwnSandbox {
    child: Child,
    folder: TemporaryFolder,
    arguments: Vec<String>,
    /// What `stagedoor dev --json` printed.
    pub world: Value,
}

impl OwnSandbox {
    /// Starts a sandbox on a free port, with a fresh world and these further options of `stagedoor dev`.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(arguments: Vec<String>) -> Result<Self, CommandFailure> {
        let folder = TemporaryFolder::create("stagedoor-doctor-");
        let folder = folder.map_err(|error| format!("failed to create a temporary folder: {error}"))?;
        let (child, world) = launch(&folder, &arguments, "127.0.0.1:0").await?;
        Ok(Self { child, folder, arguments, world })
    }

    /// Its folder, for further files of the check.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its base URL.
    pub fn base_url(&self) -> &str {
        self.world["baseUrl"].as_str().unwrap_or_default()
    }

    /// Its API.
    ///
    /// # Errors
    /// The printed world is not as expected.
    pub fn target(&self) -> Result<Target, CommandFailure> {
        Target::new(self.base_url(), self.world["operatorKey"].as_str().unwrap_or_default())
    }

    /// Stops it. The world stays.
    ///
    /// # Errors
    /// It does not stop.
    pub async fn stop(&mut self) -> Result<(), CommandFailure> {
        if let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            // It may have ended by itself, which the wait below sees.
            let _ = kill_process(pid, Signal::TERM);
        }
        let ended = timeout(START_MAX, self.child.wait()).await;
        ended.map(drop).map_err(|_| CommandFailure::Failed("the sandbox did not stop".to_owned()))
    }

    /// Starts it again, with its world and its port.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start_again(&mut self) -> Result<(), CommandFailure> {
        let address = self.base_url().trim_start_matches("http://").to_owned();
        (self.child, self.world) = launch(&self.folder, &self.arguments, &address).await?;
        Ok(())
    }
}

/// Starts the program, and reads the first line that it prints.
async fn launch(
    folder: &TemporaryFolder,
    arguments: &[String],
    listen: &str,
) -> Result<(Child, Value), CommandFailure> {
    let failed = |why: &dyn std::fmt::Display| {
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        CommandFailure::Unreachable(format!("the sandbox of the check did not start: {why}\n{last}"))
    };
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let log = std::fs::File::create(folder.path().join("log")).map_err(|error| failed(&error))?;
    let mut command = Command::new(program);
    command
        .args(["dev", "--json", "--log", "warn", "--listen", listen, "--data"])
        .arg(folder.path().join("world"))
        .args(arguments);
    // The settings of the developer's own sandbox are not meant for this one, and its state file is private.
    let is_meant = |name: &OsStr| !name.to_string_lossy().starts_with("STAGEDOOR_") || name == TLS_FOLDER;
    for (name, _) in std::env::vars_os().filter(|(name, _)| !is_meant(name)) {
        command.env_remove(name);
    }
    command.env("XDG_RUNTIME_DIR", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
    // A signal from the terminal ends the doctor, which ends the sandbox.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let stdout = child.stdout.take().ok_or_else(|| failed(&"it has no output"))?;
    let mut line = String::new();
    let mut reader = BufReader::new(stdout);
    match timeout(START_MAX, reader.read_line(&mut line)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(failed(&error)),
        Err(_) => return Err(failed(&"it printed nothing in time")),
    }
    let world = serde_json::from_str(&line).map_err(|_| failed(&"it ended"))?;
    Ok((child, world))
}

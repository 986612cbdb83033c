//! The developer's bot as a child process, with its environment and the end of its output.

use std::collections::VecDeque;
use std::fmt::Display;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::failure::CommandFailure;
use crate::run::Road;

/// Maximum size of the kept output, in bytes.
const OUTPUT_BYTES_MAX: usize = 8 * 1024;
/// Number of lines of the output that a report shows.
const OUTPUT_LINES: usize = 12;
/// How long a bot may take to stop.
const STOP_MAX: Duration = Duration::from_secs(3);

/// The end of what a bot printed.
#[derive(Default)]
struct Output {
    last: VecDeque<u8>,
    /// Number of all bytes.
    printed: u64,
}

/// A running bot. It and its children end when this value is dropped.
pub struct Bot {
    child: Child,
    /// The process group, which has the id of the first process.
    group: Option<Pid>,
    output: Arc<Mutex<Output>>,
    /// Its way to the fixed hosts.
    _road: Option<(Road, JoinSet<()>)>,
}

impl Bot {
    /// Starts the bot.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(
        command: &[String],
        environment: &[(String, String)],
        road: Option<Road>,
    ) -> Result<Self, CommandFailure> {
        let [program, arguments @ ..] = command else {
            return Err(CommandFailure::Usage("the command of the bot is missing".to_owned()));
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let failed = |why: &dyn Display| CommandFailure::Usage(format!("the bot cannot be started: {why}"));
        let (mut child, road) = match road {
            None => (command.spawn().map_err(|error| failed(&format!("{program}: {error}")))?, None),
            Some(road) => {
                let (child, forwarders) = road.start(command).map_err(|failure| failed(&failure))?;
                (child, Some((road, forwarders)))
            }
        };
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let output = Arc::<Mutex<Output>>::default();
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(keep(stdout, output.clone()));
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(keep(stderr, output.clone()));
        }
        Ok(Self { child, group, output, _road: road })
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Number of bytes that it has printed.
    pub fn printed(&self) -> u64 {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).printed
    }

    /// The last lines of its output.
    pub fn output(&self) -> Vec<String> {
        let bytes: Vec<u8> =
            self.output.lock().unwrap_or_else(PoisonError::into_inner).last.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(OUTPUT_LINES)..].iter().map(|line| (*line).to_owned()).collect()
    }

    /// Asks it to stop, and stops it.
    pub async fn stop(&mut self) {
        self.signal(Signal::TERM);
        // What has not ended by then is killed when this value is dropped.
        let _ = timeout(STOP_MAX, self.child.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Keeps the end of an output.
async fn keep(mut from: impl AsyncRead + Unpin, output: Arc<Mutex<Output>>) {
    let mut chunk = [0; 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.printed += length as u64;
        output.last.extend(&chunk[..length]);
        let excess = output.last.len().saturating_sub(OUTPUT_BYTES_MAX);
        output.last.drain(..excess);
    }
}

//! The server under load: a running one, or one that this program starts.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use crate::clock::{Clock, SECOND_NS};
use crate::process::{Memory, cpu_seconds, cpu_seconds_of_threads};

/// Deadline for the server's first line.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// Deadline for the server's stop: the promised 10 s, and some more.
const STOP_DEADLINE_NS: u64 = 15 * SECOND_NS;
/// How often the stopping server is checked.
const STOP_TICK: Duration = Duration::from_millis(20);
/// Maximum length of the first line, in bytes.
const FIRST_LINE_BYTES_MAX: u64 = 1024 * 1024;
/// The environment variable with the server's database. Unlike an argument it is not shown in the list of
/// processes.
const DATABASE_URL: &str = "STAGEDOOR_DATABASE_URL";

/// The prefix of the names of the threads that deliver events.
const DELIVERING: &str = "shard-";

/// A measured process, if its id is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe(pub(crate) Option<u32>);

impl Probe {
    /// Its memory.
    pub(crate) fn memory(self) -> Option<Memory> {
        self.0.and_then(Memory::of)
    }

    /// The CPU seconds of the process.
    pub(crate) fn cpu(self) -> Option<f64> {
        self.0.and_then(cpu_seconds)
    }

    /// The CPU seconds of the threads that write events to sessions; `None` for a server without such thread
    /// names.
    pub(crate) fn cpu_delivering(self) -> Option<f64> {
        self.0.and_then(|pid| cpu_seconds_of_threads(pid, DELIVERING))
    }
}

/// The server under load.
#[derive(Debug)]
pub(crate) enum Server {
    /// A server that was running before. Its process is measured if its id is known.
    Given(Option<u32>),
    /// A server that this program starts. Between stop and restart there is no process.
    Own(Own, Option<Spawned>),
}

impl Server {
    /// The measured process.
    pub(crate) fn probe(&self) -> Probe {
        match self {
            Self::Given(pid) => Probe(*pid),
            Self::Own(_, spawned) => Probe(spawned.as_ref().map(Spawned::pid)),
        }
    }

    /// Restarts an own server in the same world, so that its memory contains nothing of the set-up: the
    /// hashing of passwords alone leaves more free memory than thousands of sessions fill. Returns its new
    /// first line.
    ///
    /// # Errors
    /// A sentence, also if the stop failed.
    pub(crate) fn restart(&mut self, clock: Clock) -> Result<Option<String>, String> {
        let Self::Own(own, spawned) = self else { return Ok(None) };
        if let Some(spawned) = spawned.take() {
            match spawned.stop(clock)? {
                (0, _) => {}
                (code, _) => return Err(format!("the server ended with {code} after the set-up")),
            }
        }
        let (again, line) = own.start()?;
        *spawned = Some(again);
        Ok(Some(line))
    }

    /// Stops an own server, and returns its exit code and the seconds of the stop.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn stop(self, clock: Clock) -> Result<Option<(i32, f64)>, String> {
        match self {
            Self::Own(_own, Some(spawned)) => spawned.stop(clock).map(Some),
            Self::Own(_, None) | Self::Given(_) => Ok(None),
        }
    }
}

/// The command of an own server. Its world is in a folder that is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Own {
    program: PathBuf,
    database_url: Option<String>,
    data: TempDir,
}

/// A started server. Dropping it before its stop kills it.
#[derive(Debug)]
pub(crate) struct Spawned {
    child: Child,
}

impl Own {
    /// Creates the folder.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn new(program: &Path, database_url: Option<&str>) -> Result<Self, String> {
        // The folder contains the server's tokens.
        let only_mine = Permissions::from_mode(0o700);
        let data = tempfile::Builder::new().prefix("stagedoor-load-").permissions(only_mine).tempdir();
        let data = data.map_err(|error| format!("no folder for the server's data: {error}"))?;
        Ok(Self { program: program.to_owned(), database_url: database_url.map(str::to_owned), data })
    }

    /// Starts `stagedoor dev` without the sandbox's record and faults, and returns its first line. A later
    /// start continues with the same world.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn start(&self) -> Result<(Spawned, String), String> {
        let mut command = Command::new(&self.program);
        command.args(["dev", "--no-sandbox", "--json", "--no-quota", "--listen", "127.0.0.1:0"]);
        command.args(["--log", "warn", "--data"]).arg(self.data.path());
        if let Some(url) = &self.database_url {
            command.env(DATABASE_URL, url);
        }
        Spawned::start(command).map_err(|problem| format!("{}: {problem}", self.program.display()))
    }
}

impl Spawned {
    /// Starts a program, and returns its first line.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn start(mut command: Command) -> Result<(Self, String), String> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("did not start: {error}"))?;
        let stdout = child.stdout.take();
        let spawned = Self { child };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let Some(stdout) = stdout else { return };
            let mut reader = BufReader::new(stdout);
            let mut line = String::new();
            let _ = reader.by_ref().take(FIRST_LINE_BYTES_MAX).read_line(&mut line);
            let _ = sender.send(line);
            // Further output is read, so that it does not block the program.
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
        });
        match receiver.recv_timeout(START_DEADLINE) {
            Ok(line) if !line.trim().is_empty() => Ok((spawned, line)),
            Ok(_) => Err("ended before it printed its address".to_owned()),
            Err(_) => Err(format!("did not print its address within {START_DEADLINE:?}")),
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it by SIGTERM, and returns its exit code and the seconds of the stop.
    ///
    /// # Errors
    /// A sentence, if it did not stop in time or was killed by a signal.
    pub(crate) fn stop(mut self, clock: Clock) -> Result<(i32, f64), String> {
        let started = clock.now();
        // The standard library has no safe call to send a signal. Every shell has `kill` built in.
        let killed = Command::new("sh").arg("-c").arg(format!("kill -TERM {}", self.pid())).status();
        if !killed.is_ok_and(|status| status.success()) {
            return Err("failed to send SIGTERM to the server".to_owned());
        }
        while clock.now() - started < STOP_DEADLINE_NS {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    let took = crate::clock::seconds(clock.now() - started);
                    return status
                        .code()
                        .map(|code| (code, took))
                        .ok_or_else(|| format!("the server died: {status}"));
                }
                Ok(None) => std::thread::sleep(STOP_TICK),
                Err(error) => return Err(format!("the server cannot be waited for: {error}")),
            }
        }
        Err("the server did not stop within 15 s of SIGTERM and was killed".to_owned())
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        // Both calls fail if the process has already stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// A script that stands in for the server. Only one exists at a time: a process that forks while another
    /// script is being written would inherit the open file, and an open file cannot be executed.
    struct Script {
        path: PathBuf,
        _one: MutexGuard<'static, ()>,
    }

    impl Script {
        fn new(name: &str, body: &str) -> Self {
            static ONE: Mutex<()> = Mutex::new(());
            let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
            let path = std::env::temp_dir().join(format!("loadgen-{}-{name}", std::process::id()));
            std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
            Self { path, _one }
        }
    }

    impl Drop for Script {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    #[test]
    fn a_server_is_started_read_measured_and_stopped() {
        let script = Script::new(
            "good",
            "trap 'exit 3' TERM; echo \"$* $STAGEDOOR_DATABASE_URL\"; while :; do sleep 0.01; done",
        );
        let own = Own::new(&script.path, Some("postgres://x")).unwrap();
        let (spawned, line) = own.start().unwrap();
        let data = own.data.path().display();
        assert_eq!(
            line,
            format!(
                "dev --no-sandbox --json --no-quota --listen 127.0.0.1:0 --log warn --data {data} postgres://x\n"
            )
        );
        let probe = Probe(Some(spawned.pid()));
        assert!(probe.memory().is_some() && probe.cpu().is_some());
        let (code, seconds) = spawned.stop(Clock::start()).unwrap();
        assert_eq!(code, 3);
        assert!(seconds < 10.0);
        assert!(probe.memory().is_none());
        let data = own.data.path().to_owned();
        assert!(data.is_dir());
        assert_eq!(data.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(own);
        assert!(!data.exists());
    }

    #[test]
    fn a_server_without_output_fails() {
        let script = Script::new("mute", "exit 0");
        let start = |program: &Path| Own::new(program, None).unwrap().start().err().unwrap();
        let problem = start(&script.path);
        assert!(problem.contains("before it printed"), "{problem}");
        assert!(start(Path::new("/nowhere/stagedoor")).contains("/nowhere/stagedoor: did not start"));
    }
}

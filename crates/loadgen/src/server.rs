//! The server under load: one that runs already, or one of our own.

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

/// How long the server may take to say where it is.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// How long it may take to stop: the 10 s that it promises, and some.
const STOP_DEADLINE_NS: u64 = 15 * SECOND_NS;
/// How often it is looked at meanwhile.
const STOP_TICK: Duration = Duration::from_millis(20);
/// Bytes of the first line.
const FIRST_LINE_BYTES_MAX: u64 = 1024 * 1024;
/// The variable that the server takes its database from; unlike an argument it shows in no list of processes.
const DATABASE_URL: &str = "STAGEDOOR_DATABASE_URL";

/// What the names of the threads that deliver begin with.
const DELIVERING: &str = "shard-";

/// A process that is measured, if its id is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe(pub(crate) Option<u32>);

impl Probe {
    /// Its memory.
    pub(crate) fn memory(self) -> Option<Memory> {
        self.0.and_then(Memory::of)
    }

    /// Seconds of CPU that it has used.
    pub(crate) fn cpu(self) -> Option<f64> {
        self.0.and_then(cpu_seconds)
    }

    /// Of that, what was used by the threads that write events to sessions; `None` for a server whose threads
    /// tell nothing by their names.
    pub(crate) fn cpu_delivering(self) -> Option<f64> {
        self.0.and_then(|pid| cpu_seconds_of_threads(pid, DELIVERING))
    }
}

/// The server under load.
#[derive(Debug)]
pub(crate) enum Server {
    /// Somebody else's. Its process is measured if its id is known.
    Given(Option<u32>),
    /// One of our own; between two lives there is no process.
    Own(Own, Option<Spawned>),
}

impl Server {
    /// What is measured.
    pub(crate) fn probe(&self) -> Probe {
        match self {
            Self::Given(pid) => Probe(*pid),
            Self::Own(_, spawned) => Probe(spawned.as_ref().map(Spawned::pid)),
        }
    }

    /// Starts a server of our own anew in the same world, so that nothing of the set-up lies in its memory:
    /// the hashing of passwords alone leaves more free there than thousands of sessions fill. Gives its new
    /// first line.
    ///
    /// # Errors
    /// A sentence, also when the first life did not end well.
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

    /// Stops a server of our own; gives its exit code and the seconds that it took.
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

/// How to start a server for the load. Its world lies in a folder that goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Own {
    program: PathBuf,
    database_url: Option<String>,
    data: TempDir,
}

/// A server that was started for the load. It is killed if it is dropped before it was stopped.
#[derive(Debug)]
pub(crate) struct Spawned {
    child: Child,
}

impl Own {
    /// Makes the folder.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn new(program: &Path, database_url: Option<&str>) -> Result<Self, String> {
        // The server's tokens lie there.
        let only_mine = Permissions::from_mode(0o700);
        let data = tempfile::Builder::new().prefix("stagedoor-load-").permissions(only_mine).tempdir();
        let data = data.map_err(|error| format!("no folder for the server's data: {error}"))?;
        Ok(Self { program: program.to_owned(), database_url: database_url.map(str::to_owned), data })
    }

    /// Starts `stagedoor dev`, and gives its first line. Started once more, it goes on with its world.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn start(&self) -> Result<(Spawned, String), String> {
        let mut command = Command::new(&self.program);
        command.args(["dev", "--json", "--no-quota", "--listen", "127.0.0.1:0", "--log", "warn", "--data"]);
        command.arg(self.data.path());
        if let Some(url) = &self.database_url {
            command.env(DATABASE_URL, url);
        }
        Spawned::start(command).map_err(|problem| format!("{}: {problem}", self.program.display()))
    }
}

impl Spawned {
    /// Starts a program and gives its first line.
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
            // Whatever else it prints must not block it.
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
        });
        match receiver.recv_timeout(START_DEADLINE) {
            Ok(line) if !line.trim().is_empty() => Ok((spawned, line)),
            Ok(_) => Err("ended before it said where it is".to_owned()),
            Err(_) => Err(format!("did not say where it is within {START_DEADLINE:?}")),
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it by SIGTERM; gives its exit code and the seconds that it took.
    ///
    /// # Errors
    /// A sentence, when it did not stop in time or died of a signal.
    pub(crate) fn stop(mut self, clock: Clock) -> Result<(i32, f64), String> {
        let begun = clock.now();
        // There is no safe call for it in the standard library; every shell has `kill` built in.
        let told = Command::new("sh").arg("-c").arg(format!("kill -TERM {}", self.pid())).status();
        if !told.is_ok_and(|status| status.success()) {
            return Err("the server could not be told to stop".to_owned());
        }
        while clock.now() - begun < STOP_DEADLINE_NS {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    let took = crate::clock::seconds(clock.now() - begun);
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
        // Both fail, and should, when it has stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// A program that stands in for the server. There is one at a time: a process forked while another is
    /// being written would hold it open, and what is open for writing cannot be run.
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
            format!("dev --json --no-quota --listen 127.0.0.1:0 --log warn --data {data} postgres://x\n")
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
    fn a_server_that_says_nothing_is_no_server() {
        let script = Script::new("mute", "exit 0");
        let start = |program: &Path| Own::new(program, None).unwrap().start().err().unwrap();
        let problem = start(&script.path);
        assert!(problem.contains("before it said"), "{problem}");
        assert!(start(Path::new("/nowhere/stagedoor")).contains("/nowhere/stagedoor: did not start"));
    }
}

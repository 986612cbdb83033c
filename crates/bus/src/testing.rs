//! A separate NATS server for each test (feature `testing`).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use reserved_port::ReservedPort;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// The environment variable with the path of `nats-server`, to test another version than the installed one.
const PROGRAM: &str = "STAGEDOOR_TEST_NATS_SERVER";
/// Deadline of the start of a server.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// A NATS server on loopback. Dropping it kills the server.
#[derive(Debug)]
pub struct NatsServer {
    port: ReservedPort,
    monitor: ReservedPort,
    /// Additional lines of its configuration.
    configuration: String,
    folder: TempDir,
    process: Option<Child>,
}

impl NatsServer {
    /// A server without authentication.
    ///
    /// # Panics
    /// When `nats-server` is not installed, or does not start.
    pub async fn start() -> Self {
        Self::configured("").await
    }

    /// A server with more lines in its configuration.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub async fn configured(configuration: &str) -> Self {
        let mut server = Self {
            port: ReservedPort::take(),
            monitor: ReservedPort::take(),
            configuration: configuration.to_owned(),
            folder: TempDir::with_prefix("nats").expect("a temporary folder"),
            process: None,
        };
        server.run().await;
        server
    }

    /// The server's URL, without a login.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Kills the server.
    pub async fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // The server may have ended by itself.
            let _ = process.kill().await;
        }
    }

    /// Puts the server into lame duck mode, as an operator does before an upgrade.
    ///
    /// # Panics
    /// When the server does not run.
    pub async fn retire(&self) {
        self.signal("-USR2").await;
    }

    /// Gives the running server other lines of configuration. Its clients stay connected.
    ///
    /// # Panics
    /// When the server does not run.
    pub async fn reconfigure(&mut self, configuration: &str) {
        configuration.clone_into(&mut self.configuration);
        self.write_configuration();
        self.signal("-HUP").await;
    }

    async fn signal(&self, signal: &str) {
        let id = self.process.as_ref().and_then(Child::id).expect("it runs").to_string();
        assert!(Command::new("kill").args([signal, &id]).status().await.expect("kill is there").success());
    }

    fn write_configuration(&self) -> PathBuf {
        let file = self.folder.path().join("nats.conf");
        let (address, monitor) = (self.address(), self.monitor.address());
        let lines = format!("listen: \"{address}\"\nhttp: \"{monitor}\"\n{}\n", self.configuration);
        std::fs::write(&file, lines).expect("a configuration is written");
        file
    }

    /// Number of connected clients.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn clients(&self) -> u64 {
        self.ask("/varz").await["connections"].as_u64().expect("a number")
    }

    /// Starts the server again at the same address.
    ///
    /// # Panics
    /// When the server does not come up.
    pub async fn restart(&mut self) {
        self.run().await;
    }

    async fn run(&mut self) {
        let (file, log) = (self.write_configuration(), self.folder.path().join("nats.log"));
        let (address, monitor) = (self.address(), self.monitor.address());
        let mut process = spawn(&file, &log);
        let answers = async {
            while TcpStream::connect(address).await.is_err() || TcpStream::connect(monitor).await.is_err() {
                if process.try_wait().expect("a process that can be waited for").is_some() {
                    return false;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            true
        };
        let up = tokio::time::timeout(STARTS_WITHIN, answers).await.unwrap_or(false);
        assert!(up, "nats-server does not start: {}", std::fs::read_to_string(log).unwrap_or_default());
        self.process = Some(process);
    }

    /// The subjects with a subscriber, sorted.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn subjects(&self) -> Vec<String> {
        let listed = self.ask("/connz?subs=1&limit=1000").await;
        let connections = listed["connections"].as_array().cloned().unwrap_or_default();
        let subjects = connections.iter().filter_map(|one| one["subscriptions_list"].as_array());
        let mut subjects: Vec<_> =
            subjects.flatten().filter_map(|subject| Some(subject.as_str()?.to_owned())).collect();
        subjects.sort();
        subjects
    }

    /// Number of messages that the server has delivered.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn delivered(&self) -> u64 {
        self.ask("/varz").await["out_msgs"].as_u64().expect("a number")
    }

    /// The server's version, such as `2.9.10`.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn version(&self) -> String {
        self.ask("/varz").await["version"].as_str().expect("a version").to_owned()
    }

    async fn ask(&self, path: &str) -> serde_json::Value {
        let mut stream = TcpStream::connect(self.monitor.address()).await.expect("the monitor answers");
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it takes a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("it answers");
        let body = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a body") + 4;
        serde_json::from_slice(&answer[body..]).expect("JSON")
    }
}

/// The program to start: the one that `STAGEDOOR_TEST_NATS_SERVER` names, or the installed one.
///
/// # Panics
/// When there is no program.
pub fn program() -> PathBuf {
    if let Some(named) = std::env::var_os(PROGRAM) {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian installs it outside of some PATHs.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/bin".into()]);
    let mut programs = folders.map(|folder| folder.join("nats-server"));
    programs.find(|program| program.is_file()).expect("nats-server is not installed: ./test brings its own")
}

fn spawn(file: &Path, log: &Path) -> Child {
    let mut command = Command::new(program());
    command.arg("--config").arg(file).arg("--log").arg(log);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.kill_on_drop(true).spawn().expect("nats-server starts")
}

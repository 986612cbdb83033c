//! The program in a separate process.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::{Api, Application, Person, Request, Tokens, patiently};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

/// A file of a process in `/proc`.
fn known(process: u32, file: &str) -> PathBuf {
    Path::new("/proc").join(process.to_string()).join(file)
}

/// Number of open descriptors of a process.
pub fn descriptors_of(process: u32) -> usize {
    std::fs::read_dir(known(process, "fd")).expect("its descriptors").count()
}

/// Resident memory of a process, in bytes.
pub fn memory_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(known(process, "status")).expect("its status");
    let (_, rest) = status.split_once("VmRSS:").expect("its memory");
    let kib: u64 = rest.split_whitespace().next().expect("a number").parse().expect("a number");
    kib * 1024
}

/// The output and status of a command that has ended.
pub struct CommandOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// `stagedoor` with no environment but that of the test. Its state files are in a folder of the tests.
pub fn stagedoor(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stagedoor"));
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STAGEDOOR_") {
            command.env_remove(name);
        }
    }
    command.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// The same with its state files in `runtime`, so that commands find the sandboxes of one test only.
pub fn stagedoor_in(runtime: &Path, arguments: &[&str]) -> Command {
    let mut command = stagedoor(arguments);
    command.env("XDG_RUNTIME_DIR", runtime);
    command
}

/// Runs a command to its end.
pub async fn run(mut command: Command) -> CommandOutput {
    let output = patiently("a command ends", command.output()).await.expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("what is output is UTF-8");
    CommandOutput { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The address of a `stagedoor serve` with this log, when it listens.
pub async fn listening_address(log: &Path) -> SocketAddr {
    patiently("it says where it serves", async {
        loop {
            let output = std::fs::read_to_string(log).expect("the log");
            if let Some((_, rest)) = output.split_once("stagedoor serves address=")
                && let Some((address, _)) = rest.split_once('\n')
            {
                return address.trim().parse().expect("an address");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

/// A running `stagedoor dev --json`, its first line read.
pub struct Sandbox {
    child: Child,
    stdout: BufReader<ChildStdout>,
    log: PathBuf,
    /// The first line of stdout.
    pub first_line: String,
    /// The first line as JSON.
    pub world: Value,
    /// A client of the sandbox.
    pub api: Api,
}

impl Sandbox {
    /// Starts `stagedoor dev --json` on a free port; the log goes to a file in `folder`.
    pub async fn start(folder: &Path, arguments: &[&str]) -> Self {
        let log = folder.join("log");
        let mut command = stagedoor(&["dev", "--json", "--listen", "127.0.0.1:0"]);
        command.args(arguments).stdout(Stdio::piped());
        command.stderr(File::create(&log).expect("a file for the log"));
        Self::of(command, log).await
    }

    /// Starts a command that prints a world.
    pub async fn of(command: Command, log: PathBuf) -> Self {
        Self::reached_at(None, command, log).await
    }

    /// The same for a sandbox that has another address than its base URL.
    pub async fn reached_at(url: Option<&str>, mut command: Command, log: PathBuf) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut first_line = String::new();
        patiently("the first line", stdout.read_line(&mut first_line)).await.expect("a line");
        let world: Value = serde_json::from_str(&first_line).unwrap_or_else(|_| {
            panic!("no JSON: {first_line:?}; {}", std::fs::read_to_string(&log).unwrap_or_default())
        });
        let text = |name: &str| world[name].as_str().expect("a text").to_owned();
        let api = Api::new(&url.map_or_else(|| text("baseUrl"), str::to_owned), &text("operatorKey"));
        Self { child, stdout, log, first_line, world, api }
    }

    /// A seeded application.
    pub fn application(&self, name: &str) -> Application {
        let found =
            self.list("applications").iter().find(|entry| entry["name"] == name).expect("an application");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Application {
            client_id: text(&found["clientId"]),
            client_secret: text(&found["clientSecret"]),
            redirect_uri: text(&found["redirectUris"][0]),
        }
    }

    /// A seeded person, and the person's tokens of an application.
    pub fn user(&self, index: usize, client_id: &str) -> (Person, Tokens) {
        let user = &self.list("users")[index];
        let text = |name: &str| user[name].as_str().expect("a text").to_owned();
        let person = Person {
            channel_id: text("channelId"),
            name: text("channelName"),
            login: text("login"),
            password: text("password"),
        };
        (person, Tokens::of(&user["tokens"][client_id]))
    }

    /// A list of the first line.
    pub fn list(&self, name: &str) -> &Vec<Value> {
        self.world[name].as_array().expect("a list")
    }

    /// The file of the log.
    pub fn log_path(&self) -> PathBuf {
        self.log.clone()
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id().expect("the program runs")
    }

    /// Number of its open descriptors.
    pub fn descriptors(&self) -> usize {
        descriptors_of(self.id())
    }

    /// Its resident memory, in bytes.
    pub fn memory(&self) -> u64 {
        memory_of(self.id())
    }

    /// Its CPU time.
    pub fn cpu(&self) -> Duration {
        const TICK: Duration = Duration::from_millis(10);
        let stat = std::fs::read_to_string(known(self.id(), "stat")).expect("its times");
        let (_, rest) = stat.rsplit_once(')').expect("its name is in brackets");
        let ticks =
            rest.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u32>().expect("a number"));
        TICK * ticks.sum::<u32>()
    }

    /// Changes the limit of its descriptors.
    pub async fn limit_descriptors(&self, limit: usize) {
        let id = self.id().to_string();
        let limit = format!("--nofile={limit}:");
        let status = Command::new("prlimit").args(["--pid", &id, &limit]).status().await;
        assert!(status.expect("prlimit is there").success());
    }

    /// The path and query of a new address that opens the console once.
    pub async fn console_link(&self) -> String {
        let made = self.api.operator(Request::post("/sandbox/v1/console-link")).await.content();
        let url = made["url"].as_str().expect("an address");
        url[url.find("/sandbox/").expect("a path")..].to_owned()
    }

    /// The cookie of the console, for a browser that has used such an address.
    pub async fn console_cookie(&self) -> String {
        let opened = self.api.send(Request::get(self.console_link().await)).await;
        let cookie = opened.header("set-cookie").and_then(|cookie| cookie.split(';').next());
        cookie.expect("a cookie").to_owned()
    }

    /// Sends a signal.
    pub async fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &id]).status().await;
        assert!(status.expect("kill is there").success());
    }

    /// Waits for its end. Returns its status and the rest of its stdout.
    pub async fn end(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        patiently("the end of stdout", self.stdout.read_to_string(&mut rest)).await.expect("text");
        (patiently("the program ends", self.child.wait()).await.expect("a status"), rest)
    }
}

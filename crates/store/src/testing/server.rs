//! A PostgreSQL server for one test, which may stop, kill and configure it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use reserved_port::ReservedPort;
use tempfile::TempDir;
use tokio::process::{Child, Command};

const PASSWORD: &str = "of a test";
/// The environment variable with the folder of PostgreSQL's programs, to test another version than the
/// installed one.
const PROGRAMS: &str = "STAGEDOOR_TEST_POSTGRES_BIN";
/// The user that runs PostgreSQL if root runs the tests, because PostgreSQL refuses root.
const UNPRIVILEGED: &str = "nobody";

/// A separate PostgreSQL server. It ends when it is dropped.
pub struct PostgresServer {
    folder: TempDir,
    port: ReservedPort,
    process: Option<Child>,
}

impl PostgresServer {
    /// An empty server that does not run yet.
    ///
    /// # Panics
    /// When PostgreSQL is not installed.
    pub async fn create() -> Self {
        let folder = TempDir::with_prefix("postgres").expect("a folder");
        std::fs::write(folder.path().join("password"), PASSWORD).expect("a file");
        let server = Self { folder, port: ReservedPort::take(), process: None };
        server.give_files().await;
        let mut initdb = server.program("initdb");
        initdb.args(["--username", "postgres", "--auth", "scram-sha-256", "--encoding", "UTF8"]);
        initdb
            .args(["--locale", "C.UTF-8", "--no-sync", "--pwfile"])
            .arg(server.folder.path().join("password"));
        assert!(initdb.status().await.expect("initdb runs").success());
        server
    }

    /// A folder for its files, which it can read after [`give_files`](Self::give_files).
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the files of its folder to the user that runs it.
    ///
    /// # Panics
    /// When they cannot be given.
    pub async fn give_files(&self) {
        if is_root() {
            let owner = ["--recursive", UNPRIVILEGED, self.folder.path().to_str().expect("a path")];
            assert!(Command::new("chown").args(owner).status().await.expect("chown").success());
        }
    }

    /// Starts it with these settings, as in `ssl=on`.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(&mut self, settings: &[&str]) {
        let mut command = self.program("postgres");
        let port = format!("port={}", self.port());
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", &port, "-c", "unix_socket_directories="]);
        command.args(["-c", "fsync=off"]).args(settings.iter().flat_map(|setting| ["-c", setting]));
        self.process = Some(command.kill_on_drop(true).spawn().expect("it starts"));
    }

    /// Stops it, in one of the modes of `pg_ctl`. `immediate` kills every process, as a crash does.
    ///
    /// # Panics
    /// When it cannot be stopped.
    pub async fn stop(&mut self, mode: &str) {
        let mut stop = self.program("pg_ctl");
        assert!(stop.args(["stop", "--mode", mode]).status().await.expect("pg_ctl").success());
        if let Some(mut process) = self.process.take() {
            process.wait().await.expect("it ends");
        }
    }

    /// Its port, on TCP and as the number of its Unix socket.
    pub fn port(&self) -> u16 {
        self.port.address().port()
    }

    /// The login of its superuser, as in a URL.
    pub fn login(&self) -> String {
        format!("postgres:{}", PASSWORD.replace(' ', "%20"))
    }

    /// Its URL, without TLS.
    pub fn url(&self) -> String {
        format!("postgres://{}@127.0.0.1:{}/postgres?sslmode=disable", self.login(), self.port())
    }

    fn program(&self, name: &str) -> Command {
        let path = programs().join(name);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", UNPRIVILEGED, "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.arg("-D").arg(self.folder.path().join("data")).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// The folder of PostgreSQL's programs: that of [`PROGRAMS`], or Debian's newest.
fn programs() -> PathBuf {
    if let Some(named) = std::env::var_os(PROGRAMS) {
        return named.into();
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let bins = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let mut bins: Vec<_> = bins.filter(|bin| Path::new(&bin.join("postgres")).exists()).collect();
    bins.sort();
    bins.pop().expect("a server")
}

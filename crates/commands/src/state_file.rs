//! The state files of running sandboxes. `stagedoor dev` writes one into the runtime folder of its user, so
//! that commands find the sandbox and its key.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;

/// The name of a sandbox without `--name`.
pub const DEFAULT_NAME: &str = "default";
/// Maximum length of the name of a sandbox, in characters.
pub const NAME_CHARS_MAX: usize = 32;

/// How long the address of another sandbox may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// A running sandbox.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningSandbox {
    /// Its name.
    pub name: String,
    /// The id of its process.
    pub pid: u32,
    /// The base URL of REST, sockets and the sandbox API.
    pub base_url: String,
    /// The base URL of the platform API.
    pub platform_url: String,
    /// The key of the platform API and the sandbox API.
    pub operator_key: String,
}

impl std::fmt::Debug for RunningSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, pid, base_url, .. } = self;
        write!(f, "RunningSandbox({name}, process {pid}, {base_url})")
    }
}

impl RunningSandbox {
    /// Whether something listens at its address. A process of another program may have its id.
    async fn answers(&self) -> bool {
        let Some((_, authority)) = self.base_url.split_once("://") else { return true };
        let connect = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(authority));
        // Only a refusal shows that nothing listens: the address may lead to a proxy that is away.
        !matches!(connect.await, Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Whether its process still runs.
    fn is_alive(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
    }
}

/// The name of a new sandbox. A given name must be free. Without one it is `default`, or `default-2` and so
/// on beside other sandboxes. The name of a sandbox that has ended is free.
///
/// # Errors
/// A sentence: a sandbox of the given name runs.
pub async fn free_name(folder: &Path, given: Option<&str>) -> Result<String, String> {
    let mut taken = BTreeMap::new();
    for sandbox in running(folder) {
        if sandbox.answers().await {
            taken.insert(sandbox.name.clone(), sandbox);
        }
    }
    match given {
        Some(name) => match taken.get(name) {
            None => Ok(name.to_owned()),
            Some(RunningSandbox { pid, base_url, .. }) => Err(format!(
                "a sandbox named {name} runs already at {base_url}: give this one another --name, or end the \
                 other one with `kill {pid}`"
            )),
        },
        None => {
            let others = (2..).map(|number| format!("{DEFAULT_NAME}-{number}"));
            let mut names = std::iter::once(DEFAULT_NAME.to_owned()).chain(others);
            Ok(names.find(|name| !taken.contains_key(name)).unwrap_or_default())
        }
    }
}

/// Whether a text can name a sandbox: 1 to 32 ASCII letters, digits, `-` and `_`.
pub fn is_name(text: &str) -> bool {
    let fits = (1..=NAME_CHARS_MAX).contains(&text.len());
    fits && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The folder of the state files: `stagedoor` in the runtime folder of the user, or a folder of the user
/// among the temporary files.
pub fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(runtime) => Path::new(&runtime).join("stagedoor"),
        None => std::env::temp_dir().join(format!("stagedoor-{}", rustix::process::getuid().as_raw())),
    }
}

/// Writes the state file of a sandbox, readable by its user only. The returned guard removes the file.
///
/// # Errors
/// The folder belongs to another user, or cannot be written.
pub fn write(folder: &Path, sandbox: &RunningSandbox) -> io::Result<StateFile> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    if fs::metadata(folder)?.uid() != rustix::process::getuid().as_raw() {
        return Err(io::Error::other(format!("{} belongs to another user", folder.display())));
    }
    let path = folder.join(format!("{}.json", sandbox.name));
    let temporary = folder.join(format!("{}.json.{}", sandbox.name, sandbox.pid));
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(&serde_json::to_vec_pretty(sandbox)?)?;
    fs::rename(&temporary, &path)?;
    Ok(StateFile { path, pid: sandbox.pid })
}

/// The state file of a running sandbox. It is removed when this value is dropped, unless another process has
/// replaced it.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    pid: u32,
}

impl Drop for StateFile {
    fn drop(&mut self) {
        if read(&self.path).is_some_and(|sandbox| sandbox.pid == self.pid) {
            // The next command ignores the file of a process that has ended.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The running sandboxes of this user, sorted by name.
pub fn running(folder: &Path) -> Vec<RunningSandbox> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let files = entries.filter_map(Result::ok).map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut found: Vec<_> = files.filter_map(|path| read(&path)).filter(RunningSandbox::is_alive).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn read(path: &Path) -> Option<RunningSandbox> {
    // Only a file of this user is trusted with a key.
    let owner = fs::metadata(path).ok()?.uid();
    let bytes = fs::read(path).ok().filter(|_| owner == rustix::process::getuid().as_raw())?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn sandbox(name: &str, pid: u32) -> RunningSandbox {
        RunningSandbox {
            name: name.to_owned(),
            pid,
            base_url: "http://127.0.0.1:8080".to_owned(),
            platform_url: "http://127.0.0.1:8080".to_owned(),
            operator_key: "a key".to_owned(),
        }
    }

    #[test]
    fn a_running_sandbox_is_found_until_its_file_is_dropped() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("stagedoor");
        let file = write(&folder, &sandbox("one", std::process::id())).expect("a state file");
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("one.json"))), (0o700, 0o600));
        let ended = write(&folder, &sandbox("ended", 0x7fff_fff0)).expect("a state file");
        let names = || running(&folder).into_iter().map(|sandbox| sandbox.name).collect::<Vec<_>>();
        assert_eq!(names(), ["one"]);
        drop((file, ended));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
    }

    #[test]
    fn the_file_of_a_later_sandbox_of_the_same_name_is_kept() {
        let root = tempfile::tempdir().expect("a folder");
        let first = write(root.path(), &sandbox("one", 1)).expect("a state file");
        let _second = write(root.path(), &sandbox("one", std::process::id())).expect("a state file");
        drop(first);
        assert_eq!(running(root.path()).len(), 1);
    }

    #[tokio::test]
    async fn a_name_is_taken_while_its_sandbox_runs_and_listens() {
        let root = tempfile::tempdir().expect("a folder");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        let base_url = format!("http://{}", listener.local_addr().expect("bound"));
        let running = RunningSandbox { base_url, ..sandbox("default", std::process::id()) };
        let _file = write(root.path(), &running).expect("a state file");
        let ended = write(root.path(), &sandbox("ended", 0x7fff_fff0)).expect("a state file");
        let name = async |given| free_name(root.path(), given).await;
        assert_eq!(name(None).await.as_deref(), Ok("default-2"));
        assert_eq!(name(Some("ended")).await.as_deref(), Ok("ended"));
        let refused = name(Some("default")).await.expect_err("it runs");
        assert!(refused.contains(&running.base_url) && refused.contains("--name"), "{refused}");
        drop((listener, ended));
        assert_eq!(name(Some("default")).await.as_deref(), Ok("default"));
    }

    #[test]
    fn a_debug_text_has_no_key() {
        assert!(!format!("{:?}", sandbox("one", 1)).contains("a key"));
    }
}

//! The state files of running sandboxes. `stagedoor dev` writes one into the runtime folder of its user, so
//! that commands find the sandbox and its key.

use std::fs;
use std::io::{self, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The name of a sandbox without `--name`.
pub const DEFAULT_NAME: &str = "default";
/// Maximum length of the name of a sandbox, in characters.
pub const NAME_CHARS_MAX: usize = 32;

/// Maximum number of sandboxes without a `--name` at once.
const DEFAULT_NAMES_MAX: u32 = 100;

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
    /// Whether its process still runs.
    fn is_alive(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
    }
}

/// Claims the name of a new sandbox, in one step: of two sandboxes that start at once only one gets it. A
/// given name must be free. Without one it is `default`, or `default-2` and so on beside other sandboxes.
/// The name of a sandbox that has ended is free.
///
/// # Errors
/// A sandbox has the given name, or the folder cannot be used.
pub fn claim(folder: &Path, given: Option<&str>) -> Result<Claim, NotClaimed> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    if fs::metadata(folder)?.uid() != rustix::process::getuid().as_raw() {
        return Err(io::Error::other(format!("{} belongs to another user", folder.display())).into());
    }
    if let Some(name) = given {
        return claim_one(folder, name)?.ok_or_else(|| taken(folder, name));
    }
    let others = (2..=DEFAULT_NAMES_MAX).map(|number| format!("{DEFAULT_NAME}-{number}"));
    for name in std::iter::once(DEFAULT_NAME.to_owned()).chain(others) {
        if let Some(claim) = claim_one(folder, &name)? {
            return Ok(claim);
        }
    }
    Err(taken(folder, DEFAULT_NAME))
}

/// Why a name was not claimed.
#[derive(Debug)]
pub enum NotClaimed {
    /// A sandbox has it: a sentence with the remedy.
    Taken(String),
    /// The folder of the state files cannot be used.
    Folder(io::Error),
}

impl From<io::Error> for NotClaimed {
    fn from(error: io::Error) -> Self {
        Self::Folder(error)
    }
}

fn taken(folder: &Path, name: &str) -> NotClaimed {
    let holder = running(folder).into_iter().find(|sandbox| sandbox.name == name);
    let (place, end) = match holder {
        Some(RunningSandbox { pid, base_url, .. }) => {
            (format!("runs already at {base_url}"), format!(", or end the other one with `kill {pid}`"))
        }
        None => ("starts already".to_owned(), String::new()),
    };
    NotClaimed::Taken(format!("a sandbox named {name} {place}: give this one another --name{end}"))
}

/// The lock on the state file of a name; `None` if another process has it. The lock ends with its process, so
/// the file of a killed one is free.
fn claim_one(folder: &Path, name: &str) -> io::Result<Option<Claim>> {
    let path = folder.join(format!("{name}.json"));
    loop {
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        // Its former owner may have removed the file meanwhile.
        let is_there = fs::metadata(&path).is_ok_and(|there| {
            file.metadata().is_ok_and(|locked| (there.dev(), there.ino()) == (locked.dev(), locked.ino()))
        });
        if is_there {
            file.set_len(0)?;
            return Ok(Some(Claim { name: name.to_owned(), path, file }));
        }
    }
}

/// The claimed name of a sandbox: its state file, locked, and empty until the sandbox runs. Dropping it
/// removes the file.
#[derive(Debug)]
pub struct Claim {
    name: String,
    path: PathBuf,
    file: fs::File,
}

impl Claim {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes the state file, readable by its user only: commands find the sandbox from now on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn announce(&mut self, sandbox: &RunningSandbox) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&serde_json::to_vec_pretty(sandbox)?)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // The next command ignores the file of a process that has ended.
        let _ = fs::remove_file(&self.path);
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

    fn announced(folder: &Path, name: &str, pid: u32) -> Claim {
        let mut claim = claim(folder, Some(name)).expect("the name is free");
        claim.announce(&sandbox(name, pid)).expect("a state file");
        claim
    }

    #[test]
    fn a_running_sandbox_is_found_until_its_claim_is_dropped() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("stagedoor");
        let mut claimed = claim(&folder, Some("one")).expect("the name is free");
        let names = || running(&folder).into_iter().map(|sandbox| sandbox.name).collect::<Vec<_>>();
        assert!(names().is_empty(), "it does not run yet");
        claimed.announce(&sandbox("one", std::process::id())).expect("a state file");
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("one.json"))), (0o700, 0o600));
        let ended = announced(&folder, "ended", 0x7fff_fff0);
        assert_eq!(names(), ["one"]);
        drop((claimed, ended));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
    }

    #[test]
    fn a_name_is_taken_while_its_sandbox_starts_and_runs() {
        let root = tempfile::tempdir().expect("a folder");
        let refused = |name| match claim(root.path(), Some(name)) {
            Err(NotClaimed::Taken(why)) => why,
            other => panic!("{other:?}"),
        };
        let mut first = claim(root.path(), None).expect("the name is free");
        assert_eq!(first.name(), "default");
        assert!(refused("default").contains("starts already"));
        first.announce(&sandbox("default", std::process::id())).expect("a state file");
        let why = refused("default");
        assert!(why.contains("http://127.0.0.1:8080") && why.contains("--name"), "{why}");
        assert_eq!(claim(root.path(), None).expect("a free name").name(), "default-2");
        drop(first);
        // A killed process leaves its file, but not its lock.
        fs::write(root.path().join("default.json"), "{}").expect("written");
        assert_eq!(claim(root.path(), None).expect("the name is free").name(), "default");
    }

    #[test]
    fn of_many_that_start_at_once_each_gets_a_name_of_its_own() {
        let root = tempfile::tempdir().expect("a folder");
        let claims: Vec<Claim> = std::thread::scope(|scope| {
            let start = || claim(root.path(), None).expect("a free name");
            let started: Vec<_> = (0..16).map(|_| scope.spawn(start)).collect();
            started.into_iter().map(|one| one.join().expect("no panic")).collect()
        });
        let names: std::collections::BTreeSet<&str> = claims.iter().map(Claim::name).collect();
        assert_eq!(names.len(), claims.len());
    }

    #[test]
    fn a_debug_text_has_no_key() {
        assert!(!format!("{:?}", sandbox("one", 1)).contains("a key"));
    }
}

//! The secrets that a sandbox prints. They are stored in a file, because the store has only hashes. A kept
//! world keeps its secrets, so the configuration of a bot stays valid. `serve` has no such file.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use domain::secret::{ClientSecret, OperatorKey};
use sandbox::WorldFile;
use serde::{Deserialize, Serialize};
use service::{Entropy, Purpose, SeedState};

/// The secrets of a world.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notes {
    /// The key of the platform API.
    pub operator_key: String,
    /// The secret of each application of the world file.
    pub client_secrets: BTreeMap<String, String>,
    /// The world file; `None` for the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<WorldFile>,
    /// How many times the world was started before.
    #[serde(default)]
    pub starts: u64,
}

impl std::fmt::Debug for Notes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notes")
    }
}

impl Notes {
    /// The notes of a new world: secrets that its file does not fix are drawn.
    pub fn new(entropy: &Entropy, file: &WorldFile) -> Self {
        let drawn = || ClientSecret::generate(entropy.bytes(Purpose::ClientSecret)).expose().to_owned();
        let secrets = file.applications.iter().map(|application| {
            (application.client_id.clone(), application.client_secret.clone().unwrap_or_else(drawn))
        });
        Self {
            operator_key: OperatorKey::generate(entropy.bytes(Purpose::OperatorKey)).expose().to_owned(),
            client_secrets: secrets.collect(),
            world: None,
            starts: 0,
        }
    }
}

/// The randomness of a sandbox: with a seed that of its start, else the system's.
pub(super) fn entropy(seed: Option<u64>, start: u64) -> Entropy {
    match seed {
        Some(seed) => Entropy::resumed(&SeedState { seed, start, ..SeedState::default() }),
        None => Entropy::system(),
    }
}

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("sandbox.json")
}

/// Whether `folder` contains the notes of a sandbox.
pub(super) fn are_in(folder: &Path) -> bool {
    path(folder).exists()
}

/// The notes of the world in `folder`, and the randomness of this start. A new world gets new notes from
/// `file`. A kept world has its own file, so another `file` is refused.
pub(super) fn open(
    folder: &Path,
    seed: Option<u64>,
    file: Option<&WorldFile>,
) -> Result<(Notes, Entropy), String> {
    let path = path(folder);
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let (notes, entropy) = match std::fs::read(&path) {
        Ok(bytes) => {
            let notes: Notes = serde_json::from_slice(&bytes).map_err(|error| problem(&error))?;
            if file.is_some_and(|file| notes.world.as_ref() != Some(file)) {
                return Err(format!(
                    "{} holds a world that was made from another file: give --world a new folder with --data",
                    folder.display()
                ));
            }
            let starts = notes.starts + 1;
            (Notes { starts, ..notes }, entropy(seed, starts))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let entropy = entropy(seed, 0);
            let default = WorldFile::of_default().map_err(|error| error.to_string())?;
            let notes = Notes::new(&entropy, file.unwrap_or(&default));
            (Notes { world: file.cloned(), ..notes }, entropy)
        }
        Err(error) => return Err(problem(&error)),
    };
    write(folder, &path, &notes).map_err(|error| problem(&error))?;
    Ok((notes, entropy))
}

/// Writes a new file and moves it into place, so that a crash leaves either no notes or complete ones.
fn write(folder: &Path, path: &Path, notes: &Notes) -> std::io::Result<()> {
    let temporary = path.with_extension("json.new");
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(&serde_json::to_vec_pretty(notes)?)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    std::fs::File::open(folder)?.sync_all()
}

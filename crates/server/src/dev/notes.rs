//! The secrets that a sandbox prints. They are stored in a file, because the store has only hashes. A kept
//! world keeps its secrets, so the configuration of a bot stays valid. `serve` has no such file.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use domain::secret::{ClientSecret, OperatorKey};
use serde::{Deserialize, Serialize};
use service::Entropy;

use super::applications::APPLICATIONS;

/// The secrets of a world.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notes {
    /// The key of the platform API.
    pub operator_key: String,
    /// The secret of each seeded application.
    pub client_secrets: BTreeMap<String, String>,
}

impl Notes {
    fn new(entropy: &Entropy) -> Self {
        let secret = |client_id: &&str| {
            ((*client_id).to_owned(), ClientSecret::generate(entropy.bytes()).expose().to_owned())
        };
        Self {
            operator_key: OperatorKey::generate(entropy.bytes()).expose().to_owned(),
            client_secrets: APPLICATIONS.iter().map(|application| secret(&application.client_id)).collect(),
        }
    }
}

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("sandbox.json")
}

/// Whether `folder` contains the notes of a sandbox.
pub(super) fn are_in(folder: &Path) -> bool {
    path(folder).exists()
}

/// The notes of the world in `folder`. A new world gets new notes.
pub(super) fn open(folder: &Path) -> Result<Notes, String> {
    let path = path(folder);
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| problem(&error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let notes = Notes::new(&Entropy::system());
            write(folder, &path, &notes).map_err(|error| problem(&error))?;
            Ok(notes)
        }
        Err(error) => Err(problem(&error)),
    }
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

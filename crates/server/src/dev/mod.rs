//! The sandbox: its worlds, how they begin, and their descriptions for developers.

mod archive;
mod creation;
mod hosted;
mod kept_clock;
mod notes;
mod program;
mod snapshot;
mod tls_entry;
mod world;
mod worlds;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use commands::CommandFailure;
use domain::Timestamp;
use domain::secret::OperatorKey;
use sandbox::WorldFile;
use temporary_folder::TemporaryFolder;

use crate::Settings;
use creation::{Creation, CreationError};
use kept_clock::KeptClock;

pub use world::{Start, World};
pub use worlds::{WORLDS_MAX, Worlds};

/// How `stagedoor dev` begins.
#[derive(Debug)]
pub struct Opening {
    /// The settings of the main world.
    settings: Settings,
    /// The folder of this process.
    root: TemporaryFolder,
    creation: Creation,
    kept_clock: Option<KeptClock>,
    /// The world file and its path, for the position of a mistake.
    source: Option<(PathBuf, String)>,
}

/// What the options of `stagedoor dev` say about its world.
#[derive(Debug)]
pub struct WorldOptions<'a> {
    /// The folder of the world.
    pub folder: &'a Path,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--clock`
    pub clock: Option<Timestamp>,
    /// `--world`
    pub world: Option<&'a Path>,
    /// Whether the sandbox steers the clock. It does not with `--no-sandbox`.
    pub steered: bool,
}

impl WorldOptions<'_> {
    /// Reads the world file, and the notes of the folder; the first start makes them. Returns how the world
    /// begins, and the key of the operator.
    ///
    /// # Errors
    /// A sentence for the developer: the world file has a mistake, or the notes cannot be read or written.
    pub fn read(&self) -> Result<(Beginning, OperatorKey), String> {
        let source = self.world.map(|path| {
            let read = std::fs::read_to_string(path);
            read.map(|text| (path.to_owned(), text))
                .map_err(|error| format!("--world {}: {error}", path.display()))
        });
        let source = source.transpose()?;
        let file = source.as_ref().map(|(path, text)| {
            WorldFile::parse(text).map_err(|error| format!("--world {}: {error}", path.display()))
        });
        let file = file.transpose()?;
        let (notes, entropy) = notes::open(self.folder, self.seed, file.as_ref())?;
        let key = OperatorKey::presented(&notes.operator_key)
            .ok_or(format!("{} is damaged", notes::path(self.folder).display()))?;
        let default = || WorldFile::of_default().map_err(|error| error.to_string());
        let file = notes.world.clone().map_or_else(default, Ok)?;
        let kept_clock = self.steered.then(|| KeptClock::of(self.folder));
        let resumed = kept_clock.as_ref().map(KeptClock::read).transpose()?.flatten();
        let (clock, steered) = (self.clock, self.steered);
        let creation = Creation { file, notes, entropy, clock, resumed, steered };
        Ok((Beginning { creation, kept_clock, source }, key))
    }
}

/// How the main world begins.
#[derive(Debug)]
pub struct Beginning {
    creation: Creation,
    kept_clock: Option<KeptClock>,
    source: Option<(PathBuf, String)>,
}

impl Opening {
    /// How `stagedoor dev` begins with these settings. `root` is the folder of this process.
    pub fn new(settings: Settings, root: TemporaryFolder, beginning: Beginning) -> Self {
        let Beginning { creation, kept_clock, source } = beginning;
        Self { settings, root, creation, kept_clock, source }
    }

    /// The settings of the main world.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Starts the main world. Returns the worlds and the description of the main one.
    ///
    /// # Errors
    /// A sentence for the developer, and whether the world file is wrong.
    pub async fn start(self) -> Result<(Arc<Worlds>, World), CommandFailure> {
        let Self { settings, root, creation, kept_clock, source } = self;
        Worlds::start(settings, root, creation, kept_clock).await.map_err(|error| match (error, source) {
            (CreationError::File(error), Some((path, text))) => {
                let path = path.display();
                CommandFailure::Usage(format!("--world {path}: {}", error.located_in(&text)))
            }
            (CreationError::File(error), None) => {
                CommandFailure::Failed(format!("failed to seed the world: {error}"))
            }
            (CreationError::Failed(error), _) => CommandFailure::Failed(error),
        })
    }
}

/// Refuses a folder with a store of `stagedoor serve`, before anything is written to it.
///
/// # Errors
/// A sentence for the developer: `stagedoor serve` created the store.
pub fn check_folder(folder: &Path, store: &Path) -> Result<(), String> {
    if store.exists() && !notes::are_in(folder) {
        return Err(format!(
            "{} holds a store of `stagedoor serve`: give `stagedoor dev` another folder with --data",
            folder.display()
        ));
    }
    Ok(())
}

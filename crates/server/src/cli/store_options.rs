//! Which store a command works on.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use backup::DATA_FILE;
use clap::Args;
use commands::secret;
use rustix::fs::{Access, access};
use store::{DatabaseUrl, Target};

/// The store of a command that is not a server.
#[derive(Debug, Args)]
pub struct StoreOptions {
    /// The folder of the SQLite store, when there is no --database-url.
    #[arg(long, value_name = "DIR", env = "STAGEDOOR_DATA", default_value = "stagedoor-data")]
    pub data: PathBuf,

    /// The PostgreSQL database: postgres://user:password@host/database. Also STAGEDOOR_DATABASE_URL or
    /// STAGEDOOR_DATABASE_URL_FILE, which keep the password out of the list of processes.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
}

impl StoreOptions {
    /// The store.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub fn target(&self) -> Result<Target, String> {
        Ok(self
            .database()?
            .map_or_else(|| Target::Sqlite { path: self.file() }, |url| Target::Postgres { url }))
    }

    /// The data file in the folder.
    pub fn file(&self) -> PathBuf {
        self.data.join(DATA_FILE)
    }

    /// The database, if one is given.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub fn database(&self) -> Result<Option<DatabaseUrl>, String> {
        database_url(self.database_url.as_deref())
    }
}

/// Refuses a marker that is not there and cannot be made. Makes nothing.
pub(super) fn check_marker(marker: &Path) -> Result<(), String> {
    if marker.exists() {
        return Ok(());
    }
    let folder = marker.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let checked = access(folder, Access::WRITE_OK | Access::EXEC_OK);
    checked.map_err(|error| format!("--existing-marker {}: {}: {error}", marker.display(), folder.display()))
}

/// Refuses a folder of the SQLite store that cannot be made or written. Makes nothing.
pub(super) fn check_data_folder(folder: &Path) -> Result<(), String> {
    nearest_folder("--data", folder).map(drop)
}

/// Refuses the folder of an option that cannot be made or written, also where only an attempt shows it, as in
/// `/proc`. Leaves nothing.
pub(super) fn check_folder(option: &str, folder: &Path) -> Result<(), String> {
    let nearest = nearest_folder(option, folder)?;
    let probe = nearest.join(format!(".stagedoor-check-{}", std::process::id()));
    let made = std::fs::create_dir(&probe).and_then(|()| std::fs::remove_dir(&probe));
    made.map_err(|error| {
        format!("{option} {}: nothing can be made in {}: {error}", folder.display(), nearest.display())
    })
}

/// The folder, or the one in which it would be made.
fn nearest_folder<'a>(option: &str, folder: &'a Path) -> Result<&'a Path, String> {
    let refused = |why: &dyn Display| Err(format!("{option} {}: {why}", folder.display()));
    let nearest = folder.ancestors().find(|path| !path.as_os_str().is_empty() && path.exists());
    let nearest = nearest.unwrap_or(Path::new("."));
    if !nearest.is_dir() {
        return refused(&format_args!("{} is not a folder", nearest.display()));
    }
    match access(nearest, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Ok(nearest),
        Err(error) => refused(&error),
    }
}

/// The database of the option, the environment or a file.
pub(super) fn database_url(given: Option<&str>) -> Result<Option<DatabaseUrl>, String> {
    match secret("STAGEDOOR_DATABASE_URL", given)? {
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            let url = DatabaseUrl::from(url);
            url.check().map_err(|error| format!("--database-url: {error}"))?;
            Ok(Some(url))
        }
        Some(_) => Err("--database-url must begin with postgres://".to_owned()),
        None => Ok(None),
    }
}

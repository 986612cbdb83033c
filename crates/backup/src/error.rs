//! Why a backup, a restore or a move failed.

use std::path::Path;

use store::StoreError;

/// A failure. The text is a sentence for the operator, and shows no secret.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The call cannot be right: a folder is in use, a backup is missing. Nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// The data is not what it should be.
    #[error("{0}")]
    Damaged(String),
    /// A file cannot be read or written.
    #[error("{0}")]
    File(String),
    /// An object store cannot be reached, or refuses.
    #[error("{0}")]
    Remote(String),
    /// The store failed.
    #[error("{name}: {error}")]
    Store {
        /// Which store.
        name: String,
        /// Its error.
        error: StoreError,
    },
}

impl BackupError {
    /// The error of a file or a folder.
    pub(crate) fn file(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Self {
        Self::File(format!("{what} {}: {error}", path.display()))
    }

    /// Names the store of an error.
    pub(crate) fn of(name: &str) -> impl FnOnce(StoreError) -> Self {
        let name = name.to_owned();
        |error| Self::Store { name, error }
    }
}

//! Why a call of the service gave nothing.

use domain::{Invalid, Refusal};
use store::StoreError;

/// A refusal, which is the caller's to mend, or a failure of the store, which is ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The rules say no. Nothing was changed, but for what a rule says of stolen credentials.
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The service failed otherwise: what was wrong.
    #[error("{0}")]
    Internal(&'static str),
}

impl Error {
    /// What the caller is told; the edge logs the rest.
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal.clone(),
            Self::Store(StoreError::DiskFull) => Refusal::DiskFull,
            Self::Store(_) | Self::Internal(_) => Refusal::Internal,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Refused(invalid.into())
    }
}

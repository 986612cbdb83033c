//! The errors of the service.

use domain::{Invalid, Refusal};
use store::{Contention, StoreError};

/// When a caller may repeat a write that ended with a deadlock or a serialization failure, in seconds.
const CONTENDED_RETRY_S: u32 = 1;

/// An error of the service: a refusal, which the caller can mend, or a failure, which the caller cannot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A rule refused the call. Nothing was changed, except that tokens of a stolen credential are revoked.
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Another failure of the service, with its reason.
    #[error("{0}")]
    Internal(&'static str),
}

impl Error {
    /// The refusal that the caller gets. The edge logs the error itself.
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal.clone(),
            Self::Store(StoreError::DiskFull) => Refusal::DiskFull,
            Self::Store(StoreError::Contention(Contention::Deadlock | Contention::LostRace)) => {
                Refusal::Busy { retry_after_s: CONTENDED_RETRY_S }
            }
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

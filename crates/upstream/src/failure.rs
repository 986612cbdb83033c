//! Why a sign-in at a provider failed.

use crate::calls::HttpFailure;
use crate::outcome::Outcome;

/// Why a sign-in at a provider failed. The text is for the log. It has no secret and no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It cannot be reached, or answers with an error.
    #[error("{0}")]
    Unavailable(String),
    /// Too many sign-ins talk to it.
    #[error("too many sign-ins talk to this provider")]
    Busy,
    /// It refused this service or the code, with this error of OAuth.
    #[error("the token endpoint refused: {0}")]
    Refused(String),
    /// It says something wrong about itself.
    #[error("{0}")]
    Provider(String),
    /// Its ID token is wrong.
    #[error("the ID token is wrong: {0}")]
    IdToken(String),
    /// The browser came back from another provider.
    #[error("the callback names another issuer")]
    MixedUp,
}

impl Failure {
    /// What it counts as.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Unavailable(_) | Self::Busy => Outcome::Unavailable,
            Self::Refused(_) => Outcome::ClientRefused,
            Self::Provider(_) | Self::IdToken(_) | Self::MixedUp => Outcome::Invalid,
        }
    }
}

impl From<HttpFailure> for Failure {
    fn from(failure: HttpFailure) -> Self {
        Self::Unavailable(failure.to_string())
    }
}

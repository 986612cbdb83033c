//! Why a command failed, and its exit code.

use std::fmt;
use std::process::ExitCode;

use crate::client::Failure;

/// Why a command failed. The text says what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandFailure {
    /// The expected did not happen, or the server refused the call. Exit code 1.
    Failed(String),
    /// The command line or an input file is wrong. Exit code 2, as clap's.
    Usage(String),
    /// No server was reached. Exit code 3.
    Unreachable(String),
}

impl CommandFailure {
    /// The exit code of the program.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Failed(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Unreachable(_) => ExitCode::from(3),
        }
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Failed(text) | Self::Usage(text) | Self::Unreachable(text)) = self;
        f.write_str(text)
    }
}

impl From<Failure> for CommandFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused { .. } => Self::Failed(failure.to_string()),
            Failure::Unreachable(why) => Self::Unreachable(why),
        }
    }
}

impl From<String> for CommandFailure {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

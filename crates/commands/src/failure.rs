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
    /// It was done in part: the text says what is missing. Exit code 4.
    Partly(String),
    /// The exit code. It was said before why: by the command of `stagedoor run`, or in the log.
    Ended(u8),
    /// A program cannot be started. Exit codes 126 and 127, as a shell's.
    NotStarted {
        /// The program and the reason.
        text: String,
        /// The exit code.
        code: u8,
    },
}

impl CommandFailure {
    /// The exit code of the program.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// The number of the exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Partly(_) => 4,
            Self::Ended(code) | Self::NotStarted { code, .. } => *code,
        }
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text)
            | Self::Usage(text)
            | Self::Unreachable(text)
            | Self::Partly(text)
            | Self::NotStarted { text, .. } => f.write_str(text),
            Self::Ended(code) => write!(f, "the command ended with exit code {code}"),
        }
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

//! The commands of `stagedoor` that talk to a running server, most of them to a sandbox.
//!
//! | Module | What it does |
//! |---|---|
//! | `client` | the HTTP client of the commands |
//! | `failure` | why a command failed, and its exit code |
//! | `secrets` | secrets from an option, the environment or a file |
//! | `state_file` | the running sandboxes of this user |
//! | `junit` | reports as JUnit XML |
//! | `target` | which server a command talks to |
//! | `clock` | `stagedoor clock` |
//! | `logs` | `stagedoor logs` |
//! | `token` | `stagedoor token` |
//! | `trigger` | `stagedoor trigger` |
//! | `drops` | `stagedoor drops` |
//! | `listen` | `stagedoor webhook listen` |

mod client;
pub mod clock;
pub mod drops;
mod failure;
pub mod junit;
pub mod listen;
pub mod logs;
mod secrets;
pub mod state_file;
mod target;
pub mod token;
pub mod trigger;

pub use failure::CommandFailure;
pub use secrets::secret;
pub use target::TargetOptions;

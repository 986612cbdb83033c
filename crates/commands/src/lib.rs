//! The commands of `stagedoor` that talk to a running server, most of them to a sandbox.
//!
//! | Module | What it does |
//! |---|---|
//! | `client` | the HTTP client of the commands |
//! | `failure` | why a command failed, and its exit code |
//! | `secrets` | secrets from an option, the environment or a file |
//! | `state_file` | the running sandboxes of this user |
//! | `target` | which server a command talks to |
//! | `user_options` | which user of which application a command is about |
//! | `output` | what commands print |
//! | `junit` | reports as JUnit XML |
//! | `recording` | reads the log of a sandbox |
//! | `hosts_file` | the lines of the fixed hosts in the hosts file |
//! | `trust` | what makes programs trust the local authority of a sandbox |
//! | `run` | `stagedoor run` |
//! | `clock` | `stagedoor clock` |
//! | `code` | `stagedoor code` |
//! | `env` | `stagedoor env` |
//! | `expect` | `stagedoor expect` |
//! | `explain` | `stagedoor explain` |
//! | `health` | `stagedoor health` |
//! | `open` | `stagedoor open` |
//! | `fault` | `stagedoor fault` |
//! | `logs` | `stagedoor logs` |
//! | `mark` | `stagedoor mark` |
//! | `scenario` | `stagedoor scenario` |
//! | `storm` | the progress and the result of `stagedoor trigger storm` |
//! | `token` | `stagedoor token` |
//! | `trigger` | `stagedoor trigger` |
//! | `doctor` | `stagedoor doctor` |
//! | `world` | `stagedoor world` |
//! | `drops` | `stagedoor drops` |
//! | `webhook_listen` | `stagedoor webhook listen`: the messages to a webhook |
//! | `session_listen` | `stagedoor listen`: the events of a session |
//! | `forward_target` | the address of `--forward-to` |
//! | `polling` | a session over long polling |
//! | `event_line` | an event of a session as a line of text |

mod client;
pub mod clock;
pub mod code;
pub mod doctor;
pub mod drops;
pub mod env;
mod event_line;
pub mod expect;
pub mod explain;
mod failure;
pub mod fault;
mod forward_target;
pub mod health;
pub mod hosts_file;
pub mod junit;
pub mod logs;
pub mod mark;
pub mod node_router;
pub mod open;
pub mod output;
mod polling;
mod recording;
pub mod run;
pub mod scenario;
mod secrets;
pub mod session_listen;
pub mod state_file;
mod storm;
mod target;
pub mod token;
pub mod trigger;
pub mod trust;
pub mod user_options;
pub mod webhook_listen;
pub mod world;

pub use failure::CommandFailure;
pub use secrets::{secret, secret_file};
pub use target::TargetOptions;

//! What only a sandbox has. `stagedoor dev` holds a [`Sandbox`] and serves its API, `/sandbox/v1`, beside the
//! service. `stagedoor serve` has neither.
//!
//! The sandbox steers the real service: through its clock, through its operations, and through its fault
//! points. It stands in for nothing.
//!
//! | Module | What it does |
//! |---|---|
//! | `sandbox` | the handle: the parts of a sandbox |
//! | `clock` | moves the clock |
//! | `timeline` | runs what becomes due while the clock is moved |
//! | `console_links` | the one-time addresses of the console |
//! | `deliveries` | the fault point of webhook attempts: records each |
//! | `mail` | the messages to people, without a mail hook |
//! | `made_attempts` | the attempts that are made while the clock moves |
//! | `catch_address` | the page that catches redirects, as an address of applications |
//! | `interceptor` | stands around every request of the node: injects its faults, and records it |
//! | `explain` | what an id or a word is, and what to do next |
//! | `fault` | the rules of faults, and their decisions |
//! | `fault_rules` | the list of these rules |
//! | `fixed_hosts` | the hosts that clients have built in |
//! | `random` | numbers that a seed decides |
//! | `network` | the network profiles |
//! | `network_breaks` | breaks the connections of sessions when their network breaks |
//! | `frame` | what a packet of a socket says |
//! | `sockets` | the fault point of the sockets: records what happens on them, and decides by the rules |
//! | `url_owners` | the owners of session URLs |
//! | `truncated` | an answer that ends early |
//! | `refusals` | a line of the log for each refused request |
//! | `request_copy` | a copy of the beginning of a request's body |
//! | `mask` | masks secrets before they are recorded |
//! | `filter` | finds records by their kind and their fields |
//! | `log` | the bounded record of what happened |
//! | `scenario_runs` | the latest runs of scenarios |
//! | `overview` | what the sandbox holds, in one answer |
//! | `time_text` | times and durations as text |
//! | `world_file` | worlds as text |
//! | `world_host` | what the API asks of the worlds of the process |
//! | `http` | the sandbox API and the console |

mod catch_address;
mod clock;
mod console_links;
mod deliveries;
mod explain;
mod fault;
mod fault_rules;
mod filter;
mod fixed_hosts;
mod frame;
mod http;
mod interceptor;
mod log;
mod made_attempts;
mod mail;
mod mask;
mod network;
mod network_breaks;
mod overview;
mod random;
mod refusals;
mod request_copy;
mod sandbox;
mod scenario_runs;
mod sockets;
mod time_text;
mod timeline;
mod truncated;
mod url_owners;
mod world_file;
mod world_host;

pub use catch_address::{catch_address, for_browser, for_program, move_catch_addresses};
pub use fixed_hosts::{FixedHost, FixedHosts};
pub use http::{Api, Surroundings, trigger_help};
pub use interceptor::Cut;
pub use log::{Log, NewRecord, Record, RecordKind};
pub use network_breaks::{network_names, use_network};
pub use request_copy::RequestCopy;
pub use sandbox::{ClockKeeper, Parts, Sandbox};
pub use world_file::{
    ApplicationItem, KnownSecrets, PASSWORD, PersonItem, TokenPair, WorldFile, WorldFileError, position,
};
pub use world_host::{
    MAIN_WORLD, NewWorld, SnapshotSummary, WorldError, WorldHost, WorldResult, WorldSummary,
};

//! The creation of a world: its content, its secrets, its clock and its randomness.

use std::collections::BTreeMap;

use domain::Timestamp;
use domain::secret::ClientSecret;
use sandbox::{WorldFile, WorldFileError, catch_address, move_catch_addresses};
use service::{Clock, ClockMode, Entropy, SandboxClock};

use super::notes::Notes;
use super::snapshot::ClockState;
use super::world::World;
use crate::{Environment, Node, Settings};

/// The time at which the content of a world with a seed was made, if its clock shows the system's time:
/// 2026-01-01, in milliseconds. Ids begin with their time, so it is the same at every start.
const SEEDED_AT_MS: i64 = 1_767_225_600_000;
/// How long before the begin of its clock the content of any other world was made, in milliseconds.
const MADE_BEFORE_MS: i64 = 1_000;

/// What a world is created with.
#[derive(Debug)]
pub(super) struct Creation {
    pub file: WorldFile,
    pub notes: Notes,
    pub entropy: Entropy,
    /// The time at which the clock stands still; `None` for a clock that shows the system's time and runs.
    pub clock: Option<Timestamp>,
    /// The clock that a kept world goes on with.
    pub resumed: Option<ClockState>,
    /// Whether the sandbox steers the clock. Without it the node has the system's clock.
    pub steered: bool,
}

/// Why a world was not created.
#[derive(Debug)]
pub(super) enum CreationError {
    /// The world file breaks a rule of the service.
    File(WorldFileError),
    /// The node did not start, or the service failed.
    Failed(String),
}

impl From<WorldFileError> for CreationError {
    fn from(error: WorldFileError) -> Self {
        Self::File(error)
    }
}

impl From<String> for CreationError {
    fn from(error: String) -> Self {
        Self::Failed(error)
    }
}

impl From<service::Error> for CreationError {
    fn from(error: service::Error) -> Self {
        Self::Failed(format!("the store failed: {error}"))
    }
}

impl Creation {
    /// Starts the node, writes the content if the store has none, and issues tokens. Until then the clock
    /// stands still.
    pub async fn begin(&self, settings: Settings) -> Result<(Node, World), CreationError> {
        let Self { file, notes, entropy, steered, .. } = self;
        let (begins_at, mode) = self.begins_at();
        let clock = SandboxClock::new(self.made_at(), ClockMode::Frozen);
        let environment = match *steered {
            true => Environment::sandbox(clock.clone(), entropy.clone()),
            false => Environment::system(),
        };
        let node = Node::start(settings, environment).await?;
        let service = node.service();
        let exists = file.is_in(service).await?;
        if !exists {
            file.load(service, &clock).await?;
        }
        let start = || clock.advance_to(begins_at.unwrap_or_else(|| Clock::system().now()));
        start();
        if exists {
            file.ensure_secrets(service, &notes.client_secrets).await?;
            move_catch_addresses(service, node.base_url()).await?;
        } else {
            let page = node.sandbox().and_then(|_| catch_address(node.base_url()));
            file.begin(service, page.as_ref(), &notes.client_secrets).await?;
        }
        // Until here the clock stands still, so that the applications of a world are of one age.
        start();
        clock.set_mode(mode);
        remember(&node, &notes.client_secrets);
        let world = World::describe(&node, file, &notes.operator_key, &notes.client_secrets).await?;
        Ok((node, world))
    }

    /// The time at which the clock begins, `None` for the system's, and how it runs. A clock that goes on
    /// never begins earlier than it ended.
    fn begins_at(&self) -> (Option<Timestamp>, ClockMode) {
        let resumed = self.resumed.map(ClockState::time_and_mode);
        match (self.clock, resumed, self.file.clock_time()) {
            (Some(given), resumed, _) => {
                (Some(resumed.map_or(given, |(time, _)| time.max(given))), ClockMode::Frozen)
            }
            (None, Some((time, mode)), _) => (Some(time), mode),
            (None, None, Some(time)) => (Some(time), ClockMode::Frozen),
            (None, None, None) => (None, ClockMode::Real),
        }
    }

    fn made_at(&self) -> Timestamp {
        let is_new = self.notes.starts == 0;
        match self.begins_at().0 {
            None if is_new && self.entropy.is_seeded() => Timestamp::from_millis(SEEDED_AT_MS),
            Some(begins_at) if self.resumed.is_some() => begins_at,
            begins_at => {
                let people_ms = i64::try_from(self.file.people.len()).unwrap_or(0);
                begins_at.unwrap_or_else(|| Clock::system().now()).plus_ms(-MADE_BEFORE_MS - people_ms)
            }
        }
    }
}

/// Completes a node that goes on from a snapshot: with its client secrets, and with its own page that catches
/// redirects.
pub(super) async fn resume(node: &Node, secrets: &BTreeMap<String, String>) -> Result<(), String> {
    remember(node, secrets);
    let moved = move_catch_addresses(node.service(), node.base_url()).await;
    moved.map_err(|error| format!("the store failed: {error}"))
}

/// Gives the sandbox of a node the client secrets, which the store has only as hashes.
fn remember<'a>(node: &Node, secrets: impl IntoIterator<Item = (&'a String, &'a String)>) {
    let Some(sandbox) = node.sandbox() else { return };
    for (client_id, secret) in secrets {
        if let Some(secret) = ClientSecret::presented(secret) {
            sandbox.remember_client_secret(client_id.clone(), secret);
        }
    }
}

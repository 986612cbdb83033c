//! One world of the process: its node, which is replaced when the world goes back to a snapshot.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use domain::Timestamp;
use sandbox::{WorldError, WorldFile, WorldHost, WorldResult, WorldSummary};
use serde_json::Value;
use service::Entropy;
use tokio::sync::{Mutex, OwnedSemaphorePermit};

use super::creation::resume;
use super::kept_clock::KeptClock;
use super::snapshot::{ClockState, Former, Snapshot};
use super::world::World;
use crate::front::Front;
use crate::node::NotStarted;
use crate::{Environment, Node, Settings, StoreSettings};

/// Maximum size of a kept database for which a reset is prepared at the start, in bytes.
const RESET_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// What a world says after it could not go back to a snapshot.
const BROKEN: &str = "the world does not run, because its last reset or restore failed: delete it";

/// A world of the process.
#[derive(Debug)]
pub(super) struct Hosted {
    pub id: String,
    pub operator_key: String,
    /// Deleted with the world; `None` for the main one, whose folder belongs to the process.
    folder: Option<PathBuf>,
    /// `None` while the world starts, and after a failure.
    running: Mutex<Option<Running>>,
    /// What a reset goes back to.
    origin: OnceLock<Arc<Snapshot>>,
    /// Where the clock is kept; only of the main world.
    kept_clock: Option<KeptClock>,
    /// Given back when the world ends.
    _place: Option<OwnedSemaphorePermit>,
}

/// The running part of a world.
pub(super) struct Running {
    pub node: Node,
    pub description: World,
}

/// What a node goes on from, besides its database.
struct Continued {
    environment: Environment,
    client_secrets: BTreeMap<String, String>,
    description: World,
}

impl Continued {
    fn of(running: &Running) -> Self {
        let Running { node, description } = running;
        let entropy = node.service().entropy().seed_state();
        let entropy = entropy.as_ref().map_or_else(Entropy::system, Entropy::resumed);
        let environment = match node.sandbox() {
            Some(sandbox) => Environment::sandbox(ClockState::of(sandbox.clock()).clock(), entropy),
            None => Environment::system(),
        };
        Self { environment, client_secrets: known_client_secrets(node), description: description.clone() }
    }

    fn of_snapshot(snapshot: &Snapshot) -> Self {
        Self {
            environment: snapshot.environment(),
            client_secrets: snapshot.client_secrets.clone(),
            description: snapshot.description.clone(),
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.description.fmt(f)
    }
}

impl Hosted {
    /// A world that does not run yet.
    pub fn new(
        id: String,
        operator_key: String,
        folder: Option<PathBuf>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let (running, origin) = (Mutex::default(), OnceLock::new());
        Self { id, operator_key, folder, running, origin, kept_clock: None, _place: place }
    }

    /// The same with a clock that is kept.
    pub fn with_kept_clock(self, kept_clock: Option<KeptClock>) -> Self {
        Self { kept_clock, ..self }
    }

    /// Connects a node that runs from now on.
    fn connect(&self, node: &Node, host: Weak<dyn WorldHost>) {
        let Some(sandbox) = node.sandbox() else { return };
        sandbox.join_host(host);
        if let Some(kept_clock) = &self.kept_clock {
            kept_clock.follow(sandbox);
        }
    }

    /// The world runs from now on. A reset goes back to `origin`.
    pub async fn run(&self, running: Running, origin: Option<Arc<Snapshot>>, host: Weak<dyn WorldHost>) {
        let mut place = self.running.lock().await;
        if let Some(origin) = origin {
            let _ = self.origin.set(origin);
        }
        self.connect(&running.node, host);
        *place = Some(running);
    }

    /// The description with the id of the world.
    pub async fn description(&self) -> WorldResult<Value> {
        let running = self.running.lock().await;
        let running = running.as_ref().ok_or_else(broken)?;
        Ok(described(&running.description, &self.id))
    }

    /// The entry of the world in a list; `None` while it does not run.
    pub async fn summary(&self) -> Option<WorldSummary> {
        let running = self.running.lock().await;
        let node = &running.as_ref()?.node;
        Some(WorldSummary {
            world_id: self.id.clone(),
            base_url: node.base_url().to_owned(),
            operator_key: self.operator_key.clone(),
            now: node.sandbox()?.clock().now(),
            seed: node.service().entropy().seed_state().map(|state| state.seed),
        })
    }

    /// A new address that opens its console once.
    pub async fn console_url(&self) -> Option<String> {
        self.running.lock().await.as_ref()?.node.sandbox()?.console_url()
    }

    /// Takes a snapshot into `file`.
    pub async fn snapshot(&self, file: PathBuf) -> WorldResult<Snapshot> {
        let running = self.running.lock().await;
        snapshot_of(&self.id, running.as_ref().ok_or_else(broken)?, file).await
    }

    /// Takes the snapshot to which a reset goes back. A large kept database has none.
    pub async fn prepare_reset(&self, file: PathBuf) {
        let running = self.running.lock().await;
        let Some(running) = running.as_ref() else { return };
        let StoreSettings::Sqlite { path } = &running.node.settings().store else { return };
        if running.node.sandbox().is_some()
            && std::fs::metadata(path).is_ok_and(|database| database.len() <= RESET_BYTES_MAX)
        {
            match snapshot_of(&self.id, running, file).await {
                Ok(origin) => _ = self.origin.set(Arc::new(origin)),
                Err(error) => tracing::warn!(?error, "failed to prepare the reset of a world"),
            }
        }
    }

    /// The state that a reset goes back to.
    pub fn origin(&self) -> WorldResult<Arc<Snapshot>> {
        let rule = "cannot be reset: its database is in PostgreSQL, or was too large at the start";
        self.origin.get().cloned().ok_or_else(|| WorldError::invalid("worldId", rule))
    }

    /// Puts the world into the state of a snapshot. Its open sockets end, its connections stay, and their
    /// requests wait meanwhile. If that fails, the world goes on as it was.
    pub async fn restore(&self, snapshot: &Snapshot, host: Weak<dyn WorldHost>) -> WorldResult<Value> {
        let mut place = self.running.lock().await;
        let running = place.as_ref().ok_or_else(broken)?;
        let StoreSettings::Sqlite { path } = running.node.settings().store.clone() else {
            return Err(WorldError::invalid("worldId", "has no snapshots: its database is in PostgreSQL"));
        };
        let next = path.with_extension("db.next");
        snapshot.copy_to(&next).map_err(WorldError::Failed)?;
        let before = Continued::of(running);
        let Some(Running { node, .. }) = place.take() else { return Err(broken()) };
        let (front, settings) = node.retire().await;
        let (former, started) = match Former::replaced_by(&path, &next) {
            Ok(former) => {
                let now = Continued::of_snapshot(snapshot);
                (Some(former), self.go_on(front, settings.clone(), now, &host).await)
            }
            Err(error) => (None, Err(NotStarted { front, error })),
        };
        let NotStarted { front, error } = match started {
            Ok(running) => {
                former.into_iter().for_each(Former::delete);
                let answer = described(&running.description, &self.id);
                *place = Some(running);
                return Ok(answer);
            }
            Err(not_started) => not_started,
        };
        former.map_or(Ok(()), Former::put_back).map_err(WorldError::Failed)?;
        let again = self.go_on(front, settings, before, &host).await;
        *place = Some(again.map_err(|not_started| WorldError::Failed(not_started.error))?);
        Err(WorldError::Failed(format!("{error}: the world goes on as it was")))
    }

    /// Starts a node with the database that is there.
    async fn go_on(
        &self,
        front: Front,
        settings: Settings,
        from: Continued,
        host: &Weak<dyn WorldHost>,
    ) -> Result<Running, NotStarted> {
        let Continued { environment, client_secrets, description } = from;
        let node = Node::start_behind(front, settings, environment).await?;
        if let Err(error) = resume(&node, &client_secrets).await {
            return Err(NotStarted { front: node.retire().await.0, error });
        }
        self.connect(&node, host.clone());
        let description = description.behind(&node, &self.operator_key);
        Ok(Running { node, description })
    }

    /// The world as a world file.
    pub async fn world_file(&self) -> WorldResult<WorldFile> {
        let running = self.running.lock().await;
        let Running { node, description } = running.as_ref().ok_or_else(broken)?;
        let known = description.known_secrets(known_client_secrets(node));
        let failed = |error: service::Error| WorldError::Failed(format!("the store failed: {error}"));
        let mut file = WorldFile::of(node.service(), &known).await.map_err(failed)?;
        let clock = node.sandbox().map(|sandbox| ClockState::of(sandbox.clock()));
        let moved = clock.filter(|clock| !clock.follows_system);
        file.clock = moved.map(|clock| Timestamp::from_millis(clock.now_ms).rfc3339());
        Ok(file)
    }

    /// Ends the world at once.
    pub async fn end(&self) {
        if let Some(Running { node, .. }) = self.running.lock().await.take() {
            node.retire().await.0.close().await;
        }
        if let Some(folder) = &self.folder
            && let Err(error) = std::fs::remove_dir_all(folder)
        {
            tracing::warn!(%error, folder = %folder.display(), "failed to delete the folder of a world");
        }
    }

    /// Ends the world as SIGTERM ends a node.
    pub async fn stop(&self) {
        if let Some(Running { node, .. }) = self.running.lock().await.take() {
            if let (Some(kept_clock), Some(sandbox)) = (&self.kept_clock, node.sandbox()) {
                kept_clock.end(sandbox);
            }
            node.stop().await;
        }
    }
}

async fn snapshot_of(id: &str, running: &Running, file: PathBuf) -> WorldResult<Snapshot> {
    let Running { node, description } = running;
    let Some(sandbox) = node.sandbox() else { return Err(broken()) };
    if let StoreSettings::Postgres { .. } = node.settings().store {
        return Err(WorldError::invalid("worldId", "has no snapshots: its database is in PostgreSQL"));
    }
    let failed = |error: service::Error| WorldError::Failed(format!("failed to copy the database: {error}"));
    node.service().flush_all_uses().await.map_err(failed)?;
    node.service().flush_usage().await.map_err(failed)?;
    node.service().copy_store(file.clone()).await.map_err(failed)?;
    Ok(Snapshot {
        world_id: id.to_owned(),
        file,
        clock: ClockState::of(sandbox.clock()),
        seed: node.service().entropy().seed_state(),
        client_secrets: known_client_secrets(node),
        description: description.clone(),
    })
}

fn known_client_secrets(node: &Node) -> BTreeMap<String, String> {
    let secrets = node.sandbox().map(sandbox::Sandbox::client_secrets).unwrap_or_default();
    secrets.into_iter().map(|(client_id, secret)| (client_id, secret.expose().to_owned())).collect()
}

/// The description of a world with its id.
fn described(description: &World, id: &str) -> Value {
    // A struct of texts can always be serialized.
    let mut value = serde_json::to_value(description).unwrap_or_default();
    value["worldId"] = id.into();
    value
}

fn broken() -> WorldError {
    WorldError::Failed(BROKEN.to_owned())
}

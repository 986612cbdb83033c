//! The handle of a sandbox, shared by its API and its fault points.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Duration;

use domain::Timestamp;
use domain::secret::ClientSecret;
use gateway::Gateway;
use jobs::webhooks::Settler;
use service::fault_points::SocketFaultPoint;
use service::{ClockMode, Purpose, SandboxClock, Service};
use tokio::sync::{Mutex, MutexGuard};

use crate::console_links::ConsoleLinks;
use crate::fault_rules::FaultRules;
use crate::fixed_hosts::FixedHosts;
use crate::log::Log;
use crate::made_attempts::MadeAttempts;
use crate::refusals::RefusalLog;
use crate::scenario_runs::ScenarioRuns;
use crate::sockets::Sockets;
use crate::url_owners::UrlOwners;
use crate::world_host::WorldHost;

/// A sandbox. Cheap to clone. It exists before its service, because the service stands on its clock.
#[derive(Clone, Debug)]
pub struct Sandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: SandboxClock,
    log: Log,
    /// One move of the clock at a time.
    moving: Mutex<()>,
    refusals: RefusalLog,
    /// The store has only hashes of the secrets.
    client_secrets: std::sync::Mutex<BTreeMap<String, ClientSecret>>,
    made_attempts: MadeAttempts,
    /// One storm of events at a time.
    storming: Mutex<()>,
    faults: Arc<FaultRules>,
    /// Holds no part of the node, because the node's service holds it.
    sockets: Arc<Sockets>,
    url_owners: UrlOwners,
    parts: OnceLock<Parts>,
    runs: ScenarioRuns,
    clock_keeper: OnceLock<ClockKeeper>,
    console_links: ConsoleLinks,
    /// Not owned: the host has this world.
    world_host: OnceLock<Weak<dyn WorldHost>>,
}

/// Keeps the time of the clock, and how it runs from there on, for the next start.
pub struct ClockKeeper(pub Box<dyn Fn(Timestamp, ClockMode) + Send + Sync>);

impl std::fmt::Debug for ClockKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClockKeeper")
    }
}

/// The parts of the running node.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The service.
    pub service: Service,
    /// The sockets.
    pub gateway: Gateway,
    /// Asks the webhook sender to make the attempts that are due; `None` on a node without one.
    pub settler: Option<Settler>,
    /// The base URL of the service for clients.
    pub base_url: String,
    /// The address that the node listens on.
    pub address: SocketAddr,
    /// The fixed hosts; `None` without TLS.
    pub fixed_hosts: Option<FixedHosts>,
}

impl Sandbox {
    /// A sandbox with this clock, whose service does not run yet.
    pub fn new(clock: SandboxClock) -> Self {
        let (log, faults) = (Log::default(), Arc::<FaultRules>::default());
        let sockets = Arc::new(Sockets::new(clock.clone(), log.clone(), faults.clone()));
        Self(Arc::new(Inner {
            clock,
            log,
            moving: Mutex::default(),
            refusals: RefusalLog::default(),
            client_secrets: std::sync::Mutex::default(),
            made_attempts: MadeAttempts::default(),
            storming: Mutex::default(),
            faults,
            sockets,
            url_owners: UrlOwners::default(),
            parts: OnceLock::new(),
            runs: ScenarioRuns::default(),
            clock_keeper: OnceLock::new(),
            console_links: ConsoleLinks::default(),
            world_host: OnceLock::new(),
        }))
    }

    /// Connects the sandbox to its running node. A second call changes nothing.
    pub fn attach(&self, parts: Parts) {
        let _ = self.0.parts.set(parts);
    }

    /// Connects the sandbox to the worlds of its process. A second call changes nothing.
    pub fn join_host(&self, host: Weak<dyn WorldHost>) {
        let _ = self.0.world_host.set(host);
    }

    /// The one-time addresses of the console.
    pub(crate) fn console_links(&self) -> &ConsoleLinks {
        &self.0.console_links
    }

    /// A new address that opens the console once; `None` until the node runs.
    pub fn console_url(&self) -> Option<String> {
        let Parts { service, base_url, .. } = self.parts()?;
        Some(format!(
            "{base_url}{}",
            self.0.console_links.make(service.entropy().bytes(Purpose::ConsoleLink))
        ))
    }

    /// Lets the clock be kept. A second call changes nothing.
    pub fn keep_clock_with(&self, keeper: ClockKeeper) {
        let _ = self.0.clock_keeper.set(keeper);
        self.keep_clock(self.clock().now());
    }

    /// Keeps a time of the clock, if the world is kept.
    pub fn keep_clock(&self, time: Timestamp) {
        if let Some(ClockKeeper(keep)) = self.0.clock_keeper.get() {
            keep(time, self.clock().mode());
        }
    }

    /// The worlds of the process; `None` until they run.
    pub(crate) fn world_host(&self) -> Option<Arc<dyn WorldHost>> {
        self.0.world_host.get()?.upgrade()
    }

    /// The clock of the service.
    pub fn clock(&self) -> &SandboxClock {
        &self.0.clock
    }

    /// Waits until no other call moves the clock. The clock can be moved while the guard is held.
    pub(crate) async fn moving(&self) -> MutexGuard<'_, ()> {
        self.0.moving.lock().await
    }

    /// Keeps other storms of events away; `None` while one runs.
    pub(crate) fn storming(&self) -> Option<MutexGuard<'_, ()>> {
        self.0.storming.try_lock().ok()
    }

    /// The record of what happened.
    pub fn log(&self) -> &Log {
        &self.0.log
    }

    /// The latest runs of scenarios.
    pub(crate) fn runs(&self) -> &ScenarioRuns {
        &self.0.runs
    }

    /// The fault rules.
    pub(crate) fn faults(&self) -> &FaultRules {
        &self.0.faults
    }

    /// The log of refused requests.
    pub(crate) fn refusals(&self) -> &RefusalLog {
        &self.0.refusals
    }

    /// The known secrets by the id of their application: those of the seed, and those that the sandbox made.
    pub fn client_secrets(&self) -> BTreeMap<String, ClientSecret> {
        self.0.client_secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers a secret of an application.
    pub fn remember_client_secret(&self, client_id: String, secret: ClientSecret) {
        self.0.client_secrets.lock().unwrap_or_else(PoisonError::into_inner).insert(client_id, secret);
    }

    /// The webhook attempts that are made while the clock moves.
    pub(crate) fn made_attempts(&self) -> &MadeAttempts {
        &self.0.made_attempts
    }

    /// The fault point of the sockets, for the service.
    pub fn socket_faults(&self) -> Arc<dyn SocketFaultPoint> {
        self.0.sockets.clone()
    }

    /// The sockets.
    pub(crate) fn sockets(&self) -> &Arc<Sockets> {
        &self.0.sockets
    }

    /// The owners of session URLs.
    pub(crate) fn url_owners(&self) -> &UrlOwners {
        &self.0.url_owners
    }

    /// The monotonic time of the node; zero before it runs.
    pub(crate) fn monotonic(&self) -> Duration {
        self.parts().map(|parts| parts.service.clock().monotonic()).unwrap_or_default()
    }

    /// The parts of the running node; `None` until it runs.
    pub fn parts(&self) -> Option<&Parts> {
        self.0.parts.get()
    }
}

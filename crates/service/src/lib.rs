//! The operations of the service, one function for each. A function reads the store, applies the rules,
//! writes, commits, and only then publishes.
//!
//! The edges (`web`, `gateway`, `jobs`) hold a [`Service`] and call these functions. They send no query to
//! the store. If an operation returns rows of the store unchanged, the module of the operation re-exports
//! their type.
//!
//! Each noun has a file. The files are grouped in directories: `channel`, `chat`, `cluster`, `identity`,
//! `live`, `platform`, `realtime` and `webhook`. Several directories use the modules at the root. The
//! modules of the directories are private. The modules of the operations are re-exported here.

mod channel;
mod chat;
mod clock;
mod cluster;
pub mod drops;
mod entropy;
mod error;
mod failure_log;
mod identity;
mod live;
mod log_limit;
mod platform;
pub mod quotas;
mod realtime;
mod run_to_completion;
mod webhook;
mod work;

pub use channel::{badges, broadcast_settings, channel_admin, channels, relations, restrictions};
pub use chat::{chat_settings, chats};
pub use cluster::{housekeeping, nodes};
pub use identity::{
    application_life, application_secrets, application_switch, applications, consents, credentials, notices,
    organizations, sign_in, tokens,
};
pub use live::{categories, lives, watching};
pub use platform::{bulk, channel_events, idempotency};
pub use realtime::{event_outbox, lost_events, session_details, sessions, subscriptions};
pub use webhook::{deliveries, listeners, webhooks};

use std::sync::{Arc, OnceLock};

use bus::Bus;
use domain::cursor::CursorKey;
use domain::seal::ServiceKey;
use domain::{ApplicationSecretId, ClientId, NodeId, Profile, Timestamp};
use store::{SendAsyncFnOnce, Store, Tx};

pub use clock::{Clock, ManualClock};
pub use cluster::job_metrics::{Job, JobRuns};
pub use entropy::Entropy;
pub use error::Error;
pub use failure_log::FailureLog;
pub use identity::password::PasswordCost;
pub use log_limit::LogLimit;
pub use store::queries::Page;
pub use store::queries::channels::{ChannelRecord, PersonListing};
pub use store::queries::session_details::SessionFilter;
pub use store::queries::tokens::Holder;

use chat::message_times::MessageTimes;
use chat::slow_chats::SlowChats;
use cluster::job_metrics::JobMetrics;
use cluster::nodes::{Membership, NodeState};
use identity::credentials::CachedCredentials;
use identity::last_used::LastUsed;
use identity::password::Passwords;
use identity::warned_applications::WarnedApplications;
use live::category_index::CategoryIndex;
use platform::bulk::NodeLocks;
use quotas::Quotas;
use realtime::event_outbox::EventOutbox;
use realtime::lost_events::LostEventRecorder;
use realtime::sessions::UndeliveredChanges;
use realtime::used_urls::UsedUrls;
use webhook::deliveries::DeliveryQueue;
use webhook::webhooks::WebhookSettings;

/// The parts of a service.
pub struct ServiceDeps {
    /// The database.
    pub store: Store,
    /// Carries messages to the gateways.
    pub bus: Arc<dyn Bus>,
    /// The source of time.
    pub clock: Clock,
    /// The source of randomness.
    pub entropy: Entropy,
    /// This node's name.
    pub node: NodeId,
    /// The profile of applications without a profile of their own.
    pub profile: Profile,
    /// Whether quotas are enforced.
    pub quotas: bool,
    /// Authenticates cursors and seals secrets. Every node of a service has the same key.
    pub key: ServiceKey,
    /// The entry of this node in the list of nodes.
    pub membership: Membership,
    /// The settings of webhook calls.
    pub webhooks: WebhookSettings,
    /// The cost of hashing a password.
    pub password_cost: PasswordCost,
}

/// All operations of Stagedoor, shared by every edge of a node. Cheap to clone.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    store: Store,
    bus: Arc<dyn Bus>,
    clock: Clock,
    entropy: Entropy,
    node: NodeId,
    profile: Profile,
    quotas: Quotas,
    passwords: Passwords,
    applications_last_used: LastUsed<ClientId>,
    secrets_last_used: LastUsed<ApplicationSecretId>,
    credentials: CachedCredentials,
    lost_events: LostEventRecorder,
    key: ServiceKey,
    cursors: CursorKey,
    categories: CategoryIndex,
    node_state: NodeState,
    undelivered_changes: Arc<UndeliveredChanges>,
    used_urls: UsedUrls,
    jobs: JobMetrics,
    webhooks: WebhookSettings,
    delivery_queue: DeliveryQueue,
    message_times: Arc<MessageTimes>,
    warned: WarnedApplications,
    /// The base URL of the service's pictures.
    pictures: OnceLock<Box<str>>,
    event_outbox: EventOutbox,
    node_locks: NodeLocks,
    slow_chats: Arc<SlowChats>,
    failures: FailureLog,
    /// Limits the log lines about codes and refresh tokens that were presented again after their use.
    reused_credentials: LogLimit,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("node", &self.0.node).finish_non_exhaustive()
    }
}

impl Service {
    /// Creates a service from its parts.
    pub fn new(deps: ServiceDeps) -> Self {
        let ServiceDeps {
            store,
            bus,
            clock,
            entropy,
            node,
            profile,
            quotas,
            key,
            membership,
            webhooks,
            password_cost,
        } = deps;
        let quotas = Quotas::new(quotas);
        let passwords = Passwords::new(entropy.clone(), clock.clone(), password_cost);
        let cursors = key.cursors();
        let categories = CategoryIndex::new();
        let credentials = CachedCredentials::default();
        let node_state = NodeState::new(membership, &clock);
        Self(Arc::new(Inner {
            store,
            bus,
            clock,
            entropy,
            node,
            profile,
            quotas,
            passwords,
            applications_last_used: LastUsed::default(),
            secrets_last_used: LastUsed::default(),
            credentials,
            lost_events: LostEventRecorder::default(),
            key,
            cursors,
            categories,
            node_state,
            undelivered_changes: Arc::default(),
            used_urls: UsedUrls::default(),
            jobs: JobMetrics::default(),
            webhooks,
            delivery_queue: DeliveryQueue::default(),
            message_times: Arc::default(),
            warned: WarnedApplications::default(),
            pictures: OnceLock::new(),
            event_outbox: EventOutbox::default(),
            node_locks: NodeLocks::default(),
            slow_chats: Arc::default(),
            failures: FailureLog::default(),
            reused_credentials: LogLimit::default(),
        }))
    }

    /// The source of time.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The source of randomness.
    pub fn entropy(&self) -> &Entropy {
        &self.0.entropy
    }

    /// This node's name.
    pub fn node(&self) -> &NodeId {
        &self.0.node
    }

    /// The quotas of callers.
    pub fn quotas(&self) -> &Quotas {
        &self.0.quotas
    }

    /// Returns a subscriber that receives every message published from now on.
    pub fn subscribe_to_bus(&self) -> bus::Subscriber {
        self.0.bus.subscribe()
    }

    /// The counters of the store.
    pub fn store_stats(&self) -> store::Stats {
        self.0.store.stats()
    }

    /// The state of the store's disk, as the last writes showed it.
    pub fn store_disk(&self) -> store::Disk {
        self.0.store.disk()
    }

    /// The profile of the answers to an application: its own, else the service's.
    pub fn profile(&self, own: Option<Profile>) -> Profile {
        own.unwrap_or(self.0.profile)
    }

    /// Closes the store after the running transactions.
    pub async fn close(&self) {
        self.0.store.close().await;
    }

    fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Runs a transaction that only reads.
    async fn read<T, F>(&self, work: F) -> Result<T, Error>
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.0.store.read(work).await
    }

    /// Runs a transaction that only reads. All its statements see the same snapshot.
    async fn snapshot<T, F>(&self, work: F) -> Result<T, Error>
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.0.store.snapshot(work).await
    }

    /// The key that seals and opens the cursors of lists.
    fn cursors(&self) -> &CursorKey {
        &self.0.cursors
    }

    /// The key that seals secrets that must be shown again.
    fn key(&self) -> &ServiceKey {
        &self.0.key
    }

    fn random<const N: usize>(&self) -> [u8; N] {
        self.0.entropy.bytes()
    }
}

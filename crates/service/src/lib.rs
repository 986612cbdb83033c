//! One function for each operation of the service. Each loads the facts, applies the rule, writes, commits,
//! and only then publishes.
//!
//! The edges (`web`, `gateway`, `jobs`) hold a [`Service`] and call these functions. They send no query to
//! the store. Rows of the store that an operation answers with unchanged are re-exported by the module of the
//! operation.
//!
//! Each noun has a file. Files stand in rooms: `channel`, `chat`, `cluster`, `identity`, `live`, `platform`,
//! `realtime` and `webhook`. A module at the root is used by several rooms. The rooms are private; the
//! modules of the operations are re-exported here.

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
    /// The profile of applications that chose none.
    pub profile: Profile,
    /// Whether quotas are enforced.
    pub quotas: bool,
    /// Authenticates cursors and seals secrets. Every node of a service has the same key.
    pub key: ServiceKey,
    /// How this node introduces itself to the other nodes.
    pub membership: Membership,
    /// How webhooks are called.
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
    /// The base URL of the service's own pictures.
    pictures: OnceLock<Box<str>>,
    event_outbox: EventOutbox,
    node_locks: NodeLocks,
    slow_chats: Arc<SlowChats>,
    failures: FailureLog,
    /// Codes and refresh tokens that were presented again after their use.
    reused_credentials: LogLimit,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("node", &self.0.node).finish_non_exhaustive()
    }
}

impl Service {
    /// Puts a service together.
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

    /// Receives every message that is published from now on.
    pub fn subscribe_to_bus(&self) -> bus::Subscriber {
        self.0.bus.subscribe()
    }

    /// The counters of the store.
    pub fn store_stats(&self) -> store::Stats {
        self.0.store.stats()
    }

    /// Whether the disk of the store has room, as far as writes have shown.
    pub fn store_disk(&self) -> store::Disk {
        self.0.store.disk()
    }

    /// The profile that answers to an application follow: its own, else the service's.
    pub fn profile(&self, own: Option<Profile>) -> Profile {
        own.unwrap_or(self.0.profile)
    }

    /// Closes the store after its running work.
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

    /// [`Service::read`] whose statements all see the same moment.
    async fn snapshot<T, F>(&self, work: F) -> Result<T, Error>
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.0.store.snapshot(work).await
    }

    /// Makes and checks the cursors of lists.
    fn cursors(&self) -> &CursorKey {
        &self.0.cursors
    }

    /// Seals secrets that must be shown again.
    fn key(&self) -> &ServiceKey {
        &self.0.key
    }

    fn random<const N: usize>(&self) -> [u8; N] {
        self.0.entropy.bytes()
    }
}

//! The service: its parts, the state of this node in memory, and access to both.

use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock};

use bus::Bus;
use domain::audit::Actor;
use domain::client_address::AddressBlock;
use domain::cursor::CursorKey;
use domain::operator_key::OperatorRole;
use domain::retention::Retention;
use domain::seal::ServiceKey;
use domain::{ApplicationSecretId, ClientId, NodeId, OperatorKeyId, Profile, Timestamp};
use store::{Measures, SendAsyncFnOnce, Store, Tx};
use tracing::Instrument;

use crate::acting::Acting;
use crate::channel::follow_change::FollowChange;
use crate::chat::chat_append::ChatAppend;
use crate::chat::message_times::MessageTimes;
use crate::chat::messages::PostedMessage;
use crate::chat::slow_chats::SlowChats;
use crate::cluster::job_metrics::JobMetrics;
use crate::cluster::node_state::{Membership, NodeState};
use crate::commit_queue::CommitQueue;
use crate::developer::developer_settings::DeveloperSettings;
use crate::developer::usage_counters::{RefusedRequests, UsageCounters};
use crate::fault_points::SocketFaultPoint;
use crate::identity::account_settings::AccountSettings;
use crate::identity::credential_cache::CachedCredentials;
use crate::identity::last_used::LastUsed;
use crate::identity::password::{PasswordCost, Passwords};
use crate::identity::warned_applications::WarnedApplications;
use crate::live::category_index::CategoryIndex;
use crate::live::watching_reports::{Watching, WatchingReport};
use crate::platform::node_locks::NodeLocks;
use crate::quotas::Quotas;
use crate::realtime::event_batches::EventOutbox;
use crate::realtime::lost_event_recorder::LostEventRecorder;
use crate::realtime::subscription_change::SubscriptionChange;
use crate::realtime::undelivered_changes::UndeliveredChanges;
use crate::realtime::used_urls::UsedUrls;
use crate::webhook::attempt_faults::AttemptFaultPoint;
use crate::webhook::delivery_queue::DeliveryQueue;
use crate::webhook::listener_attempts::ListenerAttempts;
use crate::webhook::webhook_settings::WebhookSettings;
use crate::write_retries::{RetriedWrites, WriteRetries};
use crate::{Clock, Entropy, Error, FailureLog, LogLimit, Purpose};

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
    /// The settings of accounts.
    pub accounts: AccountSettings,
    /// The settings of the developer center.
    pub developers: DeveloperSettings,
    /// How long rows are kept that grow with use.
    pub retention: Retention,
    /// The cost of hashing a password.
    pub password_cost: PasswordCost,
    /// Interferes with the sockets of this node. Only of a sandbox.
    pub socket_faults: Option<Arc<dyn SocketFaultPoint>>,
    /// Interferes with the webhook attempts of this node. Only of a sandbox.
    pub webhook_faults: Option<Arc<dyn AttemptFaultPoint>>,
}

/// All operations of Stagedoor, shared by every edge of a node. Cheap to clone. A handle may have an actor,
/// whose changes are written to the audit log, and the address of a caller, which pays for checks of
/// passwords.
#[derive(Clone)]
pub struct Service(pub(crate) Arc<Inner>, pub(crate) Option<Arc<Acting>>, pub(crate) Option<AddressBlock>);

/// The parts of a node's [`Service`].
pub(crate) struct Inner {
    pub store: Store,
    pub bus: Arc<dyn Bus>,
    pub clock: Clock,
    pub entropy: Entropy,
    pub node: NodeId,
    pub profile: Profile,
    pub quotas: Quotas,
    pub accounts: AccountSettings,
    pub developers: DeveloperSettings,
    pub retention: Retention,
    pub passwords: Passwords,
    pub applications_last_used: LastUsed<ClientId>,
    pub secrets_last_used: LastUsed<ApplicationSecretId>,
    pub operator_keys_last_used: LastUsed<OperatorKeyId>,
    pub usage: UsageCounters,
    pub refused: RefusedRequests,
    /// What was measured of the store last.
    pub measures: Mutex<Option<Measures>>,
    pub credentials: CachedCredentials,
    pub lost_events: LostEventRecorder,
    pub key: ServiceKey,
    pub cursors: CursorKey,
    pub categories: CategoryIndex,
    pub node_state: NodeState,
    pub undelivered_changes: Arc<UndeliveredChanges>,
    pub used_urls: UsedUrls,
    pub jobs: JobMetrics,
    pub webhooks: WebhookSettings,
    pub delivery_queue: DeliveryQueue,
    pub listener_attempts: ListenerAttempts,
    pub message_times: Arc<MessageTimes>,
    pub chat_appends: CommitQueue<ChatAppend, PostedMessage>,
    pub watching_reports: CommitQueue<WatchingReport, Watching>,
    pub follow_changes: CommitQueue<FollowChange, ()>,
    pub subscription_changes: CommitQueue<SubscriptionChange, ()>,
    pub warned: WarnedApplications,
    /// The base URL of the service's pictures.
    pub pictures: OnceLock<Box<str>>,
    pub event_outbox: Arc<EventOutbox>,
    pub node_locks: NodeLocks,
    pub slow_chats: Arc<SlowChats>,
    pub failures: FailureLog,
    pub write_retries: WriteRetries,
    /// Limits the log lines about codes and refresh tokens that were presented again after their use.
    pub reused_credentials: LogLimit,
    pub socket_faults: Option<Arc<dyn SocketFaultPoint>>,
    pub webhook_faults: Option<Arc<dyn AttemptFaultPoint>>,
    /// Numbers the entries of the audit log.
    pub audit_counter: Arc<AtomicU32>,
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
            accounts,
            developers,
            retention,
            password_cost,
            socket_faults,
            webhook_faults,
        } = deps;
        let quotas = Quotas::new(quotas);
        let passwords = Passwords::new(entropy.clone(), clock.clone(), password_cost);
        let cursors = key.cursors();
        let categories = CategoryIndex::new();
        let credentials = CachedCredentials::default();
        let node_state = NodeState::new(membership, &clock);
        let inner = Inner {
            store,
            bus,
            clock,
            entropy,
            node,
            profile,
            quotas,
            accounts,
            developers,
            retention,
            passwords,
            applications_last_used: LastUsed::default(),
            secrets_last_used: LastUsed::default(),
            operator_keys_last_used: LastUsed::default(),
            usage: UsageCounters::default(),
            refused: RefusedRequests::default(),
            measures: Mutex::default(),
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
            listener_attempts: ListenerAttempts::default(),
            message_times: Arc::default(),
            chat_appends: CommitQueue::default(),
            watching_reports: CommitQueue::default(),
            follow_changes: CommitQueue::default(),
            subscription_changes: CommitQueue::default(),
            warned: WarnedApplications::default(),
            pictures: OnceLock::new(),
            event_outbox: Arc::default(),
            node_locks: NodeLocks::default(),
            slow_chats: Arc::default(),
            failures: FailureLog::default(),
            write_retries: WriteRetries::default(),
            reused_credentials: LogLimit::default(),
            socket_faults,
            webhook_faults,
            audit_counter: Arc::default(),
        };
        Self(Arc::new(inner), None, None)
    }

    /// A handle of the same service for this actor with this operator role. What it changes is written to the
    /// audit log, with the id of the request.
    pub fn acting_as(&self, actor: Actor, role: Option<OperatorRole>, request_id: String) -> Self {
        let counter = self.0.audit_counter.clone();
        Self(self.0.clone(), Some(Arc::new(Acting { actor, role, request_id, counter })), self.2)
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

    /// Interferes with the sockets of this node; `None` but in a sandbox.
    pub fn socket_faults(&self) -> Option<&Arc<dyn SocketFaultPoint>> {
        self.0.socket_faults.as_ref()
    }

    /// Interferes with the webhook attempts of this node; `None` but in a sandbox.
    pub fn webhook_faults(&self) -> Option<&Arc<dyn AttemptFaultPoint>> {
        self.0.webhook_faults.as_ref()
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

    /// The writes that were run again since the start.
    pub fn retried_writes(&self) -> RetriedWrites {
        self.0.write_retries.counts()
    }

    /// The state of the store's disk, as the last writes showed it.
    pub fn store_disk(&self) -> store::Disk {
        self.0.store.disk()
    }

    /// The profile of the answers to an application: its own, else the service's.
    pub fn profile(&self, own: Option<Profile>) -> Profile {
        own.unwrap_or(self.0.profile)
    }

    /// Logs a failure. The same failure is logged once a minute, and with the level `debug` each time.
    pub fn log_failure(&self, message: &'static str, error: &Error) {
        self.0.failures.report(message, error, self.clock().monotonic());
    }

    /// Copies all committed data into a new SQLite file, for the snapshot of a sandbox.
    ///
    /// # Errors
    /// The store is not a SQLite file, or cannot be copied.
    pub async fn copy_store(&self, path: PathBuf) -> Result<(), Error> {
        Ok(self.0.store.copy_to(path).await?)
    }

    /// Closes the store after the running transactions.
    pub async fn close(&self) {
        self.0.store.close().await;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Runs a transaction that only reads.
    pub(crate) fn read<T, F>(&self, work: F) -> impl Future<Output = Result<T, Error>> + Send
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        let span = tracing::trace_span!(target: "traces", "store read");
        self.0.store.read(work).instrument(span)
    }

    /// As [`read`](Self::read). All statements see the same snapshot.
    pub(crate) fn snapshot<T, F>(&self, work: F) -> impl Future<Output = Result<T, Error>> + Send
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.0.store.snapshot(work)
    }

    /// The key that seals and opens the cursors of lists.
    pub(crate) fn cursors(&self) -> &CursorKey {
        &self.0.cursors
    }

    /// Makes a page of up to `size` items of the list that `context` names, with the cursor of the next page.
    /// `items` has one item more than the page if there is a next page. `position` is the position of an
    /// item, for the cursor.
    pub(crate) fn page<T>(
        &self,
        context: &str,
        mut items: Vec<T>,
        size: i64,
        position: impl FnOnce(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let has_next = items.len() > size;
        items.truncate(size);
        let last = items.last().filter(|_| has_next);
        let next = last.map(|last| self.cursors().seal(context, &position(last)));
        (items, next)
    }

    /// The key that seals secrets that must be shown again.
    pub(crate) fn key(&self) -> &ServiceKey {
        &self.0.key
    }

    pub(crate) fn random<const N: usize>(&self, purpose: Purpose) -> [u8; N] {
        self.0.entropy.bytes(purpose)
    }
}

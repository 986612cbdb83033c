//! The state that all sessions of a node share, and the dispatch of messages from the bus to the shards.

use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bus::{Delivery, Message, Subscriber};
use domain::{SessionKey, Timestamp};
use service::Service;
use service::losses::{LOSSES_KNOWN_WITHIN, Lost, SeenLosses};
use socketio::{CloseReason, Millis};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use crate::config::{CATCH_UPS_MAX, Config, GAP_LOOKUP_TIMEOUT, INBOX_MAX, LOST_EVENTS_POLL_EVERY};
use crate::disconnects::Disconnects;
use crate::fanout::Encoded;
use crate::http::Denied;
use crate::queue::Limits;
use crate::session::Session;
use crate::shard::{Command, Join, PendingJoins, Shard};
use crate::sid::Sid;
use crate::stats::{Counters, add};

/// Number of locks over which the sids of polling sessions are spread.
const SID_LOCKS: usize = 16;

/// The state that all sessions of a node share.
pub(crate) struct Hub {
    pub(crate) service: Service,
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    shards: Box<[Inbox]>,
    /// Sessions by sid, for requests. A session that was opened by polling is listed until its upgrade or its
    /// end.
    sids: [Mutex<HashMap<Sid, Arc<Session>>>; SID_LOCKS],
    /// Number of changes whose session no shard knew. A session that joins while this number rises may have
    /// missed a change.
    pub(crate) unmatched_changes: AtomicU64,
    /// Number of times that the other nodes declared this node dead.
    pub(crate) declared_dead: AtomicU64,
    pub(crate) draining: AtomicBool,
    /// Start of the last completed read of lost events, on the monotonic clock.
    losses_read_at: watch::Sender<Duration>,
    /// Number of sessions whose end is not recorded in the store yet.
    pub(crate) live: watch::Sender<usize>,
    /// Number of handshakes that are being answered.
    handshakes: AtomicUsize,
    pub(crate) catch_ups: Semaphore,
    pub(crate) disconnects: Disconnects,
    /// Wakes the reconciliation, so that it reads the store at once.
    pub(crate) reconcile_now: Notify,
}

/// The inputs of one shard.
struct Inbox {
    pending_joins: Arc<PendingJoins>,
    commands: mpsc::Sender<Command>,
}

/// Reserves room for the session of one handshake.
pub(crate) struct HandshakePermit<'a>(&'a AtomicUsize);

impl Drop for HandshakePermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// The receiving ends of the bus and of the inboxes. [`Hub::run`] consumes them.
pub(crate) struct Receivers {
    bus: Subscriber,
    /// The inboxes of the shards, in the order of the shards.
    inboxes: Vec<mpsc::Receiver<Command>>,
}

impl Hub {
    pub(crate) fn new(service: Service, config: Config) -> (Arc<Self>, Receivers) {
        let inbox = |_| {
            let (commands, inbox) = mpsc::channel(INBOX_MAX);
            (Inbox { pending_joins: Arc::default(), commands }, inbox)
        };
        let (shards, inboxes): (Vec<_>, Vec<_>) = (0..config.shards.max(1)).map(inbox).unzip();
        let hub = Arc::new(Self {
            service,
            config,
            counters: Counters::default(),
            shards: shards.into(),
            sids: std::array::from_fn(|_| Mutex::default()),
            unmatched_changes: AtomicU64::new(0),
            declared_dead: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            losses_read_at: watch::Sender::new(Duration::ZERO),
            live: watch::Sender::new(0),
            handshakes: AtomicUsize::new(0),
            catch_ups: Semaphore::new(CATCH_UPS_MAX),
            disconnects: Disconnects::default(),
            reconcile_now: Notify::new(),
        });
        let receivers = Receivers { bus: hub.service.subscribe_to_bus(), inboxes };
        (hub, receivers)
    }

    /// The monotonic time in milliseconds, as the protocol counts it.
    pub(crate) fn now_ms(&self) -> Millis {
        u64::try_from(self.service.clock().monotonic().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn limits(&self) -> Limits<'_> {
        Limits {
            messages_max: self.config.queue_messages_max,
            bytes_max: self.config.queue_bytes_max,
            gauge: &self.counters.queued_bytes,
        }
    }

    /// The shard that owns a session. There is at least one shard.
    fn shard_of(&self, key: &SessionKey) -> &Inbox {
        let mut hash = DefaultHasher::new();
        key.hash(&mut hash);
        &self.shards[(hash.finish() % self.shards.len() as u64) as usize]
    }

    /// Sends a command to a session's shard. `false` when the shard has stopped, because [`Hub::run`] has
    /// ended.
    pub(crate) async fn send(&self, key: &SessionKey, command: Command) -> bool {
        self.shard_of(key).commands.send(command).await.is_ok()
    }

    /// Hands a session to its shard. `false` as for [`send`](Self::send).
    pub(crate) fn join(&self, join: Join) -> bool {
        self.shard_of(&join.session.key).pending_joins.push(join)
    }

    /// Every session of this node that has joined its shard.
    pub(crate) async fn sessions(&self) -> Vec<Arc<Session>> {
        let mut sessions = Vec::new();
        for shard in &self.shards {
            let (reply, answer) = tokio::sync::oneshot::channel();
            if shard.commands.send(Command::List(reply)).await.is_ok() {
                sessions.extend(answer.await.unwrap_or_default());
            }
        }
        sessions
    }

    fn sids(&self, sid: &Sid) -> std::sync::MutexGuard<'_, HashMap<Sid, Arc<Session>>> {
        let mut hash = DefaultHasher::new();
        sid.hash(&mut hash);
        let lock = &self.sids[(hash.finish() % SID_LOCKS as u64) as usize];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register_sid(&self, session: &Arc<Session>) {
        self.sids(&session.sid).insert(session.sid, session.clone());
    }

    pub(crate) fn unregister_sid(&self, sid: &Sid) {
        self.sids(sid).remove(sid);
    }

    pub(crate) fn find(&self, sid: &Sid) -> Option<Arc<Session>> {
        self.sids(sid).get(sid).cloned()
    }

    /// Reserves room for the session of one handshake, until the guard is dropped.
    ///
    /// # Errors
    /// [`Denied::Full`] when the node has as many sessions as it may hold.
    pub(crate) fn reserve_handshake(&self) -> Result<HandshakePermit<'_>, Denied> {
        let handshakes = self.handshakes.fetch_add(1, SeqCst);
        let permit = HandshakePermit(&self.handshakes);
        let taken = handshakes.saturating_add(*self.live.borrow());
        if taken < self.config.sessions_max { Ok(permit) } else { Err(Denied::Full) }
    }

    /// Dispatches deliveries of the bus to the shards until the bus ends.
    pub(crate) async fn run(self: Arc<Self>, receivers: Receivers) {
        let Receivers { mut bus, inboxes } = receivers;
        // The shards stop when this future is dropped. A thread cannot be aborted as a task can.
        let (_running, stopped) = watch::channel(());
        let mut shards: JoinSet<()> = JoinSet::new();
        for (number, inbox) in inboxes.into_iter().enumerate() {
            let pending_joins = self.shards[number].pending_joins.clone();
            let (shard, mut stopped) = (Shard::new(self.clone(), pending_joins, inbox), stopped.clone());
            let runtime = Handle::current();
            shards.spawn_blocking(move || {
                name_thread(number);
                runtime.block_on(async {
                    tokio::select! {
                        biased;
                        _ = stopped.changed() => {}
                        () = shard.run() => {}
                    }
                });
            });
        }
        if self.service.shares_bus() {
            shards.spawn(self.clone().poll_lost_events());
        }
        loop {
            tokio::select! {
                delivery = bus.next() => match delivery {
                    Some(delivery) => self.dispatch(delivery).await,
                    None => return,
                },
                ended = shards.join_next() => {
                    // A shard ends only with this future or by a panic. The panic is passed on.
                    if let Some(Err(error)) = ended && let Ok(panic) = error.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                    return;
                }
            }
        }
    }

    pub(crate) async fn dispatch(&self, delivery: Delivery) {
        match delivery {
            Delivery::Message(message) => self.on_message(message).await,
            Delivery::Lost(channel) => self.close_subscribed_to(Lost::Channels(vec![channel])).await,
            Delivery::Gap { since } => self.on_gap(since).await,
        }
    }

    async fn on_message(&self, message: Message) {
        match message {
            Message::Event(event) => {
                self.wait_for_known_losses().await;
                let event = Arc::new(Encoded::new(event));
                self.send_to_all(|| Command::Event(event.clone())).await;
            }
            Message::SessionChanged { session_key, change, .. } => {
                self.send(&session_key.clone(), Command::Change(Box::new((session_key, change)))).await;
            }
            // A session that has not joined its shard yet is found by the reconciliation.
            Message::SessionEvicted { session_key, .. } => {
                let end = Command::End(session_key.clone(), CloseReason::Evicted);
                self.send(&session_key, end).await;
            }
            Message::NodeDeclaredDead { .. } => self.on_declared_dead().await,
        }
    }

    /// Closes every session, because the other nodes declared this node dead and ended its sessions in the
    /// store.
    pub(crate) async fn on_declared_dead(&self) {
        self.declared_dead.fetch_add(1, SeqCst);
        for session in self.sessions().await {
            session.end(CloseReason::NodeDead);
        }
    }

    /// Closes the sessions that may have missed an event, before any later event is delivered. Then it wakes
    /// the reconciliation, for changes that may have been lost.
    async fn on_gap(&self, since: Timestamp) {
        tracing::warn!(
            since_ms = since.as_millis(),
            "messages may have been lost on the bus: closing the affected sessions"
        );
        let lost = tokio::select! {
            events = self.service.events_since(since) => events.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to read the missed events: closing every session with a subscription");
                Lost::Everything
            }),
            () = self.service.clock().sleep(GAP_LOOKUP_TIMEOUT) => Lost::Everything,
        };
        // Counted after the lookup: an event after this moment is not part of the gap.
        add(&self.counters.gaps, 1);
        self.close_subscribed_to(lost).await;
        self.reconcile_now.notify_one();
    }

    /// Closes the sessions that are subscribed to channels whose events were lost.
    async fn close_subscribed_to(&self, lost: Lost) {
        let count = match &lost {
            Lost::Channels(channels) if channels.is_empty() => return,
            Lost::Channels(channels) => Some(channels.len()),
            Lost::Everything => None,
        };
        tracing::warn!(
            channels = count,
            "events were lost: closing the sessions subscribed to their channels"
        );
        let lost = Arc::new(lost);
        self.send_to_all(|| Command::Lost(lost.clone())).await;
    }

    /// Waits until this node has read every loss that was recorded before the next event was published.
    async fn wait_for_known_losses(&self) {
        let now = self.service.clock().monotonic();
        let is_known = |losses_read_at: &Duration| *losses_read_at + LOSSES_KNOWN_WITHIN >= now;
        if !self.service.shares_bus() || is_known(&self.losses_read_at.borrow()) {
            return;
        }
        let mut losses_read_at = self.losses_read_at.subscribe();
        let known = tokio::select! {
            // The sender lives in this hub, so the wait cannot fail.
            _ = losses_read_at.wait_for(is_known) => true,
            () = self.service.clock().sleep(GAP_LOOKUP_TIMEOUT) => false,
        };
        if !known {
            // This node cannot read the store, so any event may have been lost.
            self.close_subscribed_to(Lost::Everything).await;
            self.losses_read_at.send_replace(self.service.clock().monotonic());
        }
    }

    /// Polls the store for lost events, as long as this node runs.
    async fn poll_lost_events(self: Arc<Self>) {
        let mut seen = SeenLosses::default();
        loop {
            let began = self.service.clock().monotonic();
            match self.service.new_losses(&mut seen).await {
                Ok(lost) => {
                    self.close_subscribed_to(lost).await;
                    self.losses_read_at.send_replace(began);
                }
                Err(error) => self.service.log_failure("failed to poll for lost events", &error),
            }
            self.service.clock().sleep(LOST_EVENTS_POLL_EVERY).await;
        }
    }

    /// Sends a command to every shard. Waits for room in each inbox, which slows the bus down (backpressure).
    async fn send_to_all(&self, command: impl Fn() -> Command) {
        for shard in &self.shards {
            let _ = shard.commands.send(command()).await;
        }
    }
}

/// Names the thread of a shard, for tools such as `top -H` and `stagedoor-load`.
fn name_thread(shard: usize) {
    if let Ok(name) = CString::new(format!("shard-{shard}")) {
        // Nothing depends on the name.
        let _ = rustix::thread::set_name(&name);
    }
}

//! What all sessions of this node share, and the road from the bus to the shards.

use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bus::{Delivery, Message, Subscriber, Taker};
use domain::{SessionKey, Timestamp};
use service::Service;
use service::losses::{LOSSES_KNOWN_WITHIN, Lost, SeenLosses};
use socketio::{CloseReason, Millis};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use crate::config::{CATCH_UPS_MAX, Config, GAP_WITHIN, INBOX_MAX, LOOK_FOR_LOSSES};
use crate::departures::Departures;
use crate::fanout::Encoded;
use crate::http::Denied;
use crate::queue::Limits;
use crate::session::Session;
use crate::shard::{Command, Doorway, Join, Shard};
use crate::sid::Sid;
use crate::stats::{Counters, add};

/// Locks that the sids of polling sessions are spread over.
const SID_LOCKS: usize = 16;

/// What all sessions of this node share.
pub(crate) struct Hub {
    pub(crate) service: Service,
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    shards: Box<[Inbox]>,
    /// Sessions that requests may ask for: those that came by polling, until they are upgraded or over.
    sids: [Mutex<HashMap<Sid, Arc<Session>>>; SID_LOCKS],
    /// Changes of sessions that no shard had. A session that joins while this moves on may have missed one.
    pub(crate) strays: AtomicU64,
    /// Times that the other nodes took this one for dead.
    pub(crate) struck_off: AtomicU64,
    pub(crate) draining: AtomicBool,
    /// When the last look for losses began that is done, on the monotonic clock.
    looked: watch::Sender<Duration>,
    /// Sessions whose end is not recorded yet.
    pub(crate) live: watch::Sender<usize>,
    /// Handshakes that are being answered.
    opening: AtomicUsize,
    pub(crate) catch_ups: Semaphore,
    pub(crate) departures: Departures,
    /// Wakes the vigil, for somebody who has reason to ask the store at once.
    pub(crate) look_now: Notify,
}

/// The ways into one shard.
struct Inbox {
    doorway: Arc<Doorway>,
    commands: mpsc::Sender<Command>,
}

/// Whom a message concerns.
enum Told {
    /// Every shard.
    All(Arc<Encoded>),
    /// The shard of that number.
    One(usize, Command),
    /// The node as a whole.
    Hub,
}

/// A place that is kept for a session.
pub(crate) struct HandshakePlace<'a>(&'a AtomicUsize);

impl Drop for HandshakePlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// The receiving ends, which [`Hub::run`] consumes.
pub(crate) struct Ends {
    bus: Subscriber,
    /// Those of the shards, in their order.
    inboxes: Vec<mpsc::Receiver<Command>>,
}

impl Hub {
    pub(crate) fn new(service: Service, config: Config) -> (Arc<Self>, Ends) {
        let inbox = |_| {
            let (commands, inbox) = mpsc::channel(INBOX_MAX);
            (Inbox { doorway: Arc::default(), commands }, inbox)
        };
        let (shards, inboxes): (Vec<_>, Vec<_>) = (0..config.shards.max(1)).map(inbox).unzip();
        let hub = Arc::new(Self {
            service,
            config,
            counters: Counters::default(),
            shards: shards.into(),
            sids: std::array::from_fn(|_| Mutex::default()),
            strays: AtomicU64::new(0),
            struck_off: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            looked: watch::Sender::new(Duration::ZERO),
            live: watch::Sender::new(0),
            opening: AtomicUsize::new(0),
            catch_ups: Semaphore::new(CATCH_UPS_MAX),
            departures: Departures::default(),
            look_now: Notify::new(),
        });
        // No strong one: the hub has the service, and that has the bus.
        let weak = Arc::downgrade(&hub);
        let ends = Ends { bus: hub.service.subscribe_to_bus_taking(weak), inboxes };
        (hub, ends)
    }

    /// The monotonic time that the protocol counts in.
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

    /// The shard that looks after a session.
    fn shard_of(&self, key: &SessionKey) -> &Inbox {
        &self.shards[self.number_of_shard(key)]
    }

    /// Smaller than the number of shards, of which there is at least one.
    fn number_of_shard(&self, key: &SessionKey) -> usize {
        let mut hash = DefaultHasher::new();
        key.hash(&mut hash);
        (hash.finish() % self.shards.len() as u64) as usize
    }

    /// Tells a session's shard something. `false` when there is nobody to tell, because [`Hub::run`] has ended.
    pub(crate) async fn tell(&self, key: &SessionKey, command: Command) -> bool {
        self.shard_of(key).commands.send(command).await.is_ok()
    }

    /// Hands a session to its shard. `false` as for [`tell`](Self::tell).
    pub(crate) fn join(&self, join: Join) -> bool {
        self.shard_of(&join.session.key).doorway.enter(join)
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

    pub(crate) fn remember_sid(&self, session: &Arc<Session>) {
        self.sids(&session.sid).insert(session.sid, session.clone());
    }

    pub(crate) fn forget_sid(&self, sid: &Sid) {
        self.sids(sid).remove(sid);
    }

    pub(crate) fn find(&self, sid: &Sid) -> Option<Arc<Session>> {
        self.sids(sid).get(sid).cloned()
    }

    /// Keeps a place for the session of one handshake, for as long as the handshake takes.
    ///
    /// # Errors
    /// [`Denied::Full`] when there is none.
    pub(crate) fn place_for_one(&self) -> Result<HandshakePlace<'_>, Denied> {
        let opening = self.opening.fetch_add(1, SeqCst);
        let place = HandshakePlace(&self.opening);
        let taken = opening.saturating_add(*self.live.borrow());
        if taken < self.config.sessions_max { Ok(place) } else { Err(Denied::Full) }
    }

    /// Hands everything to the shards that the bus brings and they did not [take at once](Taker), until the bus ends.
    pub(crate) async fn run(self: Arc<Self>, ends: Ends) {
        let Ends { mut bus, inboxes } = ends;
        // Ends with this future, whatever ends it: a thread cannot be aborted as a task can.
        let (_running, stopped) = watch::channel(());
        let mut shards: JoinSet<()> = JoinSet::new();
        for (number, inbox) in inboxes.into_iter().enumerate() {
            let doorway = self.shards[number].doorway.clone();
            let (shard, mut stopped) = (Shard::new(self.clone(), doorway, inbox), stopped.clone());
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
            shards.spawn(self.clone().watch_losses());
        }
        loop {
            tokio::select! {
                delivery = bus.next() => match delivery {
                    Some(delivery) => self.dispatch(delivery).await,
                    None => return,
                },
                ended = shards.join_next() => {
                    // A shard ends with this very future only, or by a panic, which must not go unnoticed.
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
            Delivery::Message(message) => match self.told(&message) {
                Told::All(event) => {
                    self.know_losses().await;
                    self.tell_all(|| Command::Event(event.clone())).await;
                }
                Told::One(shard, command) => _ = self.shards[shard].commands.send(command).await,
                Told::Hub => self.struck_off().await,
            },
            Delivery::Lost(channel) => self.close_subscribed_to(Lost::Channels(vec![channel])).await,
            Delivery::Gap { since } => self.on_gap(since).await,
        }
    }

    /// Who is told what of a message.
    fn told(&self, message: &Message) -> Told {
        match message {
            Message::Event(event) => Told::All(Arc::new(Encoded::new(event.clone()))),
            Message::SessionChanged { session_key, change, .. } => {
                let change = Box::new((session_key.clone(), change.clone()));
                Told::One(self.number_of_shard(session_key), Command::Change(change))
            }
            // One that has not joined its shard yet is found by the vigil.
            Message::SessionEvicted { session_key, .. } => {
                let end = Command::End(session_key.clone(), CloseReason::Evicted);
                Told::One(self.number_of_shard(session_key), end)
            }
            Message::NodeStruckOff { .. } => Told::Hub,
        }
    }

    /// The other nodes took this one for dead and ended its sessions in the store: they end here too.
    pub(crate) async fn struck_off(&self) {
        self.struck_off.fetch_add(1, SeqCst);
        for session in self.sessions().await {
            session.end(CloseReason::NodeDead);
        }
    }

    /// Ends the sessions that may have missed an event, before anything that came later is delivered, and has the store
    /// asked at once for changes that were not heard of.
    async fn on_gap(&self, since: Timestamp) {
        tracing::warn!(since_ms = since.as_millis(), "messages may have been lost on the bus");
        let lost = tokio::select! {
            events = self.service.events_since(since) => events.unwrap_or_else(|error| {
                tracing::warn!(%error, "which events were missed is not known");
                Lost::Everything
            }),
            () = self.service.clock().sleep(GAP_WITHIN) => Lost::Everything,
        };
        // Only now: what happens after this is counted is no part of the gap.
        add(&self.counters.gaps, 1);
        self.close_subscribed_to(lost).await;
        self.look_now.notify_one();
    }

    /// Ends the sessions that are subscribed to channels whose events were lost.
    async fn close_subscribed_to(&self, lost: Lost) {
        let count = match &lost {
            Lost::Channels(channels) if channels.is_empty() => return,
            Lost::Channels(channels) => Some(channels.len()),
            Lost::Everything => None,
        };
        tracing::warn!(
            channels = count,
            "events were lost: sessions subscribed to their channels are closed"
        );
        let lost = Arc::new(lost);
        self.tell_all(|| Command::Lost(lost.clone())).await;
    }

    /// Waits until every loss is known whose call may have been answered before the next event was begun.
    async fn know_losses(&self) {
        let now = self.service.clock().monotonic();
        let is_known = |looked: &Duration| *looked + LOSSES_KNOWN_WITHIN >= now;
        if !self.service.shares_bus() || is_known(&self.looked.borrow()) {
            return;
        }
        let mut looked = self.looked.subscribe();
        let known = tokio::select! {
            // The sender lives in this very hub, so the wait cannot fail.
            _ = looked.wait_for(is_known) => true,
            () = self.service.clock().sleep(GAP_WITHIN) => false,
        };
        if !known {
            // Others write and this node cannot read.
            self.close_subscribed_to(Lost::Everything).await;
            self.looked.send_replace(self.service.clock().monotonic());
        }
    }

    /// Looks for events that their publishers gave up, for as long as this node runs.
    async fn watch_losses(self: Arc<Self>) {
        let mut seen = SeenLosses::default();
        loop {
            let began = self.service.clock().monotonic();
            match self.service.new_losses(&mut seen).await {
                Ok(lost) => {
                    self.close_subscribed_to(lost).await;
                    self.looked.send_replace(began);
                }
                Err(error) => self.service.log_failure("lost events could not be looked for", &error),
            }
            self.service.clock().sleep(LOOK_FOR_LOSSES).await;
        }
    }

    /// Waits for room in each inbox, which slows the bus down rather than growing.
    async fn tell_all(&self, command: impl Fn() -> Command) {
        for shard in &self.shards {
            let _ = shard.commands.send(command()).await;
        }
    }
}

/// Tells the shards' threads apart from others, for who looks at the process from outside: `top -H`, `stagedoor-load`.
fn name_thread(shard: usize) {
    if let Ok(name) = CString::new(format!("shard-{shard}")) {
        // Nothing depends on it.
        let _ = rustix::thread::set_name(&name);
    }
}

/// On the thread that publishes, which spares an event the way over a task of the runtime: two wake-ups.
impl Taker for Hub {
    fn take_now(&self, messages: &[Message]) -> bool {
        let told: Vec<_> = messages.iter().map(|message| self.told(message)).collect();
        // These have to wait: for what a shared bus may have lost, or for the list of the sessions.
        if self.service.shares_bus() || told.iter().any(|told| matches!(told, Told::Hub)) {
            return false;
        }
        // The places that a shard does not need are given back.
        let places = self.shards.iter().map(|shard| shard.commands.try_reserve_many(told.len()));
        let Ok(mut places) = places.collect::<Result<Vec<_>, _>>() else { return false };
        for told in told {
            match told {
                Told::All(event) => {
                    for place in places.iter_mut().filter_map(Iterator::next) {
                        place.send(Command::Event(event.clone()));
                    }
                }
                Told::One(shard, command) => {
                    if let Some(place) = places[shard].next() {
                        place.send(command);
                    }
                }
                Told::Hub => {}
            }
        }
        true
    }
}

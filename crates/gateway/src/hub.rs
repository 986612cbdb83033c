//! What all sessions of this node share, and the road from the bus to the shards.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use bus::{Delivery, Message, Subscriber};
use domain::SessionKey;
use service::Service;
use socketio::Millis;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use crate::config::{CATCH_UPS_MAX, Config, INBOX_MAX};
use crate::fanout::Encoded;
use crate::queue::Limits;
use crate::session::Session;
use crate::shard::{Command, Shard};
use crate::sid::Sid;
use crate::stats::{Counters, add};

/// Locks that the sids of polling sessions are spread over.
const SID_LOCKS: usize = 16;

/// What all sessions of this node share.
pub(crate) struct Hub {
    pub(crate) service: Service,
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    shards: Box<[mpsc::Sender<Command>]>,
    /// Sessions that requests may ask for: those that came by polling, until they are upgraded or over.
    sids: [Mutex<HashMap<Sid, Arc<Session>>>; SID_LOCKS],
    /// Changes of sessions that no shard had. A session that joins while this moves on may have missed one.
    pub(crate) strays: AtomicU64,
    /// Times that the other nodes took this one for dead.
    pub(crate) struck_off: AtomicU64,
    pub(crate) draining: AtomicBool,
    /// Sessions whose end is not recorded yet.
    pub(crate) live: watch::Sender<usize>,
    pub(crate) catch_ups: Semaphore,
}

/// The receiving ends, which [`Hub::run`] consumes.
pub(crate) struct Ends {
    bus: Subscriber,
    inboxes: Vec<mpsc::Receiver<Command>>,
}

impl Hub {
    pub(crate) fn new(service: Service, config: Config) -> (Arc<Self>, Ends) {
        let (senders, inboxes): (Vec<_>, Vec<_>) =
            (0..config.shards.max(1)).map(|_| mpsc::channel(INBOX_MAX)).unzip();
        let ends = Ends { bus: service.subscribe_to_bus(), inboxes };
        let hub = Self {
            service,
            config,
            counters: Counters::default(),
            shards: senders.into(),
            sids: std::array::from_fn(|_| Mutex::default()),
            strays: AtomicU64::new(0),
            struck_off: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            live: watch::Sender::new(0),
            catch_ups: Semaphore::new(CATCH_UPS_MAX),
        };
        (Arc::new(hub), ends)
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
    pub(crate) fn shard_of(&self, key: &SessionKey) -> &mpsc::Sender<Command> {
        let mut hash = DefaultHasher::new();
        key.hash(&mut hash);
        // The remainder is smaller than the number of shards, of which there is at least one.
        &self.shards[(hash.finish() % self.shards.len() as u64) as usize]
    }

    /// Tells a session's shard something. `false` when there is nobody to tell, because [`Hub::run`] has ended.
    pub(crate) async fn tell(&self, key: &SessionKey, command: Command) -> bool {
        self.shard_of(key).send(command).await.is_ok()
    }

    /// Every session of this node that has joined its shard.
    pub(crate) async fn sessions(&self) -> Vec<Arc<Session>> {
        let mut sessions = Vec::new();
        for shard in &self.shards {
            let (reply, answer) = tokio::sync::oneshot::channel();
            if shard.send(Command::List(reply)).await.is_ok() {
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

    /// Hands everything that the bus brings to the shards, until the bus ends.
    pub(crate) async fn run(self: Arc<Self>, ends: Ends) {
        let Ends { mut bus, inboxes } = ends;
        let mut shards: JoinSet<()> =
            inboxes.into_iter().map(|inbox| Shard::new(self.clone(), inbox).run()).collect();
        loop {
            tokio::select! {
                delivery = bus.next() => match delivery {
                    Some(delivery) => self.dispatch(delivery).await,
                    None => return,
                },
                ended = shards.join_next() => {
                    // A shard ends with this very task only, or by a panic, which must not go unnoticed.
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
            Delivery::Message(Message::Event(event)) => {
                let encoded = Arc::new(Encoded::new(event));
                self.tell_all(|| Command::Event(encoded.clone())).await;
            }
            Delivery::Message(Message::SessionChanged { session_key, change }) => {
                let change = Box::new((session_key.clone(), change));
                self.tell(&session_key, Command::Change(change)).await;
            }
            Delivery::Gap => {
                add(&self.counters.gaps, 1);
                tracing::warn!(
                    "messages may have been lost on the bus: sessions with subscriptions are closed"
                );
                self.strays.fetch_add(1, SeqCst);
                self.tell_all(|| Command::Gap).await;
            }
        }
    }

    /// Waits for room in each inbox, which slows the bus down rather than growing.
    async fn tell_all(&self, command: impl Fn() -> Command) {
        for shard in &self.shards {
            let _ = shard.send(command()).await;
        }
    }
}

//! The bus of many nodes, over NATS: what is published leaves by one connection, what is received comes by another, so
//! that a node that is slow to take what comes does not hold up what it says itself.
//!
//! | Module | What it does |
//! |---|---|
//! | `address` | where NATS is, the subjects |
//! | `protocol`, `link` | NATS's protocol, one connection |
//! | `publisher` | sends in order, learns what was confirmed, gives up what was not |
//! | `interests`, `receiver` | what this node wants to hear, and tells of what it may have missed |
//!
//! A `PING` behind something is the marker that it was understood: a server does what it is told in order, and answers
//! `PONG` when it has done everything before.

mod address;
mod interests;
mod link;
mod protocol;
mod publisher;
mod receiver;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::{ChannelId, NodeId, Timestamp};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::{Bus, Delivery, Interest, Message, QUEUE_MAX, Stats, Subscriber};
use interests::Interests;
use link::{Broken, Link};
use publisher::{Parcel, Publisher};
use receiver::Receiver;

pub use address::{Address, BadAddress, Prefix};

/// How long the first connection may take.
const FIRST_CONNECTION_WITHIN: Duration = Duration::from_secs(10);
/// How often both connections look at their deadlines.
const TICK: Duration = Duration::from_millis(250);
/// Ticks between two pings: a second.
const PING_TICKS: u64 = 4;
/// Ticks without a word from a server that is asked something all the while: three seconds.
const SILENT_TICKS: u64 = 12;
/// First pause before connecting again; doubled each time...
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
/// ... up to this: what is published when the bus is back must find it before it is given up.
const BACKOFF_LONGEST: Duration = Duration::from_secs(1);

/// What a [`NatsBus`] is made of.
pub struct Options {
    /// Where NATS is.
    pub address: Address,
    /// What its subjects begin with.
    pub prefix: Prefix,
    /// This node.
    pub node: NodeId,
    /// What time it is.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Random numbers.
    pub random: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// NATS was not reached.
#[derive(Debug, thiserror::Error)]
#[error("the bus at {address} was not reached within {} s: {reason}", FIRST_CONNECTION_WITHIN.as_secs())]
pub struct Unreachable {
    address: Address,
    reason: String,
}

/// What both connections share.
struct Shared {
    options: Options,
    interests: Arc<Interests>,
    counters: Counters,
    /// The connection that receives stands, and nothing that comes is dropped.
    is_heard: AtomicBool,
}

#[derive(Default)]
struct Counters {
    published: AtomicU64,
    lost: AtomicU64,
    received: AtomicU64,
    connections: AtomicU64,
    disconnects: AtomicU64,
    malformed: AtomicU64,
}

fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Relaxed);
}

/// The bus of many nodes. Its connections live as long as it does.
pub struct NatsBus {
    shared: Arc<Shared>,
    publisher: mpsc::Sender<Parcel>,
    /// One task for each connection; they end by being dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl std::fmt::Debug for NatsBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NatsBus").field("address", &self.shared.options.address).finish_non_exhaustive()
    }
}

impl NatsBus {
    /// Connects, and from then on as often as it takes.
    ///
    /// # Errors
    /// When NATS cannot be reached within 10 s: a node that nobody hears should not start.
    pub async fn connect(options: Options) -> Result<Self, Unreachable> {
        let shared = Arc::new(Shared {
            options,
            interests: Arc::new(Interests::new()),
            counters: Counters::default(),
            is_heard: AtomicBool::new(false),
        });
        let mut reason = None;
        let first = tokio::time::timeout(FIRST_CONNECTION_WITHIN, shared.connect("first", &mut reason));
        let link = first.await.map_err(|_| Unreachable {
            address: shared.options.address.clone(),
            reason: reason.unwrap_or_else(|| "it is silent".to_owned()),
        })?;
        let (publisher, parcels) = mpsc::channel(publisher::WAITING_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(Publisher::new(shared.clone(), parcels).run(link));
        Ok(Self { shared, publisher, tasks: Mutex::new(tasks) })
    }
}

impl Shared {
    /// Connects, however long it takes. What went wrong last is left in `reason`.
    async fn connect(&self, which: &str, reason: &mut Option<String>) -> Link {
        let Options { address, node, random, .. } = &self.options;
        let mut tries = 0_u32;
        loop {
            match Link::connect(address, tries as usize, node.as_str()).await {
                Ok(link) => {
                    self.counters.connections.fetch_add(1, Relaxed);
                    tracing::info!(%address, which, tries, "connected to the bus");
                    return link;
                }
                Err(error) => {
                    tracing::debug!(%address, which, tries, %error, "the bus was not reached");
                    *reason = Some(error.to_string());
                }
            }
            let pause = BACKOFF_FIRST.saturating_mul(2_u32.saturating_pow(tries)).min(BACKOFF_LONGEST);
            // Between half and all of it, so that nodes do not keep step.
            let jitter = pause.mul_f64((random() % 1_000) as f64 / 2_000.0);
            tokio::time::sleep(pause / 2 + jitter).await;
            tries = tries.saturating_add(1);
        }
    }

    fn disconnected(&self, which: &str, error: &Broken) {
        count(&self.counters.disconnects, 1);
        self.counters.connections.fetch_sub(1, Relaxed);
        tracing::warn!(address = %self.options.address, which, %error, "the connection to the bus ended");
    }

    fn now(&self) -> Timestamp {
        (self.options.now)()
    }
}

impl Bus for NatsBus {
    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>> {
        Box::pin(publisher::publish(&self.shared, &self.publisher, messages))
    }

    /// Makes the connection that receives; so it must be called on a runtime, and by one subscriber only: a second one
    /// finds the bus gone.
    fn subscribe(&self) -> Subscriber {
        let (sender, receiver) = mpsc::channel::<Delivery>(QUEUE_MAX);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() == 1 {
            tasks.spawn(Receiver::new(self.shared.clone(), sender).run());
        }
        Subscriber::new(receiver, None)
    }

    fn interest(&self, channel: &ChannelId) -> Interest {
        Interest::guarded(self.shared.interests.hold(channel, self.shared.now()))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_heard(&self) -> bool {
        self.shared.is_heard.load(Relaxed)
    }

    fn stats(&self) -> Stats {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        let counters = &self.shared.counters;
        Stats {
            published: of(&counters.published),
            lost: of(&counters.lost),
            received: of(&counters.received),
            interests: self.shared.interests.len() as u64,
            connections: of(&counters.connections),
            disconnects: of(&counters.disconnects),
            malformed: of(&counters.malformed),
        }
    }
}

//! The bus of many nodes, over NATS. A node publishes on one connection and receives on another, so a slow
//! subscriber does not delay publications.
//!
//! | Module | What it does |
//! |---|---|
//! | `subjects` | the subjects of channels and nodes |
//! | `publisher` | sends in order, waits for confirmations, gives up unconfirmed messages |
//! | `interests`, `receiver` | the channels that this node subscribes to; delivers messages and reports gaps |
//!
//! A `PING` after some operations confirms them: a server processes operations in order and answers `PONG`
//! after all earlier ones. The crate `nats` has the protocol. The largest event is a quarter of the payload
//! that `nats` accepts.

mod interests;
mod publisher;
mod receiver;
mod subjects;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::{ChannelId, NodeId, Timestamp};
use futures_util::future::BoxFuture;
use nats::{Address, Connection, ConnectionError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::{Bus, Delivery, Interest, Message, QUEUE_MAX, Stats, Subscriber};
use interests::Interests;
use publisher::{Batch, Publisher};
use receiver::Receiver;

pub use subjects::{BadPrefix, Prefix};

/// Deadline of the first connection.
const FIRST_CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How often both connections check their deadlines.
const TICK: Duration = Duration::from_millis(250);
/// Ticks between two pings: a second.
const PING_TICKS: u64 = 4;
/// Ticks without any byte from a server that is pinged every second: three seconds.
const SILENT_TICKS: u64 = 12;
/// First pause before a new connection attempt. The pause doubles with each attempt up to
/// [`BACKOFF_LONGEST`].
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
/// Longest pause. It is short, because messages are given up after two seconds.
const BACKOFF_LONGEST: Duration = Duration::from_secs(1);

/// The options of a [`NatsBus`].
pub struct Options {
    /// The address of NATS.
    pub address: Address,
    /// The prefix of the service's subjects.
    pub prefix: Prefix,
    /// This node.
    pub node: NodeId,
    /// The current time.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Random numbers.
    pub random: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// NATS was not reached.
#[derive(Debug, thiserror::Error)]
#[error("the bus at {address} was not reached within {} s: {reason}", FIRST_CONNECTION_TIMEOUT.as_secs())]
pub struct Unreachable {
    address: Address,
    reason: String,
}

/// The state that both connections share.
struct Shared {
    options: Options,
    interests: Arc<Interests>,
    counters: Counters,
    /// The receiving connection is up and its messages are delivered.
    is_receiving: AtomicBool,
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

/// The bus of many nodes. Dropping it ends its connections.
pub struct NatsBus {
    shared: Arc<Shared>,
    publisher: mpsc::Sender<Batch>,
    /// One task for each connection. Dropping the set ends them.
    tasks: Mutex<JoinSet<()>>,
}

impl std::fmt::Debug for NatsBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NatsBus").field("address", &self.shared.options.address).finish_non_exhaustive()
    }
}

impl NatsBus {
    /// Connects, and reconnects whenever a connection ends.
    ///
    /// # Errors
    /// When NATS is not reached within 10 s. A node without a bus must not start.
    pub async fn connect(options: Options) -> Result<Self, Unreachable> {
        let shared = Arc::new(Shared {
            options,
            interests: Arc::new(Interests::new()),
            counters: Counters::default(),
            is_receiving: AtomicBool::new(false),
        });
        let mut reason = None;
        let first = tokio::time::timeout(FIRST_CONNECTION_TIMEOUT, shared.connect("first", &mut reason));
        let connection = first.await.map_err(|_| Unreachable {
            address: shared.options.address.clone(),
            reason: reason.unwrap_or_else(|| "no answer".to_owned()),
        })?;
        let (publisher, batches) = mpsc::channel(publisher::BATCHES_WAITING_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(Publisher::new(shared.clone(), batches).run(connection));
        Ok(Self { shared, publisher, tasks: Mutex::new(tasks) })
    }
}

impl Shared {
    /// Connects, with retries and without a deadline. Leaves the last error in `reason`.
    async fn connect(&self, which: &str, reason: &mut Option<String>) -> Connection {
        let Options { address, node, random, .. } = &self.options;
        let mut tries = 0_u32;
        loop {
            match Connection::connect(address, tries as usize, node.as_str()).await {
                Ok(connection) => {
                    self.counters.connections.fetch_add(1, Relaxed);
                    tracing::info!(%address, connection = which, tries, "connected to the bus");
                    return connection;
                }
                Err(error) => {
                    tracing::debug!(%address, connection = which, tries, %error, "failed to connect to the bus");
                    *reason = Some(error.to_string());
                }
            }
            let pause = BACKOFF_FIRST.saturating_mul(2_u32.saturating_pow(tries)).min(BACKOFF_LONGEST);
            // Between half and all of the pause, so that nodes do not reconnect at the same time.
            let jitter = pause.mul_f64((random() % 1_000) as f64 / 2_000.0);
            tokio::time::sleep(pause / 2 + jitter).await;
            tries = tries.saturating_add(1);
        }
    }

    fn disconnected(&self, which: &str, error: &ConnectionError) {
        count(&self.counters.disconnects, 1);
        self.counters.connections.fetch_sub(1, Relaxed);
        tracing::warn!(address = %self.options.address, connection = which, %error, "connection to the bus lost");
    }

    fn now(&self) -> Timestamp {
        (self.options.now)()
    }
}

impl Bus for NatsBus {
    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>> {
        Box::pin(publisher::publish(&self.shared, &self.publisher, messages))
    }

    /// Starts the task of the receiving connection. So the call needs a runtime, and works for one subscriber
    /// only: a second one ends at once.
    fn subscribe(&self) -> Subscriber {
        let (sender, receiver) = mpsc::channel::<Delivery>(QUEUE_MAX);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() == 1 {
            tasks.spawn(Receiver::new(self.shared.clone(), sender).run());
        }
        Subscriber(receiver)
    }

    fn interest(&self, channel: &ChannelId) -> Interest {
        Interest::with_guard(self.shared.interests.hold(channel, self.shared.now()))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_receiving(&self) -> bool {
        self.shared.is_receiving.load(Relaxed)
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

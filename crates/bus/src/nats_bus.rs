//! The bus of many nodes, over NATS. A node publishes on one connection and receives on another, so a slow
//! subscriber does not delay publications.
//!
//! | Module | What it does |
//! |---|---|
//! | `subjects` | the subjects of channels and nodes |
//! | `shared` | the state of both connections: options, interests, counters |
//! | `publisher` | sends in order, waits for confirmations, gives up unconfirmed messages |
//! | `interests`, `receiver` | the channels that this node subscribes to; delivers messages and reports gaps |
//!
//! A `PING` after some operations confirms them: a server processes operations in order and answers `PONG`
//! after all earlier ones. The crate `nats` has the protocol. The largest event is a quarter of the payload
//! that `nats` accepts.

mod interests;
mod publisher;
mod receiver;
mod shared;
mod subjects;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::ChannelId;
use futures_util::future::BoxFuture;
use nats::Address;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::{Bus, Delivery, Interest, Message, QUEUE_MAX, Stats, Subscriber};
use publisher::{Batch, Publisher};
use receiver::Receiver;
use shared::Shared;

pub use shared::Options;
pub use subjects::{BadPrefix, Prefix};

/// Deadline of the first connection.
const FIRST_CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// NATS was not reached.
#[derive(Debug, thiserror::Error)]
#[error("the bus at {address} was not reached within {} s: {reason}", FIRST_CONNECTION_TIMEOUT.as_secs())]
pub struct Unreachable {
    address: Address,
    reason: String,
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
        f.debug_struct("NatsBus")
            .field("address", &self.shared.options.access.address)
            .finish_non_exhaustive()
    }
}

impl NatsBus {
    /// Connects, and reconnects whenever a connection ends.
    ///
    /// # Errors
    /// When NATS is not reached within 10 s. A node without a bus must not start.
    pub async fn connect(options: Options) -> Result<Self, Unreachable> {
        let shared = Arc::new(Shared::new(options));
        let mut reason = None;
        let first = tokio::time::timeout(FIRST_CONNECTION_TIMEOUT, shared.connect("first", &mut reason));
        let connection = first.await.map_err(|_| Unreachable {
            address: shared.options.access.address.clone(),
            reason: reason.unwrap_or_else(|| "no answer".to_owned()),
        })?;
        let (publisher, batches) = mpsc::channel(publisher::BATCHES_WAITING_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(Publisher::new(shared.clone(), batches).run(connection));
        Ok(Self { shared, publisher, tasks: Mutex::new(tasks) })
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
            disconnected_at: self.shared.disconnected_at(),
            malformed: of(&counters.malformed),
        }
    }
}

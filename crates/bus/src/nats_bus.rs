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
use nats::{Address, Connection, ConnectionError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::{Bus, Delivery, Interest, Message, QUEUE_MAX, Stats, Subscriber};
use publisher::{Batch, Publisher};
use receiver::Receiver;
use shared::{Duty, Link, Shared};

pub use shared::Options;
pub use subjects::{BadPrefix, Prefix};

/// Deadline of the first connection.
const FIRST_CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a node has no bus at its start.
#[derive(Debug, thiserror::Error)]
pub enum NoBus {
    /// NATS was not reached, or refused the login.
    #[error("the bus at {address} was not reached within {} s: {reason}", FIRST_CONNECTION_TIMEOUT.as_secs())]
    Unreachable {
        /// Its address.
        address: Address,
        /// The last failure.
        reason: String,
    },
    /// NATS refuses the subjects of this service.
    #[error(
        "the bus at {address} refuses what a node has to do there ({reason}): give its user the rights to publish and to \
         subscribe to {}.>",
        prefix.as_str()
    )]
    NoRights {
        /// Its address.
        address: Box<Address>,
        /// The prefix of the subjects.
        prefix: Prefix,
        /// The server's words.
        reason: String,
    },
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
    /// When NATS is not reached within 10 s, or refuses the subjects. A node without a bus must not start.
    pub async fn connect(options: Options) -> Result<Self, NoBus> {
        let shared = Arc::new(Shared::new(options));
        let (mut link, mut reason) = (Link::new(Duty::Publish), None);
        let first = first_connection(&shared, &mut link, &mut reason);
        let first = tokio::time::timeout(FIRST_CONNECTION_TIMEOUT, first).await;
        let address = shared.options.access.address.clone();
        let connection = first.unwrap_or_else(|_| {
            let reason = reason.unwrap_or_else(|| "no answer".to_owned());
            Err(NoBus::Unreachable { address, reason })
        })?;
        let (publisher, batches) = mpsc::channel(publisher::BATCHES_WAITING_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(Publisher::new(shared.clone(), batches, link).run(connection));
        Ok(Self { shared, publisher, tasks: Mutex::new(tasks) })
    }
}

/// Connects until a connection has the rights that a node needs.
async fn first_connection(
    shared: &Shared,
    link: &mut Link,
    reason: &mut Option<String>,
) -> Result<Connection, NoBus> {
    loop {
        let mut connection = shared.connect(link, reason).await;
        match shared.check_rights(&mut connection).await {
            Ok(()) => {
                shared.proven(link, connection.server());
                return Ok(connection);
            }
            Err(ConnectionError::Refused(reason)) => {
                let address = Box::new(shared.options.access.address.clone());
                let prefix = shared.options.prefix.clone();
                return Err(NoBus::NoRights { address, prefix, reason });
            }
            Err(error) => *reason = Some(error.to_string()),
        }
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

    fn is_refused(&self) -> bool {
        self.shared.is_refused()
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

//! The state that both connections of a [`NatsBus`](super::NatsBus) share, and how each connects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use domain::{NodeId, Timestamp};
use futures_util::future::BoxFuture;
use nats::{Access, Connection, ConnectionError, Server, Servers};

use super::interests::Interests;
use super::subjects::Prefix;

/// How often both connections check their deadlines.
pub(super) const TICK: Duration = Duration::from_millis(250);
/// Ticks between two pings: a second.
pub(super) const PING_TICKS: u64 = 4;
/// Ticks without any byte from a server that is pinged every second: three seconds.
pub(super) const SILENT_TICKS: u64 = 12;
/// How often the probe of a move is published until it arrives.
pub(super) const PROBE_EVERY: Duration = Duration::from_millis(20);
/// First pause before a new connection attempt. The pause doubles with each attempt up to
/// [`BACKOFF_LONGEST`].
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
/// Longest pause. It is short, because messages are given up after two seconds.
const BACKOFF_LONGEST: Duration = Duration::from_secs(1);

/// The options of a [`NatsBus`](super::NatsBus).
pub struct Options {
    /// The address of NATS, and the files that belong to it.
    pub access: Access,
    /// The prefix of the service's subjects.
    pub prefix: Prefix,
    /// This node.
    pub node: NodeId,
    /// The current time.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Random numbers.
    pub random: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// The next connection, while the present one goes on.
pub(super) type Successor = BoxFuture<'static, Connection>;

/// The connection, as soon as there is a successor. Waits forever without one.
pub(super) async fn arrival(successor: &mut Option<Successor>) -> Connection {
    match successor {
        Some(arriving) => arriving.await,
        None => std::future::pending().await,
    }
}

/// The state that both connections share.
pub(super) struct Shared {
    pub(super) options: Options,
    /// The servers that are known.
    pub(super) servers: Servers,
    pub(super) interests: Arc<Interests>,
    pub(super) counters: Counters,
    /// The receiving connection is up and its messages are delivered.
    pub(super) is_receiving: AtomicBool,
    /// When a connection last ended, in milliseconds since 1970; 0 before the first end.
    disconnected_ms: AtomicI64,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) published: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) disconnects: AtomicU64,
    pub(super) malformed: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Relaxed);
}

impl Shared {
    pub(super) fn new(options: Options) -> Self {
        Self {
            servers: Servers::new(&options.access.address),
            options,
            interests: Arc::new(Interests::new()),
            counters: Counters::default(),
            is_receiving: AtomicBool::new(false),
            disconnected_ms: AtomicI64::new(0),
        }
    }

    /// Connects, with retries and without a deadline. Leaves the last error in `reason`.
    pub(super) async fn connect(&self, which: &str, reason: &mut Option<String>) -> Connection {
        let connection = self.connect_except(None, which, reason).await;
        self.counters.connections.fetch_add(1, Relaxed);
        connection
    }

    /// Connects to another server than this one, which is about to stop.
    pub(super) fn succeed(self: &Arc<Self>, leaving: &Server, which: &'static str) -> Successor {
        let (shared, leaving) = (self.clone(), leaving.clone());
        Box::pin(async move { shared.connect_except(Some(&leaving), which, &mut None).await })
    }

    async fn connect_except(
        &self,
        except: Option<&Server>,
        which: &str,
        reason: &mut Option<String>,
    ) -> Connection {
        let Options { access, node, random, .. } = &self.options;
        let address = &access.address;
        let mut tries = 0_u32;
        loop {
            match Connection::connect(access, &self.servers, tries as usize, except, node.as_str()).await {
                Ok(connection) if connection.is_leaving() && except.is_some() => {
                    *reason = Some(ConnectionError::Leaving.to_string());
                }
                Ok(connection) => {
                    let server = connection.server();
                    tracing::info!(%address, %server, connection = which, tries, "connected to the bus");
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

    pub(super) fn disconnected(&self, which: &str, error: &ConnectionError) {
        count(&self.counters.disconnects, 1);
        self.counters.connections.fetch_sub(1, Relaxed);
        self.disconnected_ms.store(self.now().as_millis(), Relaxed);
        tracing::warn!(address = %self.options.access.address, connection = which, %error, "connection to the bus lost");
    }

    /// When a connection last ended.
    pub(super) fn disconnected_at(&self) -> Option<Timestamp> {
        let ms = self.disconnected_ms.load(Relaxed);
        (ms != 0).then(|| Timestamp::from_millis(ms))
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.options.now)()
    }
}

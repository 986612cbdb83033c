//! The state that both connections of a [`NatsBus`](super::NatsBus) share, and how each connects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use domain::{LogInterval, NodeId, Timestamp};
use futures_util::future::BoxFuture;
use nats::{Access, Connection, ConnectionError, Server, ServerOp, Servers};

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
/// [`BACKOFF_LONGEST`], until a connection has proven itself.
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

/// The number of the subscription with which rights are checked.
const TRIAL_SID: u64 = 3;

/// What one of the two connections does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    Publish = 1,
    Receive = 2,
}

impl Duty {
    /// The name in the log.
    const fn name(self) -> &'static str {
        match self {
            Self::Publish => "publisher",
            Self::Receive => "receiver",
        }
    }
}

/// One of the two connections over all its attempts.
#[derive(Debug)]
pub(super) struct Link {
    duty: Duty,
    /// Attempts since a connection has proven itself.
    tries: u32,
    /// Whether the connection has proven itself: the server has confirmed what it is for.
    is_proven: bool,
    loss_log: LogInterval,
}

impl Link {
    pub(super) fn new(duty: Duty) -> Self {
        Self { duty, tries: 0, is_proven: false, loss_log: LogInterval::default() }
    }

    /// The pause before the next attempt; `None` before the first one.
    fn pause(&self) -> Option<Duration> {
        let doublings = self.tries.checked_sub(1)?;
        Some(BACKOFF_FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(BACKOFF_LONGEST))
    }
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
    /// The duties ([`Duty`] as bits) that the server has refused last.
    refused: AtomicU8,
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
            refused: AtomicU8::new(0),
        }
    }

    /// Connects, with retries and without a deadline. Leaves the last error in `reason`. The connection has
    /// to [prove itself](Self::proven), or the next call begins with a pause that grows.
    pub(super) async fn connect(&self, link: &mut Link, reason: &mut Option<String>) -> Connection {
        self.connect_except(None, link, reason).await
    }

    /// Connects to another server than this one, which is about to stop.
    pub(super) fn succeed(self: &Arc<Self>, leaving: &Server, duty: Duty) -> Successor {
        let (shared, leaving) = (self.clone(), leaving.clone());
        Box::pin(async move {
            let connection = shared.connect_except(Some(&leaving), &mut Link::new(duty), &mut None).await;
            let (address, server) = (&shared.options.access.address, connection.server());
            tracing::info!(%address, %server, connection = duty.name(), "connected to the next server of the bus");
            connection
        })
    }

    async fn connect_except(
        &self,
        except: Option<&Server>,
        link: &mut Link,
        reason: &mut Option<String>,
    ) -> Connection {
        let Options { access, node, random, .. } = &self.options;
        loop {
            if let Some(pause) = link.pause() {
                // Between half and all of the pause, so that nodes do not reconnect at the same time.
                let jitter = pause.mul_f64((random() % 1_000) as f64 / 2_000.0);
                tokio::time::sleep(pause / 2 + jitter).await;
            }
            let tries = link.tries;
            link.tries = tries.saturating_add(1);
            match Connection::connect(access, &self.servers, tries as usize, except, node.as_str()).await {
                Ok(connection) if connection.is_leaving() && except.is_some() => {
                    *reason = Some(ConnectionError::Leaving.to_string());
                }
                Ok(connection) => return connection,
                Err(error) => {
                    let (address, duty) = (&access.address, link.duty.name());
                    tracing::debug!(%address, connection = duty, tries, %error, "failed to connect to the bus");
                    self.note_refusal(link, &error);
                    *reason = Some(error.to_string());
                }
            }
        }
    }

    /// Whether the user has the rights that a node needs: to subscribe to the subjects of nodes, channels and
    /// probes, and to publish. The server answers a ping after it has refused what came before.
    pub(super) async fn check_rights(&self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let Options { prefix, node, random, .. } = &self.options;
        let probe = prefix.of_probe(random());
        for subject in [&prefix.of_node(node), &probe] {
            connection.subscribe(subject, TRIAL_SID);
            connection.unsubscribe(TRIAL_SID);
        }
        connection.publish(&probe, &[], &[]);
        self.try_to_subscribe(connection);
        self.try_to_publish(connection);
        connection.ping();
        loop {
            while let Some(op) = connection.next_op()? {
                match op {
                    ServerOp::Pong => return Ok(()),
                    ServerOp::Error(error) => return Err(ConnectionError::Refused(error.to_owned())),
                    ServerOp::Info(_) | ServerOp::Ping | ServerOp::Ok | ServerOp::Message { .. } => {}
                }
            }
            connection.drive().await?;
        }
    }

    /// Publishes to subjects without a subscriber. A server that has taken the right away says so.
    pub(super) fn try_to_publish(&self, connection: &mut Connection) {
        for subject in self.options.prefix.of_trials(&self.options.node) {
            connection.publish(&subject, &[], &[]);
        }
    }

    /// Subscribes to a subject that has no message. A server that has taken the right away says so.
    pub(super) fn try_to_subscribe(&self, connection: &mut Connection) {
        connection.subscribe(&self.options.prefix.of_subscribing_trial(&self.options.node), TRIAL_SID);
        connection.unsubscribe(TRIAL_SID);
    }

    /// The server has confirmed what the connection is for. Only such a connection counts as one.
    pub(super) fn proven(&self, link: &mut Link, server: &Server) {
        let tries = std::mem::take(&mut link.tries);
        if std::mem::replace(&mut link.is_proven, true) {
            return;
        }
        count(&self.counters.connections, 1);
        self.refused.fetch_and(!(link.duty as u8), Relaxed);
        let (address, duty, tries) =
            (&self.options.access.address, link.duty.name(), tries.saturating_sub(1));
        tracing::info!(%address, %server, connection = duty, tries, "connected to the bus");
    }

    pub(super) fn disconnected(&self, link: &mut Link, error: &ConnectionError) {
        count(&self.counters.disconnects, 1);
        if std::mem::take(&mut link.is_proven) {
            self.counters.connections.fetch_sub(1, Relaxed);
        }
        self.note_refusal(link, error);
        let now = self.now();
        self.disconnected_ms.store(now.as_millis(), Relaxed);
        let now = Duration::from_millis(now.as_millis().unsigned_abs());
        if let Some(times) = link.loss_log.due(now) {
            let (address, duty) = (&self.options.access.address, link.duty.name());
            tracing::warn!(%address, connection = duty, %error, times, "connection to the bus lost");
        }
    }

    fn note_refusal(&self, link: &Link, error: &ConnectionError) {
        if matches!(error, ConnectionError::Refused(_)) {
            self.refused.fetch_or(link.duty as u8, Relaxed);
        }
    }

    /// Whether the server has refused a connection of this node, or what it is for, and not admitted it
    /// since.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Relaxed) != 0
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

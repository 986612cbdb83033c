//! The HTTP connections that are open, and who has to go when there is no room for the next one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway::Gateway;
use service::Clock;
use tokio::sync::Notify;

/// HTTP connections at once. Sockets that were upgraded count no more: the gateway holds them, under its own limits.
const CONNECTIONS_MAX: usize = 16_384;
/// How long is waited for room before looking for it again: the gateway does not say when it lets a socket go.
const ROOM_PAUSE: Duration = Duration::from_millis(50);

/// How long a connection may not be sent away: a peer that asks at once must be answered, however many do not ask.
const HEAD_GRACE: Duration = Duration::from_secs(1);

/// The connections of all listeners of a node.
pub(crate) struct Connections {
    /// Where there are sockets.
    gateway: Option<Gateway>,
    clock: Clock,
    /// Connections and the gateway's sockets, together.
    sockets_max: usize,
    open: Mutex<Open>,
    /// Told whenever a connection ends.
    ended: Notify,
}

#[derive(Default)]
struct Open {
    accepted: u64,
    /// The oldest first.
    connections: BTreeMap<u64, Arc<Connection>>,
}

/// What its listener and its own task know of a connection.
pub(crate) struct Connection {
    /// On the monotonic clock.
    accepted_at: Duration,
    /// Requests from their heads to their answers.
    running: AtomicUsize,
    /// Another needs the place.
    evicted: Notify,
}

/// The place of one connection. It is free again when this is dropped.
pub(crate) struct Place {
    connections: Arc<Connections>,
    number: u64,
    pub(crate) connection: Arc<Connection>,
}

/// One request of a connection, from its head to its answer.
pub(crate) struct Running(Arc<Connection>);

impl Connections {
    pub(crate) fn new(gateway: Option<Gateway>, clock: Clock, sockets_max: usize) -> Arc<Self> {
        Arc::new(Self { gateway, clock, sockets_max, open: Mutex::default(), ended: Notify::new() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when there is room for one more. When there is none, the connection that has been open for the longest
    /// without asking for anything has to go: peers that never ask must not keep out those that do.
    pub(crate) async fn room(&self) {
        loop {
            let ended = self.ended.notified();
            {
                let mut open = self.open();
                if open.connections.len() < self.max() || open.evict(self.clock.monotonic()) {
                    return;
                }
            }
            tokio::select! {
                () = ended => {}
                () = tokio::time::sleep(ROOM_PAUSE) => {}
            }
        }
    }

    /// Whether there is room for one more, without anybody having to go.
    pub(crate) fn has_room(&self) -> bool {
        self.open().connections.len() < self.max()
    }

    /// How many connections there may be now.
    fn max(&self) -> usize {
        let sockets = self.gateway.as_ref().map_or(0, Gateway::sockets);
        CONNECTIONS_MAX.min(self.sockets_max.saturating_sub(sockets))
    }

    /// A place for a connection that was accepted.
    pub(crate) fn enter(self: &Arc<Self>) -> Place {
        let connection = Arc::new(Connection {
            accepted_at: self.clock.monotonic(),
            running: AtomicUsize::new(0),
            evicted: Notify::new(),
        });
        let mut open = self.open();
        open.accepted += 1;
        let number = open.accepted;
        open.connections.insert(number, connection.clone());
        Place { connections: self.clone(), number, connection }
    }

    /// Returns when the last connection has ended.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.open().connections.is_empty() {
                return;
            }
            ended.await;
        }
    }
}

impl Open {
    /// Sends the oldest idle connection away. Its place is free from now on.
    fn evict(&mut self, now: Duration) -> bool {
        let old = |connection: &Connection| now.saturating_sub(connection.accepted_at) >= HEAD_GRACE;
        let mut connections = self.connections.iter().take_while(|(_, connection)| old(connection));
        let Some((&number, connection)) = connections.find(|(_, connection)| connection.is_idle()) else {
            return false;
        };
        connection.evicted.notify_one();
        self.connections.remove(&number);
        true
    }
}

impl Connection {
    /// Whether no request of it runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.load(Relaxed) == 0
    }

    /// Returns when it has to go.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.number);
        self.connections.ended.notify_waiters();
    }
}

impl Running {
    pub(crate) fn begin(connection: &Arc<Connection>) -> Self {
        connection.running.fetch_add(1, Relaxed);
        Self(connection.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

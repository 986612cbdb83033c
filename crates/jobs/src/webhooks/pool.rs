//! A pool of idle connections, so that a burst of deliveries makes one TLS handshake and not hundreds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::outbound::WebhookUrl;
use service::Clock;

use super::connect::Connection;

/// How long an unused connection is kept. Shorter than the 5 seconds after which common servers close, so
/// that an attempt seldom uses a connection that is closing.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// Maximum age of a connection, so that a changed DNS record takes effect.
const AGE_MAX: Duration = Duration::from_secs(60);
/// Maximum number of idle connections to one receiver.
const PER_RECEIVER_MAX: usize = 8;

pub(super) struct ConnectionPool {
    clock: Clock,
    /// Maximum number of idle connections to all receivers.
    max: usize,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The connections of each origin, the most recently used one last, with the time since when each is
    /// idle.
    connections: HashMap<String, Vec<(Connection, Duration)>>,
    count: usize,
}

impl ConnectionPool {
    pub fn new(clock: Clock, max: usize) -> Self {
        Self { clock, max, idle: Mutex::default() }
    }

    /// An idle connection to the same scheme, host and port.
    pub fn take(&self, url: &WebhookUrl) -> Option<Connection> {
        let now = self.clock.monotonic();
        self.with_idle(|idle| {
            let connections = idle.connections.get_mut(&url.origin())?;
            while let Some((connection, since)) = connections.pop() {
                idle.count -= 1;
                if is_reusable(&connection, since, now) {
                    return Some(connection);
                }
            }
            None
        })
    }

    /// Adds a connection, if there is room.
    pub fn put(&self, url: &WebhookUrl, connection: Connection) {
        let now = self.clock.monotonic();
        self.with_idle(|idle| {
            let connections = idle.connections.entry(url.origin()).or_default();
            if idle.count < self.max && connections.len() < PER_RECEIVER_MAX {
                connections.push((connection, now));
                idle.count += 1;
            }
        });
    }

    /// Closes expired connections.
    pub fn close_idle(&self) {
        let now = self.clock.monotonic();
        self.with_idle(|idle| {
            idle.connections.retain(|_, connections| {
                connections.retain(|(connection, since)| is_reusable(connection, *since, now));
                !connections.is_empty()
            });
            idle.count = idle.connections.values().map(Vec::len).sum();
        });
    }

    fn with_idle<T>(&self, work: impl FnOnce(&mut Idle) -> T) -> T {
        work(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_reusable(connection: &Connection, since: Duration, now: Duration) -> bool {
    !connection.http.is_closed() && now < since + IDLE_MAX && now < connection.opened_at + AGE_MAX
}

//! Connections that are kept open between attempts, so that a burst of deliveries costs one handshake and not hundreds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::outbound::WebhookUrl;
use service::Clock;

use super::connect::Connection;

/// How long one is kept unused. Shorter than the 5 seconds after which common servers close, so that an attempt seldom
/// meets a connection that is about to end.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// How old one may become, so that a receiver that moves to another address is followed.
const AGE_MAX: Duration = Duration::from_secs(60);
/// Connections kept for one receiver.
const PER_RECEIVER_MAX: usize = 8;

pub(super) struct Kept {
    clock: Clock,
    /// Connections kept for all receivers.
    max: usize,
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    /// By origin, the one that was used last at the end.
    connections: HashMap<String, Vec<(Connection, Duration)>>,
    count: usize,
}

impl Kept {
    pub fn new(clock: Clock, max: usize) -> Self {
        Self { clock, max, shelf: Mutex::default() }
    }

    /// One that leads to the same host and port with the same scheme.
    pub fn take(&self, url: &WebhookUrl) -> Option<Connection> {
        let now = self.clock.monotonic();
        self.with(|shelf| {
            let kept = shelf.connections.get_mut(&url.origin())?;
            while let Some((connection, since)) = kept.pop() {
                shelf.count -= 1;
                if is_good(&connection, since, now) {
                    return Some(connection);
                }
            }
            None
        })
    }

    /// Keeps one for later, if there is room.
    pub fn put(&self, url: &WebhookUrl, connection: Connection) {
        let now = self.clock.monotonic();
        self.with(|shelf| {
            let kept = shelf.connections.entry(url.origin()).or_default();
            if shelf.count < self.max && kept.len() < PER_RECEIVER_MAX {
                kept.push((connection, now));
                shelf.count += 1;
            }
        });
    }

    /// Closes those that are over.
    pub fn tidy(&self) {
        let now = self.clock.monotonic();
        self.with(|shelf| {
            shelf.connections.retain(|_, kept| {
                kept.retain(|(connection, since)| is_good(connection, *since, now));
                !kept.is_empty()
            });
            shelf.count = shelf.connections.values().map(Vec::len).sum();
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Shelf) -> T) -> T {
        work(&mut self.shelf.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_good(connection: &Connection, since: Duration, now: Duration) -> bool {
    !connection.sender.is_closed() && now < since + IDLE_MAX && now < connection.opened_at + AGE_MAX
}

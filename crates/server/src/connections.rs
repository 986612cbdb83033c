//! The HTTP connections that are open, and who has to go when there is no room for the next one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::client_address::AddressBlock;
use gateway::Gateway;
use service::Clock;
use tokio::sync::Notify;

/// HTTP connections at once. Sockets that were upgraded count no more: the gateway holds them, under its own limits.
const CONNECTIONS_MAX: usize = 16_384;
/// The part of all places that one address, or the /64 of an IPv6 address, may have for connections that wait for it.
const PER_BLOCK_DIVISOR: usize = 4;
/// But at least this many.
const PER_BLOCK_MIN: usize = 16;
/// How long is waited for room before looking for it again: the gateway does not say when it lets a socket go.
const ROOM_PAUSE: Duration = Duration::from_millis(50);

/// How long a connection may not be sent away: a peer that asks at once must be answered, however many do not ask.
const HEAD_GRACE: Duration = Duration::from_secs(1);
/// The same for a request whose body is still arriving, from its head on.
const BODY_GRACE: Duration = Duration::from_secs(1);

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
    blocks: HashMap<AddressBlock, Peers>,
}

/// The connections of one block.
#[derive(Default)]
struct Peers {
    /// Those of them on which no request runs.
    waiting: Arc<AtomicUsize>,
    numbers: BTreeSet<u64>,
}

/// What its listener and its own task know of a connection.
pub(crate) struct Connection {
    block: Option<AddressBlock>,
    /// On the monotonic clock.
    accepted_at: Duration,
    /// A [`Stage`].
    stage: AtomicU8,
    /// When the head of the present request was there, in milliseconds of the monotonic clock.
    asked_at_ms: AtomicU64,
    /// Of the connection's block.
    waiting: Arc<AtomicUsize>,
    clock: Clock,
    /// Another needs the place.
    evicted: Notify,
}

/// What a connection is doing. HTTP/1 has one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was asked.
    Idle = 0,
    /// The body of a request is still arriving: for anybody can begin one, it does not keep the place.
    Receiving = 1,
    /// The whole request is there, and is being answered.
    Running = 2,
}

/// The place of one connection. It is free again when this is dropped.
pub(crate) struct Place {
    connections: Arc<Connections>,
    number: u64,
    pub(crate) connection: Arc<Connection>,
}

/// One request of a connection, from its head to its answer.
pub(crate) struct Asked(Arc<Connection>);

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

    /// How many connections of one block may wait for it.
    fn per_block_max(&self) -> usize {
        (CONNECTIONS_MAX.min(self.sockets_max) / PER_BLOCK_DIVISOR).max(PER_BLOCK_MIN)
    }

    /// A place for a connection that was accepted. Where its block has as many waiting as it may have, it takes the
    /// place of the oldest of these. A peer without a block, as a proxy that brings the connections of others, may have
    /// any number.
    pub(crate) fn enter(self: &Arc<Self>, block: Option<AddressBlock>) -> Place {
        let now = self.clock.monotonic();
        let mut open = self.open();
        open.accepted += 1;
        let number = open.accepted;
        let waiting = match block {
            None => Arc::default(),
            Some(block) => {
                if open.waiting(block) >= self.per_block_max() {
                    open.evict_of(block, now);
                }
                let peers = open.blocks.entry(block).or_default();
                peers.numbers.insert(number);
                peers.waiting.clone()
            }
        };
        waiting.fetch_add(1, Relaxed);
        let connection = Arc::new(Connection {
            block,
            accepted_at: now,
            stage: AtomicU8::new(Stage::Idle as u8),
            asked_at_ms: AtomicU64::new(0),
            waiting,
            clock: self.clock.clone(),
            evicted: Notify::new(),
        });
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

impl Place {
    /// The same connection, now that it is known whose it is.
    pub(crate) fn given_to(self, block: AddressBlock) -> Self {
        let connections = self.connections.clone();
        drop(self);
        connections.enter(Some(block))
    }
}

impl Open {
    /// Sends the oldest connection away that waits for its peer. Its place is free from now on.
    fn evict(&mut self, now: Duration) -> bool {
        let mut old = self.connections.iter().take_while(|(_, each)| each.is_older_than(HEAD_GRACE, now));
        let Some(number) = old.find(|(_, each)| each.may_go(now)).map(|(number, _)| *number) else {
            return false;
        };
        self.send_away(number);
        true
    }

    /// Sends the oldest connection of a block away that waits for its peer: one that had its time, if there is any.
    fn evict_of(&mut self, block: AddressBlock, now: Duration) {
        let Some(peers) = self.blocks.get(&block) else { return };
        let each =
            || peers.numbers.iter().filter_map(|number| Some((*number, self.connections.get(number)?)));
        let patient = each().find(|(_, each)| each.may_go(now));
        let found = patient.or_else(|| each().find(|(_, each)| each.is_waiting()));
        if let Some(number) = found.map(|(number, _)| number) {
            self.send_away(number);
        }
    }

    fn send_away(&mut self, number: u64) {
        if let Some(connection) = self.remove(number) {
            connection.evicted.notify_one();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Connection>> {
        let connection = self.connections.remove(&number)?;
        if let Some(block) = connection.block
            && let Some(peers) = self.blocks.get_mut(&block)
        {
            peers.numbers.remove(&number);
            if peers.numbers.is_empty() {
                self.blocks.remove(&block);
            }
        }
        Some(connection)
    }

    /// How many connections of a block wait for it.
    fn waiting(&self, block: AddressBlock) -> usize {
        self.blocks.get(&block).map_or(0, |peers| peers.waiting.load(Relaxed))
    }
}

impl Connection {
    /// Whether nothing was asked.
    pub(crate) fn is_idle(&self) -> bool {
        self.stage.load(Relaxed) == Stage::Idle as u8
    }

    /// Whether its peer has still to say something: to ask, or to finish asking.
    pub(crate) fn is_waiting(&self) -> bool {
        self.stage.load(Relaxed) != Stage::Running as u8
    }

    /// A request begins, and with its end drops what this gives.
    pub(crate) fn asked(self: &Arc<Self>, whole: bool) -> Asked {
        let now_ms = self.clock.monotonic().as_millis();
        self.asked_at_ms.store(u64::try_from(now_ms).unwrap_or(u64::MAX), Relaxed);
        self.enter_stage(if whole { Stage::Running } else { Stage::Receiving });
        Asked(self.clone())
    }

    /// The whole of the present request is there, or it keeps its place without that.
    pub(crate) fn received(&self) {
        self.enter_stage(Stage::Running);
    }

    /// Returns when it has to go.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    fn enter_stage(&self, stage: Stage) {
        let running = Stage::Running as u8;
        match (self.stage.swap(stage as u8, Relaxed) == running, stage as u8 == running) {
            (false, true) => self.waiting.fetch_sub(1, Relaxed),
            (true, false) => self.waiting.fetch_add(1, Relaxed),
            _ => 0,
        };
    }

    fn is_older_than(&self, span: Duration, now: Duration) -> bool {
        now.saturating_sub(self.accepted_at) >= span
    }

    /// Whether it waits for its peer and has had time for it.
    fn may_go(&self, now: Duration) -> bool {
        let asked_at = Duration::from_millis(self.asked_at_ms.load(Relaxed));
        let had_time = self.is_idle() || now.saturating_sub(asked_at) >= BODY_GRACE;
        self.is_waiting() && had_time && self.is_older_than(HEAD_GRACE, now)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().remove(self.number);
        // From now on it counts for nothing.
        if self.connection.is_waiting() {
            self.connection.waiting.fetch_sub(1, Relaxed);
        }
        self.connections.ended.notify_waiters();
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.enter_stage(Stage::Idle);
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    /// A node of 80 places, 20 for a block.
    fn connections() -> (Arc<Connections>, service::ManualClock) {
        let (clock, hand) = Clock::manual(Timestamp::from_millis(0));
        (Connections::new(None, clock, 80), hand)
    }

    fn block(text: &str) -> Option<AddressBlock> {
        Some(text.parse::<std::net::IpAddr>().expect("an address").into())
    }

    fn is_open(place: &Place) -> bool {
        place.connections.open().connections.contains_key(&place.number)
    }

    #[test]
    fn a_block_that_waits_with_many_connections_loses_its_own_oldest() {
        let (connections, _) = connections();
        let neighbour = connections.enter(block("192.0.2.9"));
        let mut places: Vec<_> = (0..20).map(|_| connections.enter(block("192.0.2.1"))).collect();
        // What runs does not wait, and does not go.
        let running = places[0].connection.asked(true);
        places.push(connections.enter(block("192.0.2.1")));
        assert!(places.iter().all(is_open));
        places.push(connections.enter(block("192.0.2.1")));
        let gone: Vec<_> = (0..places.len()).filter(|at| !is_open(&places[*at])).collect();
        assert_eq!(gone, [1]);
        assert!(is_open(&neighbour));
        drop(running);
        drop(places);
        assert_eq!(connections.open().blocks.len(), 1);
        let given =
            connections.enter(None).given_to(AddressBlock::from(std::net::IpAddr::from([192, 0, 2, 9])));
        assert_eq!(connections.open().waiting(AddressBlock::from(std::net::IpAddr::from([192, 0, 2, 9]))), 2);
        drop((given, neighbour));
        assert!(connections.open().blocks.is_empty());
    }

    #[test]
    fn a_proxy_may_have_any_number() {
        let (connections, _) = connections();
        let places: Vec<_> = (0..80).map(|_| connections.enter(None)).collect();
        assert!(places.iter().all(is_open));
    }

    #[test]
    fn an_unfinished_body_does_not_keep_its_place_and_a_whole_one_does() {
        let (connections, hand) = connections();
        let places: Vec<_> = (0..4).map(|_| connections.enter(None)).collect();
        hand.advance(HEAD_GRACE);
        let evicted = || {
            let was = connections.open().evict(connections.clock.monotonic());
            (was, places.iter().map(is_open).collect::<Vec<_>>())
        };
        let _whole = places[0].connection.asked(true);
        let _begun = places[1].connection.asked(false);
        let _kept = places[2].connection.asked(false);
        places[2].connection.received();
        // It has some time for its body. The one that asks for nothing had its time.
        assert_eq!(evicted(), (true, vec![true, true, true, false]));
        assert_eq!(evicted(), (false, vec![true, true, true, false]));
        hand.advance(BODY_GRACE);
        assert_eq!(evicted(), (true, vec![true, false, true, false]));
        assert_eq!(evicted(), (false, vec![true, false, true, false]));
    }
}

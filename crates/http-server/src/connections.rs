//! The open HTTP connections, and the eviction of one of them when there is no room for the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::client_address::AddressBlock;
use gateway::Gateway;
use service::Clock;
use tokio::sync::Notify;

/// Maximum number of HTTP connections. An upgraded socket does not count: the gateway holds it, under its own
/// limits.
const CONNECTIONS_MAX: usize = 16_384;
/// One address, or the /64 of an IPv6 address, may have this fraction of all places for waiting connections.
const PER_BLOCK_DIVISOR: usize = 4;
/// Minimum number of waiting connections that a block may have. Without room for another connection, a block
/// with more of them loses one at once.
const PER_BLOCK_MIN: usize = 16;
/// Pause between two checks for room. The gateway does not notify when it closes a socket.
const ROOM_PAUSE: Duration = Duration::from_millis(50);

/// A new connection is not evicted for this long, so a peer that sends its request at once is answered.
const HEAD_GRACE: Duration = Duration::from_secs(1);
/// A request whose body is still arriving is not evicted for this long after its head.
const BODY_GRACE: Duration = Duration::from_secs(1);

/// The connections of all listeners of a node.
pub struct Connections {
    /// `None` on a node without the role gateway.
    gateway: Mutex<Option<Gateway>>,
    clock: Clock,
    /// Maximum number of connections and of the gateway's sockets together.
    sockets_max: usize,
    open: Mutex<Open>,
    /// Notified when a connection ends.
    ended: Notify,
}

#[derive(Default)]
struct Open {
    accepted: u64,
    /// Connections by number, so the oldest comes first.
    connections: BTreeMap<u64, Arc<Connection>>,
    blocks: HashMap<AddressBlock, Peers>,
}

/// The connections of one block of addresses.
#[derive(Default)]
struct Peers {
    /// Number of connections without a running request.
    waiting: Arc<AtomicUsize>,
    numbers: BTreeSet<u64>,
}

/// The state of a connection, shared by its listener and its task.
pub(crate) struct Connection {
    block: Option<AddressBlock>,
    /// When the connection was accepted, on the monotonic clock.
    accepted_at: Duration,
    /// A [`Stage`].
    stage: AtomicU8,
    /// When the head of the current request arrived, in milliseconds of the monotonic clock.
    head_at_ms: AtomicU64,
    /// The number of waiting connections of the connection's block.
    waiting: Arc<AtomicUsize>,
    clock: Clock,
    /// Notified when another connection takes the place.
    evicted: Notify,
}

/// The stage of a connection. HTTP/1 has one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No request.
    Idle = 0,
    /// The body of a request is still arriving. Any peer can begin a request, so the connection may be
    /// evicted.
    Receiving = 1,
    /// The whole request has arrived and is being answered.
    Running = 2,
}

/// The place of one connection. Dropping it frees the place.
pub(crate) struct Place {
    connections: Arc<Connections>,
    number: u64,
    pub(crate) connection: Arc<Connection>,
}

/// One request of a connection, from its head to its answer. Dropping it ends the request.
pub(crate) struct RequestGuard(Arc<Connection>);

impl Connections {
    /// No connections yet. Together with the sockets of the gateway there are at most `sockets_max`.
    pub fn new(gateway: Option<Gateway>, clock: Clock, sockets_max: usize) -> Arc<Self> {
        Arc::new(Self {
            gateway: Mutex::new(gateway),
            clock,
            sockets_max,
            open: Mutex::default(),
            ended: Notify::new(),
        })
    }

    /// The gateway whose sockets count from now on.
    pub fn count_sockets_of(&self, gateway: Option<Gateway>) {
        *self.gateway.lock().unwrap_or_else(PoisonError::into_inner) = gateway;
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when there is room for one more connection. Without room, a waiting connection is evicted, so
    /// that peers that never send a request do not keep out those that do: the oldest of the block that has
    /// the most, else the oldest whose grace has ended.
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

    /// Whether there is room for one more connection without an eviction.
    pub(crate) fn has_room(&self) -> bool {
        self.open().connections.len() < self.max()
    }

    /// The current maximum number of connections.
    fn max(&self) -> usize {
        let gateway = self.gateway.lock().unwrap_or_else(PoisonError::into_inner);
        let sockets = gateway.as_ref().map_or(0, Gateway::sockets);
        CONNECTIONS_MAX.min(self.sockets_max.saturating_sub(sockets))
    }

    /// The maximum number of waiting connections of one block.
    fn per_block_max(&self) -> usize {
        (CONNECTIONS_MAX.min(self.sockets_max) / PER_BLOCK_DIVISOR).max(PER_BLOCK_MIN)
    }

    /// A place for an accepted connection. If its block has too many waiting connections, the oldest of them
    /// is evicted. Without a block, as for a proxy that carries the connections of many clients, there may be
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
            head_at_ms: AtomicU64::new(0),
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
    /// The same place, now counted for the block of the real client.
    pub(crate) fn moved_to(self, block: AddressBlock) -> Self {
        let connections = self.connections.clone();
        drop(self);
        connections.enter(Some(block))
    }
}

impl Open {
    /// Evicts a waiting connection of the block that has the most, if it has too many, else the oldest one
    /// whose grace has ended. Its place is free at once. A block with many connections has no grace, or each
    /// of its peers would make all others wait for a part of a second.
    fn evict(&mut self, now: Duration) -> bool {
        let waiting = self.blocks.iter().map(|(block, peers)| (*block, peers.waiting.load(Relaxed)));
        let most = waiting.max_by_key(|(_, waiting)| *waiting);
        if let Some((block, _)) = most.filter(|(_, waiting)| *waiting > PER_BLOCK_MIN)
            && self.evict_of(block, now)
        {
            return true;
        }
        let mut old = self.connections.iter().take_while(|(_, each)| each.is_older_than(HEAD_GRACE, now));
        let Some(number) = old.find(|(_, each)| each.may_be_evicted(now)).map(|(number, _)| *number) else {
            return false;
        };
        self.send_away(number);
        true
    }

    /// Evicts the oldest waiting connection of a block, preferably one whose grace has ended.
    fn evict_of(&mut self, block: AddressBlock, now: Duration) -> bool {
        let Some(peers) = self.blocks.get(&block) else { return false };
        let each =
            || peers.numbers.iter().filter_map(|number| Some((*number, self.connections.get(number)?)));
        let mut old = each().take_while(|(_, each)| each.is_older_than(HEAD_GRACE, now));
        let patient = old.find(|(_, each)| each.may_be_evicted(now));
        let found = patient.or_else(|| each().find(|(_, each)| each.is_waiting()));
        let Some(number) = found.map(|(number, _)| number) else { return false };
        self.send_away(number);
        true
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

    /// The number of waiting connections of a block.
    fn waiting(&self, block: AddressBlock) -> usize {
        self.blocks.get(&block).map_or(0, |peers| peers.waiting.load(Relaxed))
    }
}

impl Connection {
    /// Whether there is no request.
    pub(crate) fn is_idle(&self) -> bool {
        self.stage.load(Relaxed) == Stage::Idle as u8
    }

    /// Whether the peer has not yet sent a whole request.
    pub(crate) fn is_waiting(&self) -> bool {
        self.stage.load(Relaxed) != Stage::Running as u8
    }

    /// Begins a request. The caller drops the guard at its end.
    pub(crate) fn begin_request(self: &Arc<Self>, has_arrived: bool) -> RequestGuard {
        let now_ms = self.clock.monotonic().as_millis();
        self.head_at_ms.store(u64::try_from(now_ms).unwrap_or(u64::MAX), Relaxed);
        self.enter_stage(if has_arrived { Stage::Running } else { Stage::Receiving });
        RequestGuard(self.clone())
    }

    /// Marks the current request as arrived, or lets it keep its place while its body arrives.
    pub(crate) fn received(&self) {
        self.enter_stage(Stage::Running);
    }

    /// Returns when the connection is evicted.
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

    /// Whether the connection is waiting and its grace has ended.
    fn may_be_evicted(&self, now: Duration) -> bool {
        let head_at = Duration::from_millis(self.head_at_ms.load(Relaxed));
        let had_time = self.is_idle() || now.saturating_sub(head_at) >= BODY_GRACE;
        self.is_waiting() && had_time && self.is_older_than(HEAD_GRACE, now)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().remove(self.number);
        // A running request is not counted as waiting.
        if self.connection.is_waiting() {
            self.connection.waiting.fetch_sub(1, Relaxed);
        }
        self.connections.ended.notify_waiters();
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.enter_stage(Stage::Idle);
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    /// A node with 80 places, of which a block may have 20.
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
        // A running request does not wait, so it is not evicted.
        let running = places[0].connection.begin_request(true);
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
            connections.enter(None).moved_to(AddressBlock::from(std::net::IpAddr::from([192, 0, 2, 9])));
        assert_eq!(connections.open().waiting(AddressBlock::from(std::net::IpAddr::from([192, 0, 2, 9]))), 2);
        drop((given, neighbour));
        assert!(connections.open().blocks.is_empty());
    }

    #[test]
    fn without_room_the_block_with_the_most_connections_loses_one_at_once() {
        let (connections, hand) = connections();
        let evict = || connections.open().evict(connections.clock.monotonic());
        let mut many: Vec<_> = (0..18).map(|_| connections.enter(block("192.0.2.1"))).collect();
        let few: Vec<_> = (0..16).map(|_| connections.enter(block("192.0.2.2"))).collect();
        let begun = many[1].connection.begin_request(false);
        // A running request is not counted, and stays.
        let running = many[0].connection.begin_request(true);
        assert!(evict());
        assert!(is_open(&many[0]) && !is_open(&many[1]) && few.iter().all(is_open));
        drop(begun);
        many.retain(is_open);
        // Nobody has too many now, so their grace counts.
        assert!(!evict());
        hand.advance(HEAD_GRACE);
        assert!(evict() && is_open(&many[0]) && !is_open(&many[1]));
        drop((running, few));
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
        let _running = places[0].connection.begin_request(true);
        let _unfinished = places[1].connection.begin_request(false);
        let _kept = places[2].connection.begin_request(false);
        places[2].connection.received();
        // The unfinished request is within its grace. The idle connection is not.
        assert_eq!(evicted(), (true, vec![true, true, true, false]));
        assert_eq!(evicted(), (false, vec![true, true, true, false]));
        hand.advance(BODY_GRACE);
        assert_eq!(evicted(), (true, vec![true, false, true, false]));
        assert_eq!(evicted(), (false, vec![true, false, true, false]));
    }
}

//! Receives the events of the channels that this node has an interest in, and the changes of its sessions.
//!
//! A server in lame duck mode is about to stop. Then a connection to another server is made and subscribed
//! beside the present one, which goes on until the new one has everything. So nothing is missed. Servers of a
//! cluster forward messages and subscriptions to each other in their order, so a message that was forwarded
//! (a probe) proves that everything before it has arrived.
//!
//! After a connection was lost, every interest is sent to the server again. When the server has confirmed all
//! of them, the gap is reported, with the time up to which every message is known to have arrived. Messages
//! in between are dropped: they were committed before they were published, so a subscriber that reads the
//! store after the gap finds them there.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use domain::{LogInterval, Timestamp};
use nats::{Connection, ConnectionError, ServerOp};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

use super::interests::{Change, Changes};
use super::shared::{
    Duty, Link, PING_TICKS, PROBE_EVERY, SILENT_TICKS, Shared, Successor, TICK, arrival, count,
};
use crate::Delivery;
use crate::wire::{self, Origin};

/// The subscription to this node's own subject.
const NODE_SID: u64 = 1;
/// The subscription to the probe of a move.
const PROBE_SID: u64 = 2;
/// An interest that is confirmed later than this is reported as a gap, because its session may have continued
/// without the interest.
const INTEREST_CONFIRMED_WITHIN_MS: i64 = 1_500;
/// Maximum number of publishers whose last number is kept. Each start of a node is a publisher.
const PUBLISHERS_MAX: usize = 4_096;
/// Maximum number of unanswered pings. With more, the connection to the server is closed as silent.
const PINGS_MAX: usize = 65_536;

/// The longest move to another server. After it the connection counts as lost.
const MOVES_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Receiver {
    shared: Arc<Shared>,
    subscriber: mpsc::Sender<Delivery>,
    /// The last number of each publisher. A message with a number up to it is a duplicate.
    last_numbers: HashMap<u64, u64>,
    /// Every message that was published before this time has arrived.
    complete_until: Timestamp,
    ticking: Interval,
    /// Ticks so far.
    tick: u32,
    malformed_log: LogInterval,
    /// The unanswered pings of this connection.
    pings: VecDeque<Ping>,
    /// Whether the server of this connection has confirmed every interest.
    is_current: bool,
    /// Whether no connection was current before. Then no message can have been missed for long.
    is_first: bool,
    silent_ticks: u64,
    link: Link,
    /// The probe of the present move, or of the last one.
    probe: Probe,
}

/// A message from the new server of a move to the old one.
#[derive(Default)]
struct Probe {
    subject: String,
    has_arrived: bool,
}

struct Ping {
    sent_at: Timestamp,
    /// The last subscription that was sent before the ping.
    up_to: u64,
    /// When the oldest of these subscriptions was requested.
    waiting_since: Option<Timestamp>,
}

impl Receiver {
    pub(super) fn new(shared: Arc<Shared>, subscriber: mpsc::Sender<Delivery>) -> Self {
        let mut ticking = tokio::time::interval(TICK);
        ticking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            complete_until: shared.now(),
            shared,
            subscriber,
            last_numbers: HashMap::new(),
            ticking,
            tick: 0,
            malformed_log: LogInterval::default(),
            pings: VecDeque::new(),
            is_current: false,
            is_first: true,
            silent_ticks: 0,
            link: Link::new(Duty::Receive),
            probe: Probe::default(),
        }
    }

    /// Runs until the bus is dropped.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        loop {
            let mut connection = shared.connect(&mut self.link, &mut None).await;
            let ended = self.run_connection(&mut connection).await;
            shared.is_receiving.store(false, Relaxed);
            if let Err(error) = ended {
                shared.disconnected(&mut self.link, &error);
            }
            shared.interests.disconnected();
            if self.subscriber.is_closed() {
                return;
            }
        }
    }

    /// Receives on one connection until it ends.
    async fn run_connection(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        self.start_connection(connection);
        let shared = self.shared.clone();
        let mut successor: Option<Successor> = None;
        loop {
            if connection.is_leaving() && self.is_current && successor.is_none() {
                successor = Some(shared.succeed(connection.server(), Duty::Receive));
            }
            tokio::select! {
                driven = connection.drive() => {
                    driven?;
                    self.read_ops(connection).await?;
                }
                () = shared.interests.changed.notified() => {
                    let changes = shared.interests.changes();
                    self.send_changes(connection, changes);
                }
                _ = self.ticking.tick() => self.on_tick(connection)?,
                new = arrival(&mut successor) => {
                    successor = None;
                    let moving = tokio::time::timeout(MOVES_WITHIN, self.move_to(connection, new));
                    *connection = moving.await.unwrap_or(Err(ConnectionError::Apart))?;
                }
            }
            if self.subscriber.is_closed() {
                return Ok(());
            }
        }
    }

    /// Moves to a new connection without a gap. First the new one is subscribed to everything. The probe that
    /// follows arrives at the old server after these subscriptions, and after every earlier message that was
    /// published at the new server. When the old connection has delivered all of that, the new one takes its
    /// place. Messages that came over both are recognized by their numbers.
    async fn move_to(
        &mut self,
        old: &mut Connection,
        mut new: Connection,
    ) -> Result<Connection, ConnectionError> {
        let options = &self.shared.options;
        let probe = options.prefix.of_probe((options.random)());
        old.subscribe(&probe, PROBE_SID);
        new.subscribe(&options.prefix.of_node(&options.node), NODE_SID);
        let Changes { changes, up_to, waiting_since } = self.shared.interests.connected();
        self.send_interests(&mut new, changes);
        self.probe = Probe { subject: probe.clone(), has_arrived: false };
        let mut probing = tokio::time::interval(PROBE_EVERY);
        while !self.probe.has_arrived {
            tokio::select! {
                driven = old.drive() => {
                    driven?;
                    self.read_ops(old).await?;
                }
                // What is received here is read after the move.
                driven = new.drive() => driven?,
                _ = probing.tick() => new.publish(&probe, &[], &[]),
            }
        }
        self.ping(old, up_to, waiting_since);
        while !self.pings.is_empty() {
            old.drive().await?;
            self.read_ops(old).await?;
        }
        Ok(new)
    }

    fn start_connection(&mut self, connection: &mut Connection) {
        self.pings.clear();
        self.is_current = false;
        self.silent_ticks = 0;
        let options = &self.shared.options;
        connection.subscribe(&options.prefix.of_node(&options.node), NODE_SID);
        self.shared.try_to_subscribe(connection);
        let everything = self.shared.interests.connected();
        self.send_changes(connection, everything);
    }

    /// Sends changes of interests to the server, and a ping after them.
    fn send_changes(&mut self, connection: &mut Connection, changes: Changes) {
        let Changes { changes, up_to, waiting_since } = changes;
        self.send_interests(connection, changes);
        self.ping(connection, up_to, waiting_since);
    }

    fn send_interests(&self, connection: &mut Connection, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Subscribe(channel, sid) => {
                    connection.subscribe(&self.shared.options.prefix.of_channel(&channel), sid);
                }
                Change::Unsubscribe(sid) => connection.unsubscribe(sid),
            }
        }
    }

    fn ping(&mut self, connection: &mut Connection, up_to: u64, waiting_since: Option<Timestamp>) {
        connection.ping();
        self.pings.push_back(Ping { sent_at: self.shared.now(), up_to, waiting_since });
    }

    fn on_tick(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        self.tick = self.tick.saturating_add(1);
        self.silent_ticks = if connection.has_received() { 0 } else { self.silent_ticks + 1 };
        if self.silent_ticks >= SILENT_TICKS || self.pings.len() > PINGS_MAX {
            return Err(ConnectionError::Silent);
        }
        if u64::from(self.tick).is_multiple_of(PING_TICKS) {
            // Without a session nothing else would show that the right to subscribe is gone.
            self.shared.try_to_subscribe(connection);
            self.ping(connection, 0, None);
        }
        Ok(())
    }

    async fn read_ops(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        while let Some(op) = connection.next_op()? {
            match op {
                ServerOp::Message { subject, .. } if subject == self.probe.subject => {
                    self.probe.has_arrived = true;
                }
                ServerOp::Message { subject, payload } => {
                    count(&self.shared.counters.received, 1);
                    if self.is_current
                        && let Some(delivery) = self.read(subject, payload)
                    {
                        self.deliver(delivery).await;
                    }
                }
                ServerOp::Pong => {
                    self.shared.proven(&mut self.link, connection.server());
                    self.on_pong().await;
                }
                ServerOp::Error(error) => return Err(ConnectionError::Refused(error.to_owned())),
                ServerOp::Info(info) => {
                    let info = info.to_owned();
                    connection.learn(&info, &self.shared.servers);
                }
                ServerOp::Ping | ServerOp::Ok => {}
            }
        }
        Ok(())
    }

    /// Decodes a message; `None` when it is a duplicate or invalid for this node.
    fn read(&mut self, subject: &str, payload: &[u8]) -> Option<Delivery> {
        match wire::decode(payload) {
            // A publisher on one subject must not speak for another channel or node.
            Ok((_, message)) if self.shared.options.prefix.of_message(&message) != subject => {
                self.on_malformed(subject, "the message belongs to another subject");
                None
            }
            Ok((origin, message)) => self.is_new(origin).then_some(Delivery::Message(message)),
            Err(error) => {
                self.on_malformed(subject, &error.to_string());
                // An undecodable change of a session is found in the store later.
                self.shared.options.prefix.channel_of(subject).map(Delivery::Lost)
            }
        }
    }

    fn on_malformed(&mut self, subject: &str, error: &str) {
        count(&self.shared.counters.malformed, 1);
        if let Some(times) = self.malformed_log.due(TICK * self.tick) {
            tracing::warn!(subject, error, times, "dropped a malformed bus message");
        }
    }

    fn is_new(&mut self, Origin { publisher, number }: Origin) -> bool {
        if self.last_numbers.len() >= PUBLISHERS_MAX && !self.last_numbers.contains_key(&publisher) {
            self.last_numbers.clear();
        }
        let last = self.last_numbers.entry(publisher).or_default();
        let is_new = number > *last;
        *last = number.max(*last);
        is_new
    }

    /// The server has confirmed everything before the oldest ping, and every message that was published
    /// before the ping has arrived.
    async fn on_pong(&mut self) {
        let Some(Ping { sent_at, up_to, waiting_since }) = self.pings.pop_front() else { return };
        let is_late = |since: Timestamp| {
            self.shared.now().as_millis() - since.as_millis() > INTEREST_CONFIRMED_WITHIN_MS
        };
        let missed_since = if self.is_current || (self.is_first && !is_late(self.complete_until)) {
            waiting_since.filter(|since| is_late(*since))
        } else {
            Some(self.complete_until)
        };
        (self.is_current, self.is_first) = (true, false);
        self.shared.is_receiving.store(true, Relaxed);
        if let Some(since) = missed_since {
            self.deliver(Delivery::Gap { since }).await;
        }
        self.complete_until = sent_at;
        self.shared.interests.confirm(up_to);
    }

    /// Waits while the queue of the subscriber is full. A server that cannot send for too long closes the
    /// connection.
    async fn deliver(&mut self, delivery: Delivery) {
        // A dropped subscriber needs no message.
        let _ = self.subscriber.send(delivery).await;
        self.silent_ticks = 0;
    }
}

#[cfg(test)]
mod tests {
    use domain::NodeId;
    use nats::Address;

    use super::super::shared::Options;
    use super::super::subjects::Prefix;
    use super::*;
    use crate::Message;

    fn receiver() -> (Receiver, mpsc::Receiver<Delivery>) {
        let options = Options {
            access: Address::parse("nats://nowhere").expect("good").into(),
            prefix: Prefix::default(),
            node: NodeId::stored("n".into()),
            now: Box::new(|| Timestamp::from_millis(7)),
            random: Box::new(|| 1),
        };
        let (sender, deliveries) = mpsc::channel(8);
        (Receiver::new(Arc::new(Shared::new(options)), sender), deliveries)
    }

    #[tokio::test]
    async fn duplicates_are_dropped() {
        let (mut receiver, _deliveries) = receiver();
        let cases = [(1, 1, true), (1, 3, true), (1, 2, false), (1, 3, false), (2, 1, true), (1, 4, true)];
        for (publisher, number, is_new) in cases {
            assert_eq!(receiver.is_new(Origin { publisher, number }), is_new, "{publisher} {number}");
        }
    }

    #[tokio::test]
    async fn messages_of_another_subject_are_dropped_and_counted() {
        let (mut receiver, _deliveries) = receiver();
        let message = Message::NodeDeclaredDead { node: NodeId::stored("n".into()) };
        let payload =
            |number| [wire::header(Origin { publisher: 1, number }), wire::encode(&message)].concat();
        // A forged number in a message for another node has no effect.
        assert!(receiver.read("stagedoor.node.other", &payload(9)).is_none());
        assert!(receiver.read("stagedoor.event.n", &payload(9)).is_none());
        assert_eq!(receiver.shared.counters.malformed.load(Relaxed), 2);
        assert!(matches!(receiver.read("stagedoor.node.n", &payload(1)), Some(Delivery::Message(_))));
    }

    #[tokio::test]
    async fn the_number_of_remembered_publishers_is_bounded() {
        let (mut receiver, _deliveries) = receiver();
        for publisher in 0..=PUBLISHERS_MAX as u64 {
            assert!(receiver.is_new(Origin { publisher, number: 1 }));
        }
        assert!(receiver.last_numbers.len() <= PUBLISHERS_MAX);
    }
}

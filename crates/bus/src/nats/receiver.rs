//! What this node hears: the events of the channels that it has an interest in, and the changes of its sessions.
//!
//! After a connection was lost, the server is told every interest again, and only when it has understood them all is the
//! gap told, with the time up to which everything is known to have come. What comes in between is dropped: it was
//! committed before it was published, so whoever looks into the store on hearing of the gap finds it there.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::BytesMut;
use domain::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

use super::interests::{Change, Changes};
use super::protocol::{self, Said};
use super::{Broken, Link, PING_TICKS, SILENT_TICKS, Shared, TICK, count};
use crate::Delivery;
use crate::wire::{self, Origin};

/// The subscription to this node's own subject.
const NODE_SID: u64 = 1;
/// An interest that took longer to be confirmed is told as a gap: whoever waited for it may have gone on.
const INTEREST_WITHIN_MS: i64 = 1_500;
/// Publishers whose last number is remembered: lives of nodes.
const PUBLISHERS_MAX: usize = 4_096;
/// Pings without an answer, after which a server is taken for silent whatever else it says.
const PINGS_MAX: usize = 65_536;

pub(super) struct Receiver {
    shared: Arc<Shared>,
    subscriber: mpsc::Sender<Delivery>,
    /// The last number of each publisher: what is not above it has come already.
    heard: HashMap<u64, u64>,
    /// Everything that was published before has come.
    proven: Timestamp,
    ticking: Interval,
    tick: u64,
    /// The pings of this connection that were not answered yet.
    pings: VecDeque<Ping>,
    /// This connection's server has understood every interest.
    is_current: bool,
    /// Before that, on the very first connection, nothing can have been missed for long.
    is_first: bool,
    silent_ticks: u64,
}

struct Ping {
    sent_at: Timestamp,
    /// What the server had been told by then.
    up_to: u64,
    /// When somebody began to wait for it.
    waiting_since: Option<Timestamp>,
}

impl Receiver {
    pub(super) fn new(shared: Arc<Shared>, subscriber: mpsc::Sender<Delivery>) -> Self {
        let mut ticking = tokio::time::interval(TICK);
        ticking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            proven: shared.now(),
            shared,
            subscriber,
            heard: HashMap::new(),
            ticking,
            tick: 0,
            pings: VecDeque::new(),
            is_current: false,
            is_first: true,
            silent_ticks: 0,
        }
    }

    /// Runs until the bus is dropped.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        loop {
            let mut link = shared.connect("receiver", &mut None).await;
            let listened = self.listen(&mut link).await;
            shared.is_heard.store(false, Relaxed);
            if let Err(error) = listened {
                shared.disconnected("receiver", &error);
            }
            shared.interests.disconnected();
            if self.subscriber.is_closed() {
                return;
            }
        }
    }

    /// Listens on one connection until it ends.
    async fn listen(&mut self, link: &mut Link) -> Result<(), Broken> {
        self.begin(&mut link.out);
        let shared = self.shared.clone();
        loop {
            tokio::select! {
                turned = link.turn() => {
                    turned?;
                    self.hear(link).await?;
                }
                () = shared.interests.changed.notified() => {
                    let changes = shared.interests.changes();
                    self.tell(&mut link.out, changes);
                }
                _ = self.ticking.tick() => self.on_tick(link)?,
            }
            if self.subscriber.is_closed() {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, out: &mut BytesMut) {
        self.pings.clear();
        self.is_current = false;
        self.silent_ticks = 0;
        let options = &self.shared.options;
        protocol::subscribe(out, &options.prefix.of_node(&options.node), NODE_SID);
        let everything = self.shared.interests.connected();
        self.tell(out, everything);
    }

    /// Tells the server of interests, and pings behind them.
    fn tell(&mut self, out: &mut BytesMut, changes: Changes) {
        let Changes { changes, up_to, waiting_since } = changes;
        for change in changes {
            match change {
                Change::Subscribe(channel, sid) => {
                    protocol::subscribe(out, &self.shared.options.prefix.of_channel(&channel), sid);
                }
                Change::Unsubscribe(sid) => protocol::unsubscribe(out, sid),
            }
        }
        self.ping(out, up_to, waiting_since);
    }

    fn ping(&mut self, out: &mut BytesMut, up_to: u64, waiting_since: Option<Timestamp>) {
        protocol::ping(out);
        self.pings.push_back(Ping { sent_at: self.shared.now(), up_to, waiting_since });
    }

    fn on_tick(&mut self, link: &mut Link) -> Result<(), Broken> {
        self.tick += 1;
        self.silent_ticks = if link.was_heard() { 0 } else { self.silent_ticks + 1 };
        if self.silent_ticks >= SILENT_TICKS || self.pings.len() > PINGS_MAX {
            return Err(Broken::Silent);
        }
        if self.tick.is_multiple_of(PING_TICKS) {
            self.ping(&mut link.out, 0, None);
        }
        Ok(())
    }

    async fn hear(&mut self, link: &mut Link) -> Result<(), Broken> {
        while let Some(said) = link.next()? {
            match said {
                Said::Message { subject, payload } => {
                    count(&self.shared.counters.received, 1);
                    if self.is_current
                        && let Some(delivery) = self.read(subject, payload)
                    {
                        self.deliver(delivery).await;
                    }
                }
                Said::Pong => self.on_pong().await,
                Said::Error(error) => return Err(Broken::Refused(error.to_owned())),
                Said::Info(_) | Said::Ping | Said::Ok => {}
            }
        }
        Ok(())
    }

    /// What a message says; `None` when it has come before, or says nothing to anybody here.
    fn read(&mut self, subject: &str, payload: &[u8]) -> Option<Delivery> {
        match wire::decode(payload) {
            // Who may publish under one subject must not speak for another channel or node.
            Ok((_, message)) if self.shared.options.prefix.of_message(&message) != subject => {
                count(&self.shared.counters.malformed, 1);
                tracing::warn!(subject, "a message on the bus belongs to another subject: it was dropped");
                None
            }
            Ok((origin, message)) => self.is_new(origin).then_some(Delivery::Message(message)),
            Err(error) => {
                count(&self.shared.counters.malformed, 1);
                tracing::warn!(subject, %error, "a message on the bus was not read");
                // A change of a session that was not read is found in the store.
                self.shared.options.prefix.channel_of(subject).map(Delivery::Lost)
            }
        }
    }

    fn is_new(&mut self, Origin { publisher, number }: Origin) -> bool {
        if self.heard.len() >= PUBLISHERS_MAX && !self.heard.contains_key(&publisher) {
            self.heard.clear();
        }
        let last = self.heard.entry(publisher).or_default();
        let is_new = number > *last;
        *last = number.max(*last);
        is_new
    }

    /// Everything up to the oldest ping was understood, and what was published before it was sent has come.
    async fn on_pong(&mut self) {
        let Some(Ping { sent_at, up_to, waiting_since }) = self.pings.pop_front() else { return };
        let is_late =
            |since: Timestamp| self.shared.now().as_millis() - since.as_millis() > INTEREST_WITHIN_MS;
        let missed_since = if self.is_current || (self.is_first && !is_late(self.proven)) {
            waiting_since.filter(|since| is_late(*since))
        } else {
            Some(self.proven)
        };
        (self.is_current, self.is_first) = (true, false);
        self.shared.is_heard.store(true, Relaxed);
        if let Some(since) = missed_since {
            self.deliver(Delivery::Gap { since }).await;
        }
        self.proven = sent_at;
        self.shared.interests.confirm(up_to);
    }

    /// Waits while the subscriber is busy. A server that meanwhile cannot get rid of what it has hangs up in the end.
    async fn deliver(&mut self, delivery: Delivery) {
        // A subscriber that has gone misses nothing.
        let _ = self.subscriber.send(delivery).await;
        self.silent_ticks = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use domain::NodeId;

    use super::super::{Address, Counters, Interests, Options, Prefix};
    use super::*;
    use crate::Message;

    fn receiver() -> (Receiver, mpsc::Receiver<Delivery>) {
        let options = Options {
            address: Address::parse("nats://nowhere").expect("good"),
            prefix: Prefix::default(),
            node: NodeId::stored("n".into()),
            now: Box::new(|| Timestamp::from_millis(7)),
            random: Box::new(|| 1),
        };
        let shared = Shared {
            options,
            interests: Arc::new(Interests::new()),
            counters: Counters::default(),
            is_heard: AtomicBool::new(false),
        };
        let (sender, deliveries) = mpsc::channel(8);
        (Receiver::new(Arc::new(shared), sender), deliveries)
    }

    #[tokio::test]
    async fn what_came_before_comes_no_more() {
        let (mut receiver, _deliveries) = receiver();
        let cases = [(1, 1, true), (1, 3, true), (1, 2, false), (1, 3, false), (2, 1, true), (1, 4, true)];
        for (publisher, number, is_new) in cases {
            assert_eq!(receiver.is_new(Origin { publisher, number }), is_new, "{publisher} {number}");
        }
    }

    #[tokio::test]
    async fn what_belongs_to_another_subject_is_dropped_and_counted() {
        let (mut receiver, _deliveries) = receiver();
        let message = Message::NodeStruckOff { node: NodeId::stored("n".into()) };
        let payload =
            |number| [&wire::header(Origin { publisher: 1, number })[..], &wire::encode(&message)].concat();
        // A number that was forged with it does not count either.
        assert!(receiver.read("stagedoor.node.other", &payload(9)).is_none());
        assert!(receiver.read("stagedoor.event.n", &payload(9)).is_none());
        assert_eq!(receiver.shared.counters.malformed.load(Relaxed), 2);
        assert!(matches!(receiver.read("stagedoor.node.n", &payload(1)), Some(Delivery::Message(_))));
    }

    #[tokio::test]
    async fn publishers_are_not_remembered_without_bound() {
        let (mut receiver, _deliveries) = receiver();
        for publisher in 0..=PUBLISHERS_MAX as u64 {
            assert!(receiver.is_new(Origin { publisher, number: 1 }));
        }
        assert!(receiver.heard.len() <= PUBLISHERS_MAX);
    }
}

//! Publishes the messages of this node. One task numbers them, sends them in order, and answers their callers
//! when the server has confirmed them.
//!
//! Messages that were in flight when a connection ended are sent again on the next one, under the same
//! numbers. Receivers recognize duplicates by these numbers. Messages that are not confirmed in time are
//! given up, and the caller receives their channels.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use domain::ChannelId;
use nats::{Connection, ConnectionError, ServerOp};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior};

use super::shared::{
    Duty, Link, PING_TICKS, PROBE_EVERY, SILENT_TICKS, Shared, Successor, TICK, arrival, count,
};
use crate::Message;
use crate::wire::{self, Origin};

/// Ticks within which a message has to be confirmed: two seconds.
const CONFIRM_TIMEOUT_TICKS: u64 = 8;
/// Capacity of the queue of batches. Callers wait while it is full.
pub(super) const BATCHES_WAITING_MAX: usize = 1_024;
/// Maximum number of batches taken from the queue at once.
const BATCHES_AT_ONCE_MAX: usize = 256;
/// Bytes in flight above which no more batches are taken.
const IN_FLIGHT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest move to another server. After it the connection counts as lost.
const MOVES_WITHIN: Duration = Duration::from_secs(1);
/// The subscription to the probe of a move.
const PROBE_SID: u64 = 1;
/// How long a caller waits for room in the queue.
const ENQUEUE_TIMEOUT: Duration = Duration::from_secs(1);

/// The encoded messages of one call.
pub(super) struct Batch {
    frames: Vec<Frame>,
    /// Dropped without an answer when the batch is given up.
    confirmed: Option<oneshot::Sender<()>>,
    /// The number of the first message. The other messages have the numbers after it.
    first: u64,
    /// The tick at which the batch is given up.
    until: u64,
    /// The ping of this connection that confirms the batch; `None` until the batch is sent on this
    /// connection.
    ping: Option<u64>,
}

struct Frame {
    subject: String,
    body: Vec<u8>,
}

/// Publishes and waits for the confirmation. Returns the channels of the events that were given up.
pub(super) async fn publish(
    shared: &Shared,
    publisher: &mpsc::Sender<Batch>,
    messages: Vec<Message>,
) -> Vec<ChannelId> {
    if messages.is_empty() {
        return Vec::new();
    }
    let count_all = messages.len();
    let channels: Vec<_> = messages.iter().filter_map(Message::channel).cloned().collect();
    let frames = messages.iter().map(|message| Frame::new(shared, message)).collect();
    let (confirmed, answer) = oneshot::channel();
    let batch = Batch { frames, confirmed: Some(confirmed), first: 0, until: 0, ping: None };
    let confirmed = match tokio::time::timeout(ENQUEUE_TIMEOUT, publisher.send(batch)).await {
        Ok(Ok(())) => answer.await.is_ok(),
        Ok(Err(_)) | Err(_) => false,
    };
    if confirmed {
        count(&shared.counters.published, count_all);
        return Vec::new();
    }
    count(&shared.counters.lost, channels.len());
    channels
}

impl Frame {
    fn new(shared: &Shared, message: &Message) -> Self {
        Self { subject: shared.options.prefix.of_message(message), body: wire::encode(message) }
    }
}

impl Batch {
    fn bytes(&self) -> usize {
        self.frames.iter().map(|frame| frame.subject.len() + frame.body.len()).sum()
    }

    /// Whether the caller has stopped waiting for the batch.
    fn is_given_up(&self) -> bool {
        self.confirmed.is_none()
    }
}

pub(super) struct Publisher {
    shared: Arc<Shared>,
    batches: mpsc::Receiver<Batch>,
    /// Identifies this instance of the node's bus.
    id: u64,
    next_number: u64,
    in_flight: VecDeque<Batch>,
    in_flight_bytes: usize,
    /// Ticks so far.
    tick: u64,
    ticking: Interval,
    link: Link,
    /// The pings of this connection.
    pings: Pings,
}

/// The pings of one connection.
#[derive(Default)]
struct Pings {
    sent: u64,
    answered: u64,
    silent_ticks: u64,
}

impl Publisher {
    pub(super) fn new(shared: Arc<Shared>, batches: mpsc::Receiver<Batch>, link: Link) -> Self {
        let mut ticking = tokio::time::interval(TICK);
        ticking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            id: (shared.options.random)(),
            shared,
            batches,
            next_number: 1,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            tick: 0,
            ticking,
            link,
            pings: Pings::default(),
        }
    }

    /// Runs until the bus is dropped.
    pub(super) async fn run(mut self, mut connection: Connection) {
        loop {
            match self.run_connection(&mut connection).await {
                Ok(()) => return,
                Err(error) => self.shared.disconnected(&mut self.link, &error),
            }
            match self.reconnect().await {
                Some(new) => connection = new,
                None => return,
            }
        }
    }

    /// Publishes on one connection until it fails (an error) or the bus is dropped. When the server is about
    /// to stop, a connection to another one takes its place.
    async fn run_connection(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        self.start_connection(connection);
        let mut new_batches = Vec::new();
        let mut successor: Option<Successor> = None;
        loop {
            if connection.is_leaving() && successor.is_none() {
                successor = Some(self.shared.succeed(connection.server(), Duty::Publish));
            }
            let has_room = self.in_flight_bytes < IN_FLIGHT_BYTES_MAX;
            tokio::select! {
                driven = connection.drive() => {
                    driven?;
                    self.read_ops(connection)?;
                }
                count = self.batches.recv_many(&mut new_batches, BATCHES_AT_ONCE_MAX), if has_room => {
                    if count == 0 {
                        return Ok(());
                    }
                    self.number(&mut new_batches);
                    self.send(connection);
                }
                _ = self.ticking.tick() => self.on_tick(connection)?,
                new = arrival(&mut successor) => {
                    successor = None;
                    let moving = tokio::time::timeout(MOVES_WITHIN, self.move_to(connection, new));
                    *connection = moving.await.unwrap_or(Err(ConnectionError::Apart))?;
                    // What the old server has not confirmed is sent again under its numbers.
                    self.start_connection(connection);
                }
            }
        }
    }

    /// Waits until the new server has every message that was sent to the old one, which a probe follows.
    /// Otherwise receivers at the new server would get later messages before them, and take them for
    /// duplicates.
    async fn move_to(
        &mut self,
        old: &mut Connection,
        mut new: Connection,
    ) -> Result<Connection, ConnectionError> {
        let probe = self.shared.options.prefix.of_probe((self.shared.options.random)());
        new.subscribe(&probe, PROBE_SID);
        let mut probing = tokio::time::interval(PROBE_EVERY);
        while !self.has_message(&mut new)? {
            tokio::select! {
                driven = old.drive() => {
                    driven?;
                    self.read_ops(old)?;
                }
                driven = new.drive() => driven?,
                _ = probing.tick() => old.publish(&probe, &[], &[]),
            }
        }
        new.unsubscribe(PROBE_SID);
        Ok(new)
    }

    fn has_message(&self, new: &mut Connection) -> Result<bool, ConnectionError> {
        while let Some(op) = new.next_op()? {
            match op {
                ServerOp::Message { .. } => return Ok(true),
                ServerOp::Error(error) => return Err(ConnectionError::Refused(error.to_owned())),
                ServerOp::Info(info) => {
                    let info = info.to_owned();
                    new.learn(&info, &self.shared.servers);
                }
                ServerOp::Pong | ServerOp::Ping | ServerOp::Ok => {}
            }
        }
        Ok(false)
    }

    /// Starts a connection. Messages in flight are sent again, except those that were given up. Before them
    /// it finds out whether the server lets this node publish.
    fn start_connection(&mut self, connection: &mut Connection) {
        self.shared.try_to_publish(connection);
        self.pings = Pings::default();
        self.drop_given_up();
        for batch in &mut self.in_flight {
            batch.ping = None;
        }
        self.send(connection);
        if self.pings.sent == 0 {
            self.ping(connection);
        }
    }

    fn ping(&mut self, connection: &mut Connection) -> u64 {
        connection.ping();
        self.pings.sent += 1;
        self.pings.sent
    }

    /// Numbers the messages of new batches.
    fn number(&mut self, new_batches: &mut Vec<Batch>) {
        for mut batch in new_batches.drain(..) {
            batch.first = self.next_number;
            batch.until = self.tick + CONFIRM_TIMEOUT_TICKS;
            self.next_number += batch.frames.len() as u64;
            self.in_flight_bytes += batch.bytes();
            self.in_flight.push_back(batch);
        }
    }

    /// Sends the batches that were not sent on this connection, and one ping after them.
    fn send(&mut self, connection: &mut Connection) {
        let (ping, mut sent) = (self.pings.sent + 1, false);
        let begin = self.in_flight.partition_point(|batch| batch.ping.is_some());
        for batch in self.in_flight.range_mut(begin..) {
            batch.ping = Some(ping);
            sent = true;
            for (frame, number) in batch.frames.iter().zip(batch.first..) {
                let origin = Origin { publisher: self.id, number };
                connection.publish(&frame.subject, &wire::header(origin), &frame.body);
            }
        }
        if sent {
            self.ping(connection);
        }
    }

    /// Processes received operations, and answers the callers of confirmed batches.
    fn read_ops(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        while let Some(op) = connection.next_op()? {
            match op {
                ServerOp::Pong => {
                    self.pings.answered += 1;
                    self.shared.proven(&mut self.link, connection.server());
                }
                ServerOp::Error(error) => return Err(ConnectionError::Refused(error.to_owned())),
                ServerOp::Info(info) => {
                    let info = info.to_owned();
                    connection.learn(&info, &self.shared.servers);
                }
                _ => {}
            }
        }
        while let Some(batch) = self.in_flight.front() {
            if batch.ping.is_none_or(|ping| ping > self.pings.answered) {
                break;
            }
            let Some(batch) = self.in_flight.pop_front() else { break };
            self.in_flight_bytes -= batch.bytes();
            if let Some(confirmed) = batch.confirmed {
                // The caller may be gone.
                let _ = confirmed.send(());
            }
        }
        Ok(())
    }

    fn on_tick(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        self.tick += 1;
        self.give_up();
        self.pings.silent_ticks = if connection.has_received() { 0 } else { self.pings.silent_ticks + 1 };
        if self.pings.silent_ticks >= SILENT_TICKS {
            return Err(ConnectionError::Silent);
        }
        if self.tick.is_multiple_of(PING_TICKS) {
            // Without events nothing else would show that the right to publish is gone.
            self.shared.try_to_publish(connection);
            self.ping(connection);
        }
        Ok(())
    }

    /// Answers the callers whose deadline has passed. A sent batch stays in the list, because it may still be
    /// confirmed.
    fn give_up(&mut self) {
        for batch in &mut self.in_flight {
            if batch.until > self.tick {
                break;
            }
            batch.confirmed = None;
        }
    }

    /// Reconnects. Until then batches are still accepted, and given up after their deadline.
    async fn reconnect(&mut self) -> Option<Connection> {
        let shared = self.shared.clone();
        let mut reason = None;
        let mut link = std::mem::replace(&mut self.link, Link::new(Duty::Publish));
        let mut connecting = Box::pin(shared.connect(&mut link, &mut reason));
        let mut new_batches = Vec::new();
        loop {
            let has_room = self.in_flight_bytes < IN_FLIGHT_BYTES_MAX;
            tokio::select! {
                connection = &mut connecting => {
                    drop(connecting);
                    self.link = link;
                    return Some(connection);
                }
                count = self.batches.recv_many(&mut new_batches, BATCHES_AT_ONCE_MAX), if has_room => {
                    if count == 0 {
                        return None;
                    }
                    self.number(&mut new_batches);
                }
                _ = self.ticking.tick() => {
                    self.tick += 1;
                    self.give_up();
                    self.drop_given_up();
                }
            }
        }
    }

    fn drop_given_up(&mut self) {
        while self.in_flight.front().is_some_and(Batch::is_given_up) {
            let Some(batch) = self.in_flight.pop_front() else { return };
            self.in_flight_bytes -= batch.bytes();
        }
    }
}

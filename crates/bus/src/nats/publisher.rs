//! What this node says. One task numbers the messages, sends them in order, and answers those who wait for them when
//! the server has confirmed them.
//!
//! What was under way when a connection ends is sent again by the next one, under the same numbers, by which receivers
//! know what they have already. What is not confirmed in time is given up, and its channels are told to the caller.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use domain::ChannelId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior};

use super::{Broken, Link, PING_TICKS, SILENT_TICKS, Shared, TICK, count, protocol};
use crate::Message;
use crate::wire::{self, Origin};

/// Ticks that a message has to be confirmed within: two seconds.
const CONFIRMED_WITHIN_TICKS: u64 = 8;
/// Parcels that wait for the task before those who bring more wait too.
pub(super) const WAITING_MAX: usize = 1_024;
/// Parcels taken at once.
const TAKEN_MAX: usize = 256;
/// Bytes under way before no more parcels are taken.
const UNDER_WAY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a caller waits for its messages to be taken.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);

/// Messages of one caller, as bytes.
pub(super) struct Parcel {
    frames: Vec<Frame>,
    /// Dropped unanswered when the parcel is given up.
    confirmed: Option<oneshot::Sender<()>>,
    /// The number of the first message; the others follow.
    first: u64,
    /// The tick at which it is given up.
    until: u64,
    /// The ping on this connection that confirms it; `None` when it is yet to be sent there.
    ping: Option<u64>,
}

struct Frame {
    subject: String,
    body: Vec<u8>,
}

/// Sends, and waits for the answer. Gives the channels of the events that were given up.
pub(super) async fn publish(
    shared: &Shared,
    publisher: &mpsc::Sender<Parcel>,
    messages: Vec<Message>,
) -> Vec<ChannelId> {
    if messages.is_empty() {
        return Vec::new();
    }
    let count_all = messages.len();
    let channels: Vec<_> = messages.iter().filter_map(Message::channel).cloned().collect();
    let frames = messages.iter().map(|message| Frame::new(shared, message)).collect();
    let (confirmed, answer) = oneshot::channel();
    let parcel = Parcel { frames, confirmed: Some(confirmed), first: 0, until: 0, ping: None };
    let confirmed = match tokio::time::timeout(TAKEN_WITHIN, publisher.send(parcel)).await {
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

impl Parcel {
    fn bytes(&self) -> usize {
        self.frames.iter().map(|frame| frame.subject.len() + frame.body.len()).sum()
    }

    /// Nobody waits for it any more.
    fn is_given_up(&self) -> bool {
        self.confirmed.is_none()
    }
}

pub(super) struct Publisher {
    shared: Arc<Shared>,
    parcels: mpsc::Receiver<Parcel>,
    /// One life of this node's bus.
    id: u64,
    next_number: u64,
    under_way: VecDeque<Parcel>,
    under_way_bytes: usize,
    /// Ticks so far.
    tick: u64,
    ticking: Interval,
    /// What is said on this connection.
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
    pub(super) fn new(shared: Arc<Shared>, parcels: mpsc::Receiver<Parcel>) -> Self {
        let mut ticking = tokio::time::interval(TICK);
        ticking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            id: (shared.options.random)(),
            shared,
            parcels,
            next_number: 1,
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            tick: 0,
            ticking,
            pings: Pings::default(),
        }
    }

    /// Runs until the bus is dropped.
    pub(super) async fn run(mut self, mut link: Link) {
        loop {
            match self.speak(&mut link).await {
                Ok(()) => return,
                Err(error) => self.shared.disconnected("publisher", &error),
            }
            match self.reconnect().await {
                Some(new) => link = new,
                None => return,
            }
        }
    }

    /// Speaks by one connection, until it ends (an error) or the bus does.
    async fn speak(&mut self, link: &mut Link) -> Result<(), Broken> {
        self.begin(&mut link.out);
        let mut taken = Vec::new();
        loop {
            let has_room = self.under_way_bytes < UNDER_WAY_BYTES_MAX;
            tokio::select! {
                turned = link.turn() => {
                    turned?;
                    self.listen(link)?;
                }
                count = self.parcels.recv_many(&mut taken, TAKEN_MAX), if has_room => {
                    if count == 0 {
                        return Ok(());
                    }
                    self.take(&mut taken);
                    self.send(&mut link.out);
                }
                _ = self.ticking.tick() => self.on_tick(link)?,
            }
        }
    }

    /// On a new connection, what was under way is sent again; what was given up is not, whether it arrived or not.
    fn begin(&mut self, out: &mut BytesMut) {
        self.pings = Pings::default();
        self.forget_given_up();
        for parcel in &mut self.under_way {
            parcel.ping = None;
        }
        self.send(out);
    }

    fn ping(&mut self, out: &mut BytesMut) -> u64 {
        protocol::ping(out);
        self.pings.sent += 1;
        self.pings.sent
    }

    /// Numbers what callers brought.
    fn take(&mut self, taken: &mut Vec<Parcel>) {
        for mut parcel in taken.drain(..) {
            parcel.first = self.next_number;
            parcel.until = self.tick + CONFIRMED_WITHIN_TICKS;
            self.next_number += parcel.frames.len() as u64;
            self.under_way_bytes += parcel.bytes();
            self.under_way.push_back(parcel);
        }
    }

    /// Sends what was not sent on this connection, and one ping behind all of it.
    fn send(&mut self, out: &mut BytesMut) {
        let (ping, mut sent) = (self.pings.sent + 1, false);
        let begin = self.under_way.partition_point(|parcel| parcel.ping.is_some());
        for parcel in self.under_way.range_mut(begin..) {
            parcel.ping = Some(ping);
            sent = true;
            for (frame, number) in parcel.frames.iter().zip(parcel.first..) {
                let origin = Origin { publisher: self.id, number };
                protocol::publish(out, &frame.subject, &wire::header(origin), &frame.body);
            }
        }
        if sent {
            self.ping(out);
        }
    }

    /// Reads what the server says.
    fn listen(&mut self, link: &mut Link) -> Result<(), Broken> {
        while let Some(said) = link.next()? {
            match said {
                protocol::Said::Pong => self.pings.answered += 1,
                protocol::Said::Error(error) => return Err(Broken::Refused(error.to_owned())),
                _ => {}
            }
        }
        while let Some(parcel) = self.under_way.front() {
            if parcel.ping.is_none_or(|ping| ping > self.pings.answered) {
                break;
            }
            let Some(parcel) = self.under_way.pop_front() else { break };
            self.under_way_bytes -= parcel.bytes();
            if let Some(confirmed) = parcel.confirmed {
                // The caller waits no longer: so be it.
                let _ = confirmed.send(());
            }
        }
        Ok(())
    }

    fn on_tick(&mut self, link: &mut Link) -> Result<(), Broken> {
        self.tick += 1;
        self.give_up();
        self.pings.silent_ticks = if link.was_heard() { 0 } else { self.pings.silent_ticks + 1 };
        if self.pings.silent_ticks >= SILENT_TICKS {
            return Err(Broken::Silent);
        }
        if self.tick.is_multiple_of(PING_TICKS) {
            self.ping(&mut link.out);
        }
        Ok(())
    }

    /// Answers those whose time is over. What was sent stays known: it may be confirmed yet.
    fn give_up(&mut self) {
        for parcel in &mut self.under_way {
            if parcel.until > self.tick {
                break;
            }
            parcel.confirmed = None;
        }
    }

    /// Connects again. Callers bring more meanwhile, and get their answers.
    async fn reconnect(&mut self) -> Option<Link> {
        let shared = self.shared.clone();
        let mut reason = None;
        let mut connecting = std::pin::pin!(shared.connect("publisher", &mut reason));
        let mut taken = Vec::new();
        loop {
            let has_room = self.under_way_bytes < UNDER_WAY_BYTES_MAX;
            tokio::select! {
                link = &mut connecting => return Some(link),
                count = self.parcels.recv_many(&mut taken, TAKEN_MAX), if has_room => {
                    if count == 0 {
                        return None;
                    }
                    self.take(&mut taken);
                }
                _ = self.ticking.tick() => {
                    self.tick += 1;
                    self.give_up();
                    self.forget_given_up();
                }
            }
        }
    }

    fn forget_given_up(&mut self) {
        while self.under_way.front().is_some_and(Parcel::is_given_up) {
            let Some(parcel) = self.under_way.pop_front() else { return };
            self.under_way_bytes -= parcel.bytes();
        }
    }
}

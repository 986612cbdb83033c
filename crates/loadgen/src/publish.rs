//! The publishers. Each sends its messages one after the other, on schedule or as fast as allowed.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::clock::{Clock, Nanos, SECOND_NS, seconds};
use crate::http::{Client, Origin};
use crate::ledger::Mark;
use crate::publish_calls::PublishCalls;
use crate::shared::Shared;
use crate::stats::Times;

/// The pause after a failed call, so that a failing server is not overloaded.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);
/// How often a publisher checks the window.
const WINDOW_TICK: Duration = Duration::from_millis(1);
/// After this time without a delivery, the outstanding ones count as lost.
const WINDOW_STUCK: Nanos = SECOND_NS;

/// The pace of publishing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// This many messages a second, by all publishers together, regardless of the calls' duration.
    PerSecond(f64),
    /// Each call follows the answer to the last one, with at most this many outstanding deliveries.
    Window(u64),
}

impl Pace {
    /// The pace of calls with this many messages each.
    fn calls(self, batch: u16) -> Self {
        match self {
            Self::PerSecond(messages) => Self::PerSecond(messages / f64::from(batch)),
            window @ Self::Window(_) => window,
        }
    }
}

/// The end of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// After this duration.
    pub(crate) within: Nanos,
    /// After this many messages, if set.
    pub(crate) messages: Option<u64>,
}

/// One channel of one publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    channel: u32,
    stream: u32,
    /// The number of the next message.
    next: u32,
}

/// The streams of each publisher: publishers take turns in the channels, or channels in the publishers.
pub(crate) fn streams(publishers: usize, channels: usize) -> Vec<Vec<Stream>> {
    let stream =
        |channel: usize, stream: usize| Stream { channel: channel as u32, stream: stream as u32, next: 0 };
    if publishers >= channels {
        (0..publishers).map(|publisher| vec![stream(publisher % channels, publisher / channels)]).collect()
    } else {
        (0..publishers)
            .map(|publisher| {
                (publisher..channels).step_by(publishers).map(|channel| stream(channel, 0)).collect()
            })
            .collect()
    }
}

/// Maximum number of publishers of one channel.
pub(crate) fn streams_per_channel(publishers: usize, channels: usize) -> usize {
    publishers.div_ceil(channels).max(1)
}

/// All publishers of a run.
pub(crate) struct Publishers {
    shared: Arc<Shared>,
    publish_calls: Rc<PublishCalls>,
    /// Messages of one call.
    batch: u16,
    publishers: Vec<Publisher>,
}

struct Publisher {
    number: usize,
    client: Client,
    streams: Vec<Stream>,
    turn: usize,
}

/// The results of a round.
#[derive(Default)]
pub(crate) struct Round {
    /// Number of calls.
    pub(crate) calls: u64,
    /// Number of messages in them.
    pub(crate) messages: u64,
    /// Number of failed messages.
    pub(crate) failed: u64,
    /// Durations of the successful calls.
    pub(crate) latency: Times,
    /// Delays of calls because earlier calls took long.
    pub(crate) lag: Times,
    /// Seconds from the first call to the last answer.
    pub(crate) seconds: f64,
    /// Events received until then.
    pub(crate) deliveries: u64,
}

impl Publishers {
    pub(crate) fn new(
        shared: Arc<Shared>,
        origin: &Origin,
        publish_calls: PublishCalls,
        (count, batch): (usize, u16),
    ) -> Self {
        let publisher = |(number, streams)| {
            let client = Client::new(origin.clone(), shared.clock);
            Publisher { number, client, streams, turn: 0 }
        };
        let streams = streams(count, shared.channels.len());
        let publishers = streams.into_iter().enumerate().map(publisher).collect();
        Self { shared, publish_calls: Rc::new(publish_calls), batch, publishers }
    }

    /// Publishes until the limit. Must run in a local set.
    pub(crate) async fn round(&mut self, pace: Pace, limit: Limit) -> Round {
        let clock = self.shared.clock;
        let (started, before) = (clock.now(), self.shared.deliveries.get());
        let left = Rc::new(Cell::new(limit.messages.unwrap_or(u64::MAX)));
        let end = started.saturating_add(limit.within);
        let (count, batch) = (self.publishers.len(), self.batch);
        let mut tasks = JoinSet::new();
        for mut publisher in std::mem::take(&mut self.publishers) {
            let schedule = Schedule::new(pace.calls(batch), started, publisher.number, count);
            let (shared, publish_calls, left) =
                (self.shared.clone(), self.publish_calls.clone(), left.clone());
            tasks.spawn_local(async move {
                let round = publisher.publish(&shared, (&publish_calls, batch), schedule, end, &left).await;
                (publisher, round)
            });
        }
        let mut all = Round::default();
        for (publisher, round) in tasks.join_all().await {
            all.calls += round.calls;
            all.messages += round.messages;
            all.failed += round.failed;
            all.latency.merge(&round.latency);
            all.lag.merge(&round.lag);
            self.publishers.push(publisher);
        }
        self.publishers.sort_unstable_by_key(|publisher| publisher.number);
        all.seconds = seconds(clock.now() - started);
        all.deliveries = self.shared.deliveries.get() - before;
        all
    }

    /// The number of messages of each stream of each channel.
    pub(crate) fn sent(&self) -> Vec<Vec<u32>> {
        let mut sent = vec![vec![0; self.shared.streams]; self.shared.channels.len()];
        for stream in self.publishers.iter().flat_map(|publisher| &publisher.streams) {
            sent[stream.channel as usize][stream.stream as usize] = stream.next;
        }
        sent
    }
}

/// The schedule of one publisher's calls.
#[derive(Clone, Copy, Debug)]
enum Schedule {
    At { next: f64, every: f64 },
    Window(u64),
}

impl Schedule {
    fn new(pace: Pace, started: Nanos, publisher: usize, publishers: usize) -> Self {
        match pace {
            Pace::PerSecond(rate) => {
                let apart = SECOND_NS as f64 / rate;
                Self::At { next: started as f64 + apart * publisher as f64, every: apart * publishers as f64 }
            }
            Pace::Window(window) => Self::Window(window),
        }
    }

    /// Waits until the next call is due. Returns the time from which its latency counts, and its due time. If
    /// the call is late because an earlier one took long, its latency counts from its due time. Otherwise a
    /// stalled server would get fewer calls, and look better. Delays of the system's timers do not count.
    async fn wait(&mut self, shared: &Shared, end: Nanos) -> Option<(Nanos, Nanos)> {
        let clock = shared.clock;
        match self {
            Self::At { next, every } => {
                let due = *next as Nanos;
                *next += *every;
                let now = clock.now();
                if due >= end || now >= end {
                    return None;
                }
                if now >= due {
                    return Some((due, due));
                }
                tokio::time::sleep(Duration::from_nanos(due - now)).await;
                let now = clock.now();
                Some((now, now))
            }
            Self::Window(window) => {
                wait_for_window(shared, *window, clock, end).await;
                let now = clock.now();
                (now < end).then_some((now, now))
            }
        }
    }
}

async fn wait_for_window(shared: &Shared, window: u64, clock: Clock, end: Nanos) {
    let (mut seen, mut since) = (shared.deliveries.get(), clock.now());
    while shared.outstanding() > window && clock.now() < end {
        tokio::time::sleep(WINDOW_TICK).await;
        let (now, delivered) = (clock.now(), shared.deliveries.get());
        if delivered != seen {
            (seen, since) = (delivered, now);
        } else if now - since > WINDOW_STUCK {
            return;
        }
    }
}

impl Publisher {
    async fn publish(
        &mut self,
        shared: &Shared,
        (publish_calls, batch): (&PublishCalls, u16),
        mut schedule: Schedule,
        end: Nanos,
        left: &Cell<u64>,
    ) -> Round {
        let mut round = Round::default();
        while left.get() > 0 {
            let Some((called, due)) = schedule.wait(shared, end).await else { break };
            // Another publisher may have taken the last message.
            let count = left.get().min(batch.into());
            if count == 0 {
                break;
            }
            left.update(|left| left - count);
            let started = shared.clock.now();
            if let Schedule::At { .. } = schedule {
                round.lag.record(due, started);
            }
            round.calls += 1;
            round.messages += count;
            match self.call(shared, publish_calls, called, count as usize).await {
                Ok(()) => round.latency.record(started, shared.clock.now()),
                Err(kind) => {
                    round.failed += 1;
                    shared.errors.count(&format!("publish: {kind}"));
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
        round
    }

    /// Publishes the next `count` messages in one call.
    async fn call(
        &mut self,
        shared: &Shared,
        publish_calls: &PublishCalls,
        called: Nanos,
        count: usize,
    ) -> Result<(), String> {
        let marks: Vec<_> = (0..count).map(|_| self.next(called)).collect();
        let audience = marks.iter().map(|mark| shared.audience(mark.channel)).sum();
        shared.expected.fetch_add(audience, Relaxed);
        let answered = publish_calls.publish(&mut self.client, shared, &marks).await;
        if answered.is_err() {
            marks.iter().for_each(|mark| shared.uncertain.note(mark));
            shared.expected.fetch_sub(audience, Relaxed);
        }
        answered
    }

    /// The next message, for the channel whose turn it is.
    fn next(&mut self, called: Nanos) -> Mark {
        let turn = self.turn % self.streams.len();
        self.turn += 1;
        let stream = &mut self.streams[turn];
        let mark = Mark { channel: stream.channel, stream: stream.stream, number: stream.next, called };
        stream.next += 1;
        mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_has_a_publisher_and_no_two_share_a_stream() {
        for (publishers, channels) in [(1, 1), (8, 1), (1, 8), (8, 3), (3, 8), (8, 8)] {
            let streams = streams(publishers, channels);
            assert_eq!(streams.len(), publishers);
            assert!(streams.iter().all(|streams| !streams.is_empty()), "{publishers} {channels}");
            let mut all: Vec<_> =
                streams.concat().iter().map(|stream| (stream.channel, stream.stream)).collect();
            all.sort_unstable();
            let count = all.len();
            all.dedup();
            assert_eq!(all.len(), count);
            let per_channel = streams_per_channel(publishers, channels);
            assert!(all.iter().all(|(_, stream)| (*stream as usize) < per_channel));
            assert!((0..channels).all(|channel| all.contains(&(channel as u32, 0))));
        }
    }

    #[test]
    fn the_calls_of_all_publishers_are_evenly_spaced() {
        let schedule = |publisher| match Schedule::new(Pace::PerSecond(100.0), 1_000, publisher, 4) {
            Schedule::At { next, every } => (next, every),
            Schedule::Window(_) => panic!("a rate was asked for"),
        };
        assert_eq!(schedule(0), (1_000.0, 40_000_000.0));
        assert_eq!(schedule(3), (30_001_000.0, 40_000_000.0));
    }
}

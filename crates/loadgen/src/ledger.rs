//! Compares the sent with the received messages. Each message contains its position in the load, so each
//! session can detect messages that are missing, duplicated, out of order or on the wrong channel.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::clock::Nanos;
use crate::stats::lock;

/// The end of each message. It shows whether non-ASCII text arrives unchanged.
const GREETING: &str = "안녕하세요 👋";

/// The position of a message. A stream is the sequence of messages from one publisher to one channel. Its
/// calls are made one after the other, so its messages must arrive in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The channel's number.
    pub(crate) channel: u32,
    /// The stream's number within the channel.
    pub(crate) stream: u32,
    /// The message's number within the stream, from 0.
    pub(crate) number: u32,
    /// The time of its call.
    pub(crate) called: Nanos,
}

impl Mark {
    /// The text of the message.
    pub(crate) fn text(&self) -> String {
        let Self { channel, stream, number, called } = self;
        format!("@{channel}:{stream}:{number}:{called}@ {GREETING}")
    }

    /// Finds the mark in a payload, escaped or not. Nothing in a mark needs escaping.
    pub(crate) fn find(payload: &str) -> Option<Self> {
        let bytes = payload.as_bytes();
        let start = memchr::memchr(b'@', bytes)? + 1;
        let end = start + memchr::memchr(b'@', &bytes[start..])?;
        let mut numbers = bytes[start..end].split(|byte| *byte == b':').map(digits);
        let mut next = || numbers.next().flatten();
        let channel = u32::try_from(next()?).ok()?;
        let stream = u32::try_from(next()?).ok()?;
        let number = u32::try_from(next()?).ok()?;
        let called = next()?;
        numbers.next().is_none().then_some(Self { channel, stream, number, called })
    }
}

fn digits(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        sum.checked_mul(10)?.checked_add(digit.into())
    })
}

/// Messages of failed calls. They may arrive or not.
#[derive(Debug, Default)]
pub(crate) struct Uncertain(Mutex<HashSet<(u32, u32, u32)>>);

impl Uncertain {
    /// Records a failed call, before its stream continues.
    pub(crate) fn note(&self, mark: &Mark) {
        lock(&self.0).insert((mark.channel, mark.stream, mark.number));
    }

    fn holds(&self, channel: u32, stream: u32, number: u32) -> bool {
        lock(&self.0).contains(&(channel, stream, number))
    }

    /// The number of messages in `from..to` that must have arrived.
    fn required_count(&self, channel: u32, stream: u32, from: u32, to: u32) -> u64 {
        (from..to).filter(|number| !self.holds(channel, stream, *number)).count() as u64
    }
}

/// The record of one session's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ledger {
    channel: u32,
    /// The expected number of each stream.
    next: Box<[u32]>,
    /// A hash of the order in which the messages of all streams arrived.
    order: u64,
    /// Number of received messages.
    pub(crate) seen: u64,
}

/// The verdict on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the expected one.
    Good,
    /// This many messages before it are missing.
    Gap(u64),
    /// It is a duplicate, or late.
    Stale,
    /// It belongs to another channel.
    WrongChannel,
}

impl Ledger {
    /// The ledger of a session on this channel with this number of streams.
    pub(crate) fn new(channel: u32, streams: usize) -> Self {
        Self { channel, next: vec![0; streams].into(), order: 0, seen: 0 }
    }

    /// The channel's number.
    pub(crate) fn channel(&self) -> u32 {
        self.channel
    }

    /// Records a message.
    pub(crate) fn record(&mut self, mark: &Mark, uncertain: &Uncertain) -> Verdict {
        self.seen += 1;
        let expected = match self.next.get_mut(mark.stream as usize) {
            Some(next) if mark.channel == self.channel => next,
            _ => return Verdict::WrongChannel,
        };
        self.order = mix(mix(self.order, mark.stream), mark.number);
        if mark.number < *expected {
            let late = uncertain.holds(mark.channel, mark.stream, mark.number);
            return if late { Verdict::Good } else { Verdict::Stale };
        }
        let first_missing = std::mem::replace(expected, mark.number + 1);
        if first_missing == mark.number {
            return Verdict::Good;
        }
        match uncertain.required_count(mark.channel, mark.stream, first_missing, mark.number) {
            0 => Verdict::Good,
            missing => Verdict::Gap(missing),
        }
    }

    /// The number of messages in `sent` (the count of each stream) that are missing after the last received
    /// one.
    pub(crate) fn missing_at_end(&self, sent: &[u32], uncertain: &Uncertain) -> u64 {
        let streams = self.next.iter().zip(sent).zip(0..);
        streams
            .map(|((next, sent), stream)| uncertain.required_count(self.channel, stream, *next, *sent))
            .sum()
    }

    /// Equal for two sessions of a channel that received the same messages in the same order.
    pub(crate) fn order(&self) -> (u64, u64) {
        (self.seen, self.order)
    }
}

/// One step of FNV-1a, a word at a time.
fn mix(hash: u64, word: u32) -> u64 {
    (hash ^ u64::from(word) ^ 0xcbf2_9ce4_8422_2325).wrapping_mul(0x0000_0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(channel: u32, stream: u32, number: u32) -> Mark {
        Mark { channel, stream, number, called: 1 }
    }

    #[test]
    fn marks_are_found_in_the_payload_of_their_message() {
        let mark = Mark { channel: 7, stream: 0, number: u32::MAX, called: u64::MAX };
        assert_eq!(Mark::find(&format!(r#"{{\"content\":\"{}\"}}"#, mark.text())), Some(mark));
        assert!(mark.text().chars().count() <= 100, "a chat message has at most 100 characters");
        let none =
            ["", "@", "@1:2:3@", "@1:2:3:4", "@1:2:3:4:5@", "@1:2::4@", "@1:2:-3:4@", "@4294967296:0:0:0@"];
        for text in none {
            assert_eq!(Mark::find(text), None, "{text}");
        }
    }

    #[test]
    fn a_ledger_detects_missing_duplicate_late_and_misplaced_messages() {
        use Verdict::{Gap, Good, Stale, WrongChannel};
        let uncertain = Uncertain::default();
        let mut ledger = Ledger::new(3, 2);
        for ((channel, stream, number), verdict) in [
            ((3, 0, 0), Good),
            ((3, 1, 0), Good),
            ((3, 0, 1), Good),
            ((3, 0, 1), Stale),
            ((3, 0, 5), Gap(3)),
            ((3, 0, 3), Stale),
            ((3, 0, 6), Good),
            ((3, 1, 1), Good),
            ((4, 0, 7), WrongChannel),
            ((3, 2, 0), WrongChannel),
            ((3, 0, 7), Good),
        ] {
            assert_eq!(
                ledger.record(&mark(channel, stream, number), &uncertain),
                verdict,
                "{stream} {number}"
            );
        }
        assert_eq!(ledger.missing_at_end(&[8, 2], &uncertain), 0);
        assert_eq!(ledger.missing_at_end(&[9, 5], &uncertain), 4);
    }

    #[test]
    fn messages_of_failed_calls_may_be_missing_or_late() {
        let uncertain = Uncertain::default();
        uncertain.note(&mark(0, 0, 1));
        uncertain.note(&mark(0, 0, 4));
        let mut ledger = Ledger::new(0, 1);
        for (number, verdict) in
            [(0, Verdict::Good), (2, Verdict::Good), (1, Verdict::Good), (2, Verdict::Stale)]
        {
            assert_eq!(ledger.record(&mark(0, 0, number), &uncertain), verdict, "{number}");
        }
        assert_eq!(ledger.record(&mark(0, 0, 5), &uncertain), Verdict::Gap(1));
        uncertain.note(&mark(0, 0, 6));
        assert_eq!(ledger.missing_at_end(&[7], &uncertain), 0);
    }

    #[test]
    fn sessions_with_different_orders_differ() {
        let see = |marks: &[(u32, u32)]| {
            let mut ledger = Ledger::new(0, 2);
            for (stream, number) in marks {
                ledger.record(&mark(0, *stream, *number), &Uncertain::default());
            }
            ledger.order()
        };
        assert_eq!(see(&[(0, 0), (1, 0), (0, 1)]), see(&[(0, 0), (1, 0), (0, 1)]));
        assert_ne!(see(&[(0, 0), (1, 0), (0, 1)]), see(&[(1, 0), (0, 0), (0, 1)]));
        assert_ne!(see(&[(0, 0)]), see(&[]));
    }
}

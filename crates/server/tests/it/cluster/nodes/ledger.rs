//! Checks the delivery promise (`docs/spec/realtime.md#delivery`) against the records of producers and
//! sessions: no message twice or out of order, no gap while a session lives, and every message of a
//! subscription between its SYSTEM messages.

use std::collections::{HashMap, HashSet};

/// A logical time: all participants draw from one counter.
pub type LogicalTime = u64;

/// A message in the record of its producer.
#[derive(Clone, Debug)]
pub struct SentMessage {
    pub channel: usize,
    pub producer: usize,
    pub number: usize,
    /// The time before the call.
    pub began: LogicalTime,
    /// The time after a successful answer. Without one, the message may have been sent or not.
    pub acknowledged: Option<LogicalTime>,
}

impl SentMessage {
    /// The text of the message, which is unique.
    pub fn text(&self) -> String {
        text(self.producer, self.number)
    }
}

pub fn text(producer: usize, number: usize) -> String {
    format!("{producer}:{number}")
}

/// A message that a session received, in order.
#[derive(Clone, Debug)]
pub enum LogEntry {
    Connected,
    /// With the time of its receipt.
    Subscribed(usize, LogicalTime),
    Unsubscribed(usize),
    Message(usize, String),
}

/// The record of a session.
#[derive(Clone, Debug)]
pub struct SessionRecord {
    pub log: Vec<LogEntry>,
    /// Whether the session was still open after the last message.
    pub survived: bool,
}

/// A violation of the promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// `connected` does not come first, or comes again.
    NotConnectedFirst,
    /// A message that no producer has sent.
    NeverSent(String),
    /// A message on another channel than that of its producer.
    WrongChannel(String),
    Twice(String),
    /// The second message came after the first, although it was acknowledged before the first was begun, or
    /// its producer sent it earlier.
    OutOfOrder(String, String),
    /// A missing message, although a later one arrived or the session was still open at the end.
    Missing(String),
    /// A message before `subscribed` or after the end of the subscription.
    Unframed(String),
}

/// One subscription: from `subscribed` to its end or the end of the session.
struct Window {
    channel: usize,
    from: LogicalTime,
    received: Vec<String>,
    /// Whether the subscription was open after the last message.
    survived: bool,
}

/// All violations.
pub fn violations(sent: &[SentMessage], record: &SessionRecord) -> Vec<Violation> {
    let by_text: HashMap<_, _> = sent.iter().map(|message| (message.text(), message)).collect();
    let mut violations = Vec::new();
    let (mut open, mut closed) = (HashMap::<usize, Window>::new(), Vec::new());
    let mut received = HashSet::new();
    for (at, entry) in record.log.iter().enumerate() {
        if (at == 0) != matches!(entry, LogEntry::Connected) {
            violations.push(Violation::NotConnectedFirst);
        }
        match entry {
            LogEntry::Connected => {}
            LogEntry::Subscribed(channel, from) => {
                let window = Window {
                    channel: *channel,
                    from: *from,
                    received: Vec::new(),
                    survived: record.survived,
                };
                closed.extend(open.insert(*channel, window));
            }
            LogEntry::Unsubscribed(channel) => {
                closed.extend(open.remove(channel).map(|window| Window { survived: false, ..window }));
            }
            LogEntry::Message(channel, text) => match by_text.get(text) {
                None => violations.push(Violation::NeverSent(text.clone())),
                Some(message) if message.channel != *channel => {
                    violations.push(Violation::WrongChannel(text.clone()))
                }
                Some(_) if !received.insert(text) => violations.push(Violation::Twice(text.clone())),
                Some(_) => match open.get_mut(channel) {
                    Some(window) => window.received.push(text.clone()),
                    None => violations.push(Violation::Unframed(text.clone())),
                },
            },
        }
    }
    for window in closed.iter().chain(open.values()) {
        violations.extend(disorder(&by_text, window));
        violations.extend(missing(sent, &by_text, window));
    }
    violations
}

fn disorder(by_text: &HashMap<String, &SentMessage>, window: &Window) -> Vec<Violation> {
    let mut violations = Vec::new();
    // The message with the latest begin so far. A message that was acknowledged before that begin must not
    // come any more.
    let mut latest: Option<&SentMessage> = None;
    let mut numbers = HashMap::<usize, &SentMessage>::new();
    for text in &window.received {
        let message = by_text[text];
        if let Some(latest) =
            latest.filter(|latest| message.acknowledged.is_some_and(|done| done < latest.began))
        {
            violations.push(Violation::OutOfOrder(latest.text(), message.text()));
        } else if let Some(before) =
            numbers.get(&message.producer).filter(|before| before.number > message.number)
        {
            violations.push(Violation::OutOfOrder(before.text(), message.text()));
        }
        numbers.insert(message.producer, message);
        latest = latest.filter(|latest| latest.began > message.began).or(Some(message));
    }
    violations
}

fn missing(sent: &[SentMessage], by_text: &HashMap<String, &SentMessage>, window: &Window) -> Vec<Violation> {
    let received: HashSet<_> = window.received.iter().collect();
    let latest = window.received.iter().map(|text| by_text[text].began).max();
    // All messages acknowledged before this time must have arrived.
    let until = if window.survived { LogicalTime::MAX } else { latest.unwrap_or(0) };
    let due = sent.iter().filter(|message| message.channel == window.channel && message.began > window.from);
    let due = due.filter(|message| message.acknowledged.is_some_and(|done| done < until));
    due.map(SentMessage::text).filter(|text| !received.contains(text)).map(Violation::Missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two producers on channel 0 send three messages each: 0:0 1:0 0:1 1:1 0:2 1:2, from time 10 on, each
    /// within two time steps. One producer sends on channel 1 at the end.
    fn sent() -> Vec<SentMessage> {
        let sent = |at: u64, channel, producer, number| SentMessage {
            channel,
            producer,
            number,
            began: 10 + at * 10,
            acknowledged: Some(11 + at * 10),
        };
        let mut all: Vec<_> = (0..6).map(|at| sent(at as u64, 0, at % 2, at / 2)).collect();
        all.push(sent(6, 1, 7, 0));
        all
    }

    fn message(text: &str) -> LogEntry {
        LogEntry::Message(usize::from(text.starts_with('7')), text.to_owned())
    }

    fn record(survived: bool, messages: &[&str]) -> SessionRecord {
        let begin = [LogEntry::Connected, LogEntry::Subscribed(0, 5)];
        SessionRecord {
            log: begin.into_iter().chain(messages.iter().map(|text| message(text))).collect(),
            survived,
        }
    }

    const ALL: [&str; 6] = ["0:0", "1:0", "0:1", "1:1", "0:2", "1:2"];

    #[track_caller]
    fn check(record: &SessionRecord, expected: &[Violation]) {
        assert_eq!(violations(&sent(), record), expected);
    }

    #[test]
    fn good_sessions_have_no_fault() {
        check(&record(true, &ALL), &[]);
        for end in 0..=6 {
            check(&record(false, &ALL[..end]), &[]);
        }
        // The subscription begins in the middle.
        let log = [
            LogEntry::Connected,
            LogEntry::Subscribed(0, 35),
            message("1:1"),
            message("0:2"),
            message("1:2"),
        ];
        check(&SessionRecord { log: log.into(), survived: true }, &[]);
        // A message that was being sent at the time of the subscription may come or not.
        let log = [
            LogEntry::Connected,
            LogEntry::Subscribed(0, 41),
            message("1:1"),
            message("0:2"),
            message("1:2"),
        ];
        check(&SessionRecord { log: log.into(), survived: true }, &[]);
    }

    #[test]
    fn an_unacknowledged_message_may_arrive_or_not() {
        let mut all = sent();
        all[2].acknowledged = None;
        let without: Vec<_> = ALL.into_iter().filter(|text| *text != "0:1").collect();
        assert_eq!(violations(&all, &record(true, &without)), []);
        assert_eq!(violations(&all, &record(true, &ALL)), []);
    }

    #[test]
    fn concurrent_messages_may_arrive_in_any_order() {
        let mut all = sent();
        all[1].began = 10;
        assert_eq!(violations(&all, &record(true, &["1:0", "0:0", "0:1", "1:1", "0:2", "1:2"])), []);
    }

    #[test]
    fn missing() {
        let missing = |text: &str| Violation::Missing(text.to_owned());
        check(&record(false, &["0:0", "0:1"]), &[missing("1:0")]);
        check(&record(false, &["1:0"]), &[missing("0:0")]);
        // A gap at the end of a session that is still open.
        check(&record(true, &ALL[..5]), &[missing("1:2")]);
        check(&record(true, &[]), &ALL.map(missing));
        // A gap within a subscription that has ended, but not at its end.
        let mut short = record(true, &["0:0", "0:1"]);
        short.log.push(LogEntry::Unsubscribed(0));
        check(&short, &[missing("1:0")]);
    }

    #[test]
    fn repetition() {
        check(&record(false, &["0:0", "1:0", "0:0"]), &[Violation::Twice("0:0".into())]);
    }

    #[test]
    fn disorder() {
        let disorder = |first: &str, then: &str| Violation::OutOfOrder(first.into(), then.into());
        // Two messages of one producer in the wrong order, although they were sent concurrently.
        let mut all = sent();
        all[2].began = 1;
        all[0].acknowledged = Some(99);
        let found = violations(&all, &record(false, &["0:1", "0:0"]));
        assert_eq!(found, [disorder("0:1", "0:0")]);
        // Two messages of two producers, of which one was acknowledged before the other was begun.
        check(&record(false, &["1:0", "0:0"]), &[disorder("1:0", "0:0")]);
    }

    #[test]
    fn framing() {
        let unframed = |text: &str| Violation::Unframed(text.to_owned());
        let early = [LogEntry::Connected, message("0:0"), LogEntry::Subscribed(0, 15)];
        check(&SessionRecord { log: early.into(), survived: false }, &[unframed("0:0")]);
        let mut late = record(false, &["0:0"]);
        late.log.extend([LogEntry::Unsubscribed(0), message("1:0")]);
        check(&late, &[unframed("1:0")]);
        let mut other = record(false, &["0:0"]);
        other.log.push(message("7:0"));
        check(&other, &[unframed("7:0")]);
    }

    #[test]
    fn connected_comes_first_and_only_once() {
        check(
            &SessionRecord { log: vec![LogEntry::Subscribed(0, 99)], survived: true },
            &[Violation::NotConnectedFirst],
        );
        let mut twice = record(false, &[]);
        twice.log.push(LogEntry::Connected);
        check(&twice, &[Violation::NotConnectedFirst]);
    }

    #[test]
    fn inventions() {
        check(&record(false, &["9:9"]), &[Violation::NeverSent("9:9".into())]);
        let mut wrong = record(false, &[]);
        wrong.log.push(LogEntry::Message(0, "7:0".into()));
        check(&wrong, &[Violation::WrongChannel("7:0".into())]);
    }
}

//! Checks the delivery promise (`docs/spec/realtime.md#delivery`) against the records of producers and
//! sessions: no message twice or out of order, no gap while a session lives, and every message of a
//! subscription between its SYSTEM messages.

use std::collections::{HashMap, HashSet};

/// A logical time: all participants draw from one counter.
pub type Moment = u64;

/// A message in the record of its producer.
#[derive(Clone, Debug)]
pub struct Said {
    pub channel: usize,
    pub producer: usize,
    pub number: usize,
    /// The time before the call.
    pub begun: Moment,
    /// The time after a successful answer. Without one, the message may have been sent or not.
    pub acknowledged: Option<Moment>,
}

impl Said {
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
pub enum Seen {
    Connected,
    /// With the time of its receipt.
    Subscribed(usize, Moment),
    Unsubscribed(usize),
    Message(usize, String),
}

/// The record of a session.
#[derive(Clone, Debug)]
pub struct Life {
    pub seen: Vec<Seen>,
    /// Whether the session was still open after the last message.
    pub lived: bool,
}

/// A violation of the promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `connected` does not come first, or comes again.
    NotConnectedFirst,
    /// A message that no producer has sent.
    NeverSaid(String),
    /// A message on another channel than that of its producer.
    WrongChannel(String),
    Twice(String),
    /// The second message came after the first, although it was acknowledged before the first was begun, or
    /// its producer sent it earlier.
    OutOfOrder(String, String),
    /// A missing message, although a later one arrived or the session was still open at the end.
    Hole(String),
    /// A message before `subscribed` or after the end of the subscription.
    Unframed(String),
}

/// One subscription: from `subscribed` to its end or the end of the session.
struct Window {
    channel: usize,
    from: Moment,
    received: Vec<String>,
    /// Whether the subscription was open after the last message.
    lived: bool,
}

/// All violations.
pub fn faults(said: &[Said], life: &Life) -> Vec<Fault> {
    let by_text: HashMap<_, _> = said.iter().map(|one| (one.text(), one)).collect();
    let mut faults = Vec::new();
    let (mut open, mut closed) = (HashMap::<usize, Window>::new(), Vec::new());
    let mut heard = HashSet::new();
    for (at, seen) in life.seen.iter().enumerate() {
        if (at == 0) != matches!(seen, Seen::Connected) {
            faults.push(Fault::NotConnectedFirst);
        }
        match seen {
            Seen::Connected => {}
            Seen::Subscribed(channel, from) => {
                let window =
                    Window { channel: *channel, from: *from, received: Vec::new(), lived: life.lived };
                closed.extend(open.insert(*channel, window));
            }
            Seen::Unsubscribed(channel) => {
                closed.extend(open.remove(channel).map(|window| Window { lived: false, ..window }));
            }
            Seen::Message(channel, text) => match by_text.get(text) {
                None => faults.push(Fault::NeverSaid(text.clone())),
                Some(one) if one.channel != *channel => faults.push(Fault::WrongChannel(text.clone())),
                Some(_) if !heard.insert(text) => faults.push(Fault::Twice(text.clone())),
                Some(_) => match open.get_mut(channel) {
                    Some(window) => window.received.push(text.clone()),
                    None => faults.push(Fault::Unframed(text.clone())),
                },
            },
        }
    }
    for window in closed.iter().chain(open.values()) {
        faults.extend(disorder(&by_text, window));
        faults.extend(holes(said, &by_text, window));
    }
    faults
}

fn disorder(by_text: &HashMap<String, &Said>, window: &Window) -> Vec<Fault> {
    let mut faults = Vec::new();
    // The message with the latest begin so far. A message that was acknowledged before that begin must not
    // come any more.
    let mut latest: Option<&Said> = None;
    let mut numbers = HashMap::<usize, &Said>::new();
    for text in &window.received {
        let one = by_text[text];
        if let Some(latest) = latest.filter(|latest| one.acknowledged.is_some_and(|done| done < latest.begun))
        {
            faults.push(Fault::OutOfOrder(latest.text(), one.text()));
        } else if let Some(before) = numbers.get(&one.producer).filter(|before| before.number > one.number) {
            faults.push(Fault::OutOfOrder(before.text(), one.text()));
        }
        numbers.insert(one.producer, one);
        latest = latest.filter(|latest| latest.begun > one.begun).or(Some(one));
    }
    faults
}

fn holes(said: &[Said], by_text: &HashMap<String, &Said>, window: &Window) -> Vec<Fault> {
    let received: HashSet<_> = window.received.iter().collect();
    let latest = window.received.iter().map(|text| by_text[text].begun).max();
    // All messages acknowledged before this time must have arrived.
    let until = if window.lived { Moment::MAX } else { latest.unwrap_or(0) };
    let due = said.iter().filter(|one| one.channel == window.channel && one.begun > window.from);
    let due = due.filter(|one| one.acknowledged.is_some_and(|done| done < until));
    due.map(Said::text).filter(|text| !received.contains(text)).map(Fault::Hole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two producers on channel 0 send three messages each: 0:0 1:0 0:1 1:1 0:2 1:2, from time 10 on, each
    /// within two time steps. One producer sends on channel 1 at the end.
    fn said() -> Vec<Said> {
        let said = |at: u64, channel, producer, number| Said {
            channel,
            producer,
            number,
            begun: 10 + at * 10,
            acknowledged: Some(11 + at * 10),
        };
        let mut all: Vec<_> = (0..6).map(|at| said(at as u64, 0, at % 2, at / 2)).collect();
        all.push(said(6, 1, 7, 0));
        all
    }

    fn message(text: &str) -> Seen {
        Seen::Message(usize::from(text.starts_with('7')), text.to_owned())
    }

    fn life(lived: bool, messages: &[&str]) -> Life {
        let begin = [Seen::Connected, Seen::Subscribed(0, 5)];
        Life { seen: begin.into_iter().chain(messages.iter().map(|text| message(text))).collect(), lived }
    }

    const ALL: [&str; 6] = ["0:0", "1:0", "0:1", "1:1", "0:2", "1:2"];

    #[track_caller]
    fn check(life: &Life, expected: &[Fault]) {
        assert_eq!(faults(&said(), life), expected);
    }

    #[test]
    fn good_lives_have_no_fault() {
        check(&life(true, &ALL), &[]);
        for end in 0..=6 {
            check(&life(false, &ALL[..end]), &[]);
        }
        // The subscription begins in the middle.
        let seen = [Seen::Connected, Seen::Subscribed(0, 35), message("1:1"), message("0:2"), message("1:2")];
        check(&Life { seen: seen.into(), lived: true }, &[]);
        // A message that was being sent at the time of the subscription may come or not.
        let seen = [Seen::Connected, Seen::Subscribed(0, 41), message("1:1"), message("0:2"), message("1:2")];
        check(&Life { seen: seen.into(), lived: true }, &[]);
    }

    #[test]
    fn what_was_not_acknowledged_may_come_or_not() {
        let mut all = said();
        all[2].acknowledged = None;
        let without: Vec<_> = ALL.into_iter().filter(|text| *text != "0:1").collect();
        assert_eq!(faults(&all, &life(true, &without)), []);
        assert_eq!(faults(&all, &life(true, &ALL)), []);
    }

    #[test]
    fn concurrent_messages_may_arrive_in_any_order() {
        let mut all = said();
        all[1].begun = 10;
        assert_eq!(faults(&all, &life(true, &["1:0", "0:0", "0:1", "1:1", "0:2", "1:2"])), []);
    }

    #[test]
    fn holes() {
        let hole = |text: &str| Fault::Hole(text.to_owned());
        check(&life(false, &["0:0", "0:1"]), &[hole("1:0")]);
        check(&life(false, &["1:0"]), &[hole("0:0")]);
        // A gap at the end of a session that is still open.
        check(&life(true, &ALL[..5]), &[hole("1:2")]);
        check(&life(true, &[]), &ALL.map(hole));
        // A gap within a subscription that has ended, but not at its end.
        let mut short = life(true, &["0:0", "0:1"]);
        short.seen.push(Seen::Unsubscribed(0));
        check(&short, &[hole("1:0")]);
    }

    #[test]
    fn repetition() {
        check(&life(false, &["0:0", "1:0", "0:0"]), &[Fault::Twice("0:0".into())]);
    }

    #[test]
    fn disorder() {
        let disorder = |first: &str, then: &str| Fault::OutOfOrder(first.into(), then.into());
        // Two messages of one producer in the wrong order, although they were sent concurrently.
        let mut all = said();
        all[2].begun = 1;
        all[0].acknowledged = Some(99);
        let found = faults(&all, &life(false, &["0:1", "0:0"]));
        assert_eq!(found, [disorder("0:1", "0:0")]);
        // Two messages of two producers, of which one was acknowledged before the other was begun.
        check(&life(false, &["1:0", "0:0"]), &[disorder("1:0", "0:0")]);
    }

    #[test]
    fn framing() {
        let unframed = |text: &str| Fault::Unframed(text.to_owned());
        let early = [Seen::Connected, message("0:0"), Seen::Subscribed(0, 15)];
        check(&Life { seen: early.into(), lived: false }, &[unframed("0:0")]);
        let mut late = life(false, &["0:0"]);
        late.seen.extend([Seen::Unsubscribed(0), message("1:0")]);
        check(&late, &[unframed("1:0")]);
        let mut other = life(false, &["0:0"]);
        other.seen.push(message("7:0"));
        check(&other, &[unframed("7:0")]);
    }

    #[test]
    fn connected_comes_first_and_once() {
        check(&Life { seen: vec![Seen::Subscribed(0, 99)], lived: true }, &[Fault::NotConnectedFirst]);
        let mut twice = life(false, &[]);
        twice.seen.push(Seen::Connected);
        check(&twice, &[Fault::NotConnectedFirst]);
    }

    #[test]
    fn inventions() {
        check(&life(false, &["9:9"]), &[Fault::NeverSaid("9:9".into())]);
        let mut wrong = life(false, &[]);
        wrong.seen.push(Seen::Message(0, "7:0".into()));
        check(&wrong, &[Fault::WrongChannel("7:0".into())]);
    }
}

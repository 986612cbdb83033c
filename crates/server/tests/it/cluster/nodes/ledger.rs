//! What the delivery promise (`docs/spec/realtime.md#delivery`) says of what producers wrote down and of what
//! each session saw: nothing twice, nothing out of order, no hole in a session's life, and everything of a
//! subscription between its SYSTEM messages.

use std::collections::{HashMap, HashSet};

/// A moment: all participants draw from one counter.
pub type Moment = u64;

/// A message, as its producer knows it.
#[derive(Clone, Debug)]
pub struct Said {
    pub channel: usize,
    pub producer: usize,
    pub number: usize,
    /// Before the call.
    pub begun: Moment,
    /// After its answer, when that was good. Without one, the message may have been said or not.
    pub acknowledged: Option<Moment>,
}

impl Said {
    /// What is said: no two messages are the same.
    pub fn text(&self) -> String {
        text(self.producer, self.number)
    }
}

pub fn text(producer: usize, number: usize) -> String {
    format!("{producer}:{number}")
}

/// What came on a session, in order.
#[derive(Clone, Debug)]
pub enum Seen {
    Connected,
    /// And when it was read.
    Subscribed(usize, Moment),
    Unsubscribed(usize),
    Message(usize, String),
}

/// A session's life.
#[derive(Clone, Debug)]
pub struct Life {
    pub seen: Vec<Seen>,
    /// It was not closed before everything was said.
    pub lived: bool,
}

/// What is wrong with a life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `connected` does not come first, or comes again.
    NotConnectedFirst,
    /// Nobody said that.
    NeverSaid(String),
    /// On another channel than where it was said.
    WrongChannel(String),
    Twice(String),
    /// The second came after the first, though it was acknowledged before the first was begun, or its
    /// producer said it before.
    OutOfOrder(String, String),
    /// It is missing, though something later came, or the session lived on.
    Hole(String),
    /// It came before `subscribed` or after the end of the subscription.
    Unframed(String),
}

/// One subscription: from `subscribed` to its end or the session's.
struct Window {
    channel: usize,
    from: Moment,
    received: Vec<String>,
    /// It was there when everything was said.
    lived: bool,
}

/// Everything that is wrong.
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
    // What begins last so far: whatever was done before that began must not come any more.
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
    // Up to when everything that was acknowledged must have come.
    let until = if window.lived { Moment::MAX } else { latest.unwrap_or(0) };
    let due = said.iter().filter(|one| one.channel == window.channel && one.begun > window.from);
    let due = due.filter(|one| one.acknowledged.is_some_and(|done| done < until));
    due.map(Said::text).filter(|text| !received.contains(text)).map(Fault::Hole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two producers on channel 0, who say three things each, one after another: 0:0 1:0 0:1 1:1 0:2 1:2,
    /// from moment 10 on, each in two moments; and one on channel 1, at the end.
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
        // Subscribed in the middle.
        let seen = [Seen::Connected, Seen::Subscribed(0, 35), message("1:1"), message("0:2"), message("1:2")];
        check(&Life { seen: seen.into(), lived: true }, &[]);
        // What was under way when it was subscribed to may come or not.
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
    fn messages_said_at_the_same_time_may_come_in_any_order() {
        let mut all = said();
        all[1].begun = 10;
        assert_eq!(faults(&all, &life(true, &["1:0", "0:0", "0:1", "1:1", "0:2", "1:2"])), []);
    }

    #[test]
    fn holes() {
        let hole = |text: &str| Fault::Hole(text.to_owned());
        check(&life(false, &["0:0", "0:1"]), &[hole("1:0")]);
        check(&life(false, &["1:0"]), &[hole("0:0")]);
        // At the end, of a session that lived on.
        check(&life(true, &ALL[..5]), &[hole("1:2")]);
        check(&life(true, &[]), &ALL.map(hole));
        // Within a subscription that ended, but not at its end.
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
        // Of one producer, though both were under way at once.
        let mut all = said();
        all[2].begun = 1;
        all[0].acknowledged = Some(99);
        let found = faults(&all, &life(false, &["0:1", "0:0"]));
        assert_eq!(found, [disorder("0:1", "0:0")]);
        // Of two, one of which was acknowledged before the other began.
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

//! The times of chat messages. Chat, sender and time identify one message.
//!
//! A message's id is made of the three, so the database accepts each time once. This module only keeps
//! the times that this node assigned recently. Without it, each of many concurrent messages would try one
//! time after another.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::chat::message_time;
use domain::{MessageSeries, Timestamp};

/// Maximum number of pairs of a chat and a sender in memory. They take 150 KB.
const SERIES_MAX: usize = 4_096;

/// The last time that was assigned to each sender in a chat. Past times may be dropped.
#[derive(Default)]
pub(crate) struct MessageTimes(Mutex<HashMap<MessageSeries, Timestamp>>);

impl MessageTimes {
    /// Assigns a time to the next message of a sender in a chat.
    pub(crate) fn next(&self, series: MessageSeries, now: Timestamp) -> Timestamp {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if given.len() >= SERIES_MAX && !given.contains_key(&series) {
            given.retain(|_, last| *last >= now);
            if given.len() >= SERIES_MAX {
                given.clear();
            }
        }
        let last = given.entry(series).or_insert(now.plus_ms(-1));
        *last = message_time(now, Some(*last));
        *last
    }

    /// Records the last time in the database.
    pub(crate) fn known(&self, series: MessageSeries, last: Timestamp) {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = given.entry(series).or_insert(last);
        *known = last.max(*known);
    }
}

#[cfg(test)]
mod tests {
    use domain::ChannelId;

    use super::*;

    fn series(number: usize) -> MessageSeries {
        MessageSeries::of(&ChannelId::stored(number.to_string()), &ChannelId::stored("a".into()))
    }

    #[test]
    fn times_of_one_sender_in_a_chat_grow_independently_of_other_senders() {
        let (times, at) = (MessageTimes::default(), Timestamp::from_millis);
        let next = |number, now| times.next(series(number), at(now)).as_millis();
        assert_eq!(
            [next(0, 5), next(0, 5), next(0, 6), next(1, 5), next(0, 9), next(0, 3)],
            [5, 6, 7, 5, 9, 10]
        );
        times.known(series(0), at(20));
        times.known(series(0), at(15));
        assert_eq!([next(0, 9), next(0, 22)], [21, 22]);
    }

    #[test]
    fn the_number_of_kept_times_is_bounded() {
        let (times, at) = (MessageTimes::default(), Timestamp::from_millis);
        for number in 0..3 * SERIES_MAX {
            assert_eq!(times.next(series(number), at(7)), at(7));
            assert!(times.0.lock().unwrap().len() <= SERIES_MAX);
        }
        times.next(series(1), at(1_000));
        times.next(series(0), at(8));
        times.next(series(0), at(8));
        for number in 0..2 * SERIES_MAX {
            times.next(series(number + 10), at(5));
        }
        let held = times.0.lock().unwrap().len();
        assert!(held <= SERIES_MAX, "{held}");
    }
}

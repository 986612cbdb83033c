//! Subscriptions that ended in the last seconds. The loss of an event is found some seconds after the event.
//! A session that was subscribed to the event's channel has missed the event, even if the session has
//! unsubscribed since.

use std::collections::{HashSet, VecDeque};

use domain::{ChannelId, SessionKey};
use service::lost_events::Lost;
use socketio::Millis;

use crate::config::{UNSUBSCRIBED_MAX, UNSUBSCRIBED_REMEMBERED_MS};

/// The subscriptions that ended in the last seconds, oldest first.
#[derive(Default)]
pub(super) struct RecentlyUnsubscribed(VecDeque<Unsubscribed>);

struct Unsubscribed {
    at: Millis,
    session: SessionKey,
    channel: ChannelId,
}

impl RecentlyUnsubscribed {
    /// Adds a subscription that ended.
    pub(super) fn add(&mut self, session: &SessionKey, channel: &ChannelId, now: Millis) {
        if self.0.len() >= UNSUBSCRIBED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Unsubscribed { at: now, session: session.clone(), channel: channel.clone() });
    }

    /// Removes subscriptions that ended too long ago.
    pub(super) fn forget(&mut self, now: Millis) {
        while self.0.front().is_some_and(|left| left.at + UNSUBSCRIBED_REMEMBERED_MS < now) {
            self.0.pop_front();
        }
        if self.0.is_empty() {
            self.0.shrink_to_fit();
        }
    }

    /// The sessions that may have missed the lost events.
    pub(super) fn missed(&self, lost: &Lost) -> HashSet<&SessionKey> {
        let channels = match lost {
            _ if self.0.is_empty() => return HashSet::new(),
            Lost::Everything => None,
            Lost::Channels(channels) => Some(channels.iter().collect::<HashSet<_>>()),
        };
        let is_lost = |left: &&Unsubscribed| channels.as_ref().is_none_or(|all| all.contains(&left.channel));
        self.0.iter().filter(is_lost).map(|left| &left.session).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_unsubscribed_lately_missed_the_lost_event() {
        let (session, channel) =
            (|name: &str| SessionKey::stored(name.into()), |name: &str| ChannelId::stored(name.into()));
        let mut left = RecentlyUnsubscribed::default();
        left.add(&session("one"), &channel("a"), 0);
        left.add(&session("two"), &channel("b"), 1);
        let check = |left: &RecentlyUnsubscribed, lost: &Lost, expected: &[&str]| {
            let mut names: Vec<_> = left.missed(lost).into_iter().map(SessionKey::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, expected);
        };
        check(&left, &Lost::Everything, &["one", "two"]);
        check(&left, &Lost::Channels(vec![channel("b"), channel("c")]), &["two"]);
        left.forget(UNSUBSCRIBED_REMEMBERED_MS);
        check(&left, &Lost::Everything, &["one", "two"]);
        left.forget(UNSUBSCRIBED_REMEMBERED_MS + 1);
        check(&left, &Lost::Everything, &["two"]);
        for _ in 0..UNSUBSCRIBED_MAX {
            left.add(&session("many"), &channel("d"), 2);
        }
        assert_eq!(left.0.len(), UNSUBSCRIBED_MAX);
        check(&left, &Lost::Everything, &["many"]);
    }
}

//! Distributes the sessions over applications and channels, within the limit of ten sessions for an
//! application.

/// Maximum number of connected sessions of one application (`docs/spec/realtime.md#caps`).
pub(crate) const SESSIONS_PER_APPLICATION: u32 = 10;
/// Sessions of one source address. The system has some 28,000 ports for one destination.
pub(crate) const SESSIONS_PER_SOURCE: u32 = 20_000;

/// A kind of event that can be subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Chat,
    Donation,
    Subscription,
}

impl EventKind {
    /// The order in which sessions subscribe to them.
    pub(crate) const ALL: [Self; 3] = [Self::Chat, Self::Donation, Self::Subscription];

    /// The name on the socket and in SYSTEM messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "CHAT",
            Self::Donation => "DONATION",
            Self::Subscription => "SUBSCRIPTION",
        }
    }

    /// The name in the path of the subscribe call.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Donation => "donation",
            Self::Subscription => "subscription",
        }
    }

    /// The kind of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The bit of this event type on one of the channels that a session subscribes to.
    pub(crate) fn bit(self, nth_channel: u32) -> u32 {
        1 << (nth_channel * Self::ALL.len() as u32 + self as u32)
    }
}

/// The plan of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionPlan {
    /// Its number.
    pub(crate) number: u32,
    /// The application that opens it.
    pub(crate) application: u32,
    /// The channel that it subscribes to.
    pub(crate) channel: u32,
}

/// Spreads the sessions over the applications, and over the channels as evenly as possible while an
/// application has one channel. Each pair of application and channel costs a sign-in.
pub(crate) fn spread(sessions: u32, channels: u32) -> Vec<SessionPlan> {
    let applications = applications(sessions);
    let plan = |number| {
        let application = number / SESSIONS_PER_APPLICATION;
        let channel = if channels <= applications { application % channels } else { number % channels };
        SessionPlan { number, application, channel }
    };
    (0..sessions).map(plan).collect()
}

/// The number of applications that the sessions need.
pub(crate) fn applications(sessions: u32) -> u32 {
    sessions.div_ceil(SESSIONS_PER_APPLICATION)
}

impl SessionPlan {
    /// The channels that it subscribes to, its own first: `each` of `channels`.
    pub(crate) fn subscribes_to(self, each: u32, channels: u32) -> impl Iterator<Item = u32> {
        (0..each).map(move |nth| (self.channel + nth) % channels.max(1))
    }
}

/// Each pair of application and channel that needs a token, once.
pub(crate) fn pairs(plans: &[SessionPlan], each: u32, channels: u32) -> Vec<(u32, u32)> {
    let of = |plan: &SessionPlan| {
        let application = plan.application;
        plan.subscribes_to(each, channels).map(move |channel| (application, channel))
    };
    let mut pairs: Vec<_> = plans.iter().flat_map(of).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_application_gets_more_sessions_than_it_may_have_and_channels_get_their_share() {
        for (sessions, channels, pairs_expected) in [
            (1, 1, 1),
            (10, 1, 1),
            (1_000, 1, 100),
            (10_000, 1_000, 1_000),
            (25, 7, 19),
            (100, 100, 100),
            (95, 4, 10),
        ] {
            let plans = spread(sessions, channels);
            let count =
                |of: fn(&SessionPlan) -> u32, number| plans.iter().filter(|plan| of(plan) == number).count();
            for application in 0..applications(sessions) {
                assert!((1..=10).contains(&count(|plan| plan.application, application)));
            }
            let shares: Vec<_> = (0..channels).map(|channel| count(|plan| plan.channel, channel)).collect();
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            assert!(*least > 0 && most - least <= 10, "{sessions} over {channels}: {shares:?}");
            assert_eq!(pairs(&plans, 1, channels).len(), pairs_expected, "{sessions} over {channels}");
        }
    }

    #[test]
    fn a_session_may_subscribe_to_the_channels_after_its_own() {
        let plans = spread(30, 3);
        assert_eq!(plans[19].subscribes_to(3, 3).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(pairs(&plans, 2, 3), [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 2)]);
    }

    #[test]
    fn event_type_names_parse_back() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(EventKind::from_name("SYSTEM"), None);
        let bits = |nth| EventKind::ALL.iter().fold(0, |bits, kind| bits | kind.bit(nth));
        assert_eq!((bits(0), bits(9)), (0b111, 0b111 << 27));
    }
}

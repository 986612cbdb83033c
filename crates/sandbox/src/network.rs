//! Named network profiles: latency, jitter, cuts and outages, as a phone in a subway has them. What a network
//! does at a time depends on its profile and its seed only.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::random::draw_between;

/// A network profile.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkProfile {
    /// The name.
    pub name: &'static str,
    /// What it stands for.
    pub about: &'static str,
    /// Added to each request and to each packet to the client, in milliseconds.
    latency_ms: u64,
    /// Added to the latency at random, at most, in milliseconds.
    jitter_ms: u64,
    /// The network breaks again and again.
    #[serde(skip_serializing_if = "Option::is_none")]
    breaks: Option<Breaks>,
    /// There is no network.
    is_offline: bool,
    /// Nothing passes, and no connection is lost.
    is_silent: bool,
}

/// How a network breaks. Spans from a shortest to a longest, in milliseconds.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Breaks {
    /// How long it works before.
    up_ms: [u64; 2],
    /// How long nothing passes its connections before they are lost.
    silent_ms: [u64; 2],
    /// How long there is no network after that.
    down_ms: [u64; 2],
}

const PROFILES: [NetworkProfile; 5] = [
    NetworkProfile {
        name: "slow",
        about: "a crowded mobile network: everything arrives, much later",
        latency_ms: 800,
        jitter_ms: 400,
        breaks: None,
        is_offline: false,
        is_silent: false,
    },
    NetworkProfile {
        name: "subway",
        about: "latency that varies, and tunnels: connections fall silent and are lost, then nothing works for seconds",
        latency_ms: 150,
        jitter_ms: 350,
        breaks: Some(Breaks { up_ms: [8_000, 20_000], silent_ms: [500, 2_000], down_ms: [2_000, 5_000] }),
        is_offline: false,
        is_silent: false,
    },
    NetworkProfile {
        name: "handover",
        about: "a change of the cell every 15 seconds: connections fall silent for 2 seconds and are lost",
        latency_ms: 40,
        jitter_ms: 40,
        breaks: Some(Breaks { up_ms: [15_000, 15_000], silent_ms: [2_000, 2_000], down_ms: [0, 0] }),
        is_offline: false,
        is_silent: false,
    },
    NetworkProfile {
        name: "tunnel",
        about: "one long tunnel: sessions fall silent and stay so, and calls wait until the rule is removed",
        latency_ms: 0,
        jitter_ms: 0,
        breaks: None,
        is_offline: false,
        is_silent: true,
    },
    NetworkProfile {
        name: "offline",
        about: "no network: sessions are lost, and no request is answered",
        latency_ms: 0,
        jitter_ms: 0,
        breaks: None,
        is_offline: true,
        is_silent: false,
    },
];

/// What a network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkState {
    /// It works.
    Up,
    /// Nothing passes its connections.
    Silent,
    /// There is none: connections are lost.
    Down,
}

impl NetworkProfile {
    /// Every profile.
    pub const fn all() -> &'static [Self] {
        &PROFILES
    }

    /// The profile of this name.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|profile| profile.name == name)
    }

    /// What the network does at a time after its beginning, and when that ends; `None` if it does not end.
    pub fn state(&self, seed: u64, at: Duration) -> (NetworkState, Option<Duration>) {
        let Some(breaks) = &self.breaks else {
            return match (self.is_offline, self.is_silent) {
                (true, _) => (NetworkState::Down, None),
                (false, true) => (NetworkState::Silent, None),
                (false, false) => (NetworkState::Up, None),
            };
        };
        let mut random = seed;
        let mut end = Duration::ZERO;
        loop {
            for (state, span) in [
                (NetworkState::Up, breaks.up_ms),
                (NetworkState::Silent, breaks.silent_ms),
                (NetworkState::Down, breaks.down_ms),
            ] {
                end += Duration::from_millis(draw_between(&mut random, span[0], span[1]));
                if at < end {
                    return (state, Some(end));
                }
            }
        }
    }

    /// How long a request or a packet takes longer.
    pub fn latency(&self, random: &mut u64) -> Duration {
        Duration::from_millis(self.latency_ms + draw_between(random, 0, self.jitter_ms))
    }

    /// What the network does, for the record of a fault.
    pub fn fault(&self, what: &str) -> Value {
        json!({ "profile": self.name, what: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(name: &str, seed: u64) -> Vec<(NetworkState, Duration)> {
        let profile = NetworkProfile::from_name(name).expect("a profile");
        let (mut at, mut states) = (Duration::ZERO, Vec::new());
        while let (state, Some(end)) = profile.state(seed, at)
            && states.len() < 30
        {
            states.push((state, end - at));
            at = end;
        }
        states
    }

    #[test]
    fn the_same_seed_breaks_a_network_at_the_same_times() {
        let first = states("subway", 7);
        assert_eq!(first, states("subway", 7));
        assert_ne!(first, states("subway", 8));
        for (state, span) in first {
            let ms = span.as_millis();
            match state {
                NetworkState::Up => assert!((8_000..=20_000).contains(&ms), "{ms}"),
                NetworkState::Silent => assert!((500..=2_000).contains(&ms), "{ms}"),
                NetworkState::Down => assert!((2_000..=5_000).contains(&ms), "{ms}"),
            }
        }
    }

    #[test]
    fn a_handover_comes_every_fifteen_seconds_and_has_no_outage() {
        let expected = [(NetworkState::Up, 15), (NetworkState::Silent, 2), (NetworkState::Up, 15)];
        let first: Vec<_> =
            states("handover", 1).into_iter().take(3).map(|(s, span)| (s, span.as_secs())).collect();
        assert_eq!(first, expected);
    }

    #[test]
    fn a_network_without_breaks_stays_as_it_is() {
        let state = |name: &str| NetworkProfile::from_name(name).expect("a profile").state(1, Duration::MAX);
        assert_eq!(state("slow"), (NetworkState::Up, None));
        assert_eq!(state("offline"), (NetworkState::Down, None));
        assert_eq!(state("tunnel"), (NetworkState::Silent, None));
        assert_eq!(NetworkProfile::from_name("train"), None);
    }

    #[test]
    fn latency_stays_within_its_jitter() {
        let (slow, mut random) = (NetworkProfile::from_name("slow").expect("a profile"), 1_u64);
        let all: Vec<u128> = (0..200).map(|_| slow.latency(&mut random).as_millis()).collect();
        assert!(all.iter().all(|ms| (800..=1_200).contains(ms)) && all.iter().any(|ms| *ms != all[0]));
    }
}

//! Events on their way to many sessions: encoded once, gathered while their channel is busy.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use domain::Profile;
use domain::event::Event;
use domain::session::EventType;
use socketio::{Frame, packet};

use crate::config::{REST_EVENTS_MAX, REST_FACTOR, REST_MAX, REST_MIN, RUN_BYTES_MAX, RUN_EVENTS_MAX};
use crate::stats::{Counters, add};

/// An event, encoded at most once for each profile, whatever the number of shards.
pub(crate) struct Encoded {
    pub(crate) event: Arc<Event>,
    documented: OnceLock<Frame>,
    observed: OnceLock<Frame>,
}

impl Encoded {
    pub(crate) fn new(event: Arc<Event>) -> Self {
        Self { event, documented: OnceLock::new(), observed: OnceLock::new() }
    }

    fn frame(&self, profile: Profile, counters: &Counters) -> &Frame {
        let cell = match profile {
            Profile::Documented => &self.documented,
            Profile::Observed => &self.observed,
        };
        cell.get_or_init(|| {
            add(&counters.events_encoded, 1);
            packet::event(self.event.event_type().name(), &self.event.payload(profile))
        })
    }
}

/// Events of one kind and channel that go to the same sessions in one write each.
pub(crate) struct Run {
    pub(crate) event_type: EventType,
    events: Vec<Arc<Encoded>>,
}

/// What a run writes to sessions of one profile: whole frames, and how many.
pub(crate) type Chunks = Vec<(Bytes, usize)>;

impl Run {
    pub(crate) fn new(event: Arc<Encoded>) -> Self {
        Self { event_type: event.event.event_type(), events: vec![event] }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.events.len() >= RUN_EVENTS_MAX
    }

    /// `true` when just enough have gathered to end a rest.
    pub(crate) fn push(&mut self, event: Arc<Encoded>) -> bool {
        self.events.push(event);
        self.events.len() == REST_EVENTS_MAX
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The bytes for a profile: a single event's own, or several copied together once for all sessions.
    pub(crate) fn chunks(&self, profile: Profile, counters: &Counters) -> Chunks {
        if let [event] = &self.events[..] {
            return vec![(event.frame(profile, counters).websocket().clone(), 1)];
        }
        let (mut chunks, mut joined, mut count) = (Chunks::new(), Vec::new(), 0);
        for event in &self.events {
            let frame = event.frame(profile, counters).websocket();
            if count > 0 && joined.len() + frame.len() > RUN_BYTES_MAX {
                chunks.push((std::mem::take(&mut joined).into(), std::mem::take(&mut count)));
            }
            joined.extend_from_slice(frame);
            count += 1;
        }
        chunks.push((joined.into(), count));
        chunks
    }
}

/// What a channel gathers. It writes at once after a rest; the rest is the longer, the more its last write cost, so a
/// quiet channel is never slowed down and a hot one writes several events at a time. When many come, they end the rest:
/// what a channel can do a second is not for the rest to say.
#[derive(Default)]
pub(crate) struct Gathering {
    /// Keeps the channel's events coming, for as long as it has a subscriber here.
    pub(crate) interest: bus::Interest,
    pub(crate) run: Option<Run>,
    pub(crate) rests_until: Duration,
}

/// How long a channel rests after a write that took so long.
pub(crate) fn rest(write_took: Duration) -> Duration {
    let rest = (write_took * REST_FACTOR).min(REST_MAX);
    if rest < REST_MIN { Duration::ZERO } else { rest }
}

#[cfg(test)]
mod tests {
    use domain::channel::UserRoleCode;
    use domain::event::{ChatHappening, Happening};
    use domain::{ChannelId, Timestamp};

    use super::*;

    fn event(content: String) -> Arc<Encoded> {
        let channel = ChannelId::stored("c".into());
        let chat = ChatHappening {
            sender_channel_id: channel.clone(),
            nickname: "n".into(),
            badges: Vec::new(),
            verified_mark: false,
            user_role_code: UserRoleCode::Streamer,
            chat_channel_id: "chat-c".into(),
            content,
            emojis: Default::default(),
            message_time: Timestamp::from_millis(0),
        };
        let happening = Happening::Chat(chat);
        let event = Event { channel_id: channel, sent_at: Timestamp::from_millis(0), happening };
        Arc::new(Encoded::new(Arc::new(event)))
    }

    #[test]
    fn a_run_is_encoded_once_for_each_profile_and_keeps_its_order() {
        let counters = Counters::default();
        let events: Vec<_> = (0..3).map(|at| event(at.to_string())).collect();
        let mut run = Run::new(events[0].clone());
        events[1..].iter().for_each(|event| _ = run.push(event.clone()));
        let chunks = run.chunks(Profile::Observed, &counters);
        assert_eq!(run.chunks(Profile::Observed, &counters), chunks);
        assert_eq!(counters.stats().events_encoded, 3);
        let frames: Vec<u8> =
            events.iter().flat_map(|e| e.frame(Profile::Observed, &counters).websocket().clone()).collect();
        assert_eq!(chunks, [(Bytes::from(frames), 3)]);
        run.chunks(Profile::Documented, &counters);
        assert_eq!(counters.stats().events_encoded, 6);
    }

    #[test]
    fn a_run_of_large_events_is_cut_into_several_writes() {
        let counters = Counters::default();
        let mut run = Run::new(event("x".repeat(40_000)));
        run.push(event("y".repeat(40_000)));
        run.push(event("z".repeat(100_000)));
        let counts: Vec<_> =
            run.chunks(Profile::Documented, &counters).iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 1, 1]);
    }

    #[test]
    fn a_rest_is_ended_once_by_what_has_gathered() {
        let mut run = Run::new(event("x".into()));
        let lengths: Vec<_> =
            (2..=RUN_EVENTS_MAX).filter_map(|_| run.push(event("x".into())).then_some(run.len())).collect();
        assert_eq!((lengths, run.is_full()), (vec![REST_EVENTS_MAX], true));
    }

    #[test]
    fn only_costly_writes_are_followed_by_a_rest() {
        for (took_us, rest_us) in [(0, 0), (100, 0), (500, 3_000), (1_000, 6_000), (50_000, 8_000)] {
            let took = Duration::from_micros(took_us);
            assert_eq!(rest(took), Duration::from_micros(rest_us), "{took_us}");
        }
    }
}

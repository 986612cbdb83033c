//! Events for many sessions: encoded once, and batched while their channel is busy (pacing).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use domain::Profile;
use domain::event::{Event, EventType};
use socketio::{Frame, packet};

use crate::config::{
    BATCH_BYTES_MAX, BATCH_EVENTS_MAX, COOLDOWN_EVENTS_MAX, COOLDOWN_FACTOR, COOLDOWN_MAX, COOLDOWN_MIN,
};
use crate::metrics::{Counters, add};

/// An event. Each profile's encoding is made at most once, for all shards.
pub(crate) struct Encoded {
    pub(crate) event: Arc<Event>,
    documented: OnceLock<Frame>,
    observed: OnceLock<Frame>,
}

impl Encoded {
    pub(crate) fn new(event: Arc<Event>) -> Self {
        Self { event, documented: OnceLock::new(), observed: OnceLock::new() }
    }

    /// The event for sessions of a profile.
    pub(super) fn frame(&self, profile: Profile, counters: &Counters) -> &Frame {
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

/// Events of one kind and channel. Each session receives them in one write.
pub(super) struct Batch {
    pub(crate) event_type: EventType,
    events: Vec<Arc<Encoded>>,
}

/// The writes of a batch to sessions of one profile: whole frames, and their number.
pub(super) type Writes = Vec<(Bytes, usize)>;

impl Batch {
    pub(crate) fn new(event: Arc<Encoded>) -> Self {
        Self { event_type: event.event.event_type(), events: vec![event] }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.events.len() >= BATCH_EVENTS_MAX
    }

    /// `true` when the batch has just become large enough to end the cooldown.
    pub(crate) fn push(&mut self, event: Arc<Encoded>) -> bool {
        self.events.push(event);
        self.events.len() == COOLDOWN_EVENTS_MAX
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The bytes for a profile: those of a single event, or those of several events copied together once for
    /// all sessions.
    pub(crate) fn writes(&self, profile: Profile, counters: &Counters) -> Writes {
        if let [event] = &self.events[..] {
            return vec![(event.frame(profile, counters).websocket().clone(), 1)];
        }
        let (mut writes, mut joined, mut count) = (Writes::new(), Vec::new(), 0);
        for event in &self.events {
            let frame = event.frame(profile, counters).websocket();
            if count > 0 && joined.len() + frame.len() > BATCH_BYTES_MAX {
                writes.push((std::mem::take(&mut joined).into(), std::mem::take(&mut count)));
            }
            joined.extend_from_slice(frame);
            count += 1;
        }
        writes.push((joined.into(), count));
        writes
    }
}

/// The pacing of a channel. After a write the channel cools down, for longer the more the write cost. Outside
/// the cooldown the channel writes at once. So a quiet channel is never delayed, and a hot channel writes
/// several events together. Enough events end the cooldown early, because it must not limit a channel's
/// events per second.
#[derive(Default)]
pub(super) struct Pacing {
    /// The interest in the channel, held while a session of this shard is subscribed.
    pub(crate) interest: bus::Interest,
    pub(crate) batch: Option<Batch>,
    pub(crate) cooldown_until: Duration,
}

/// The cooldown of a channel after a write of this duration.
pub(super) fn cooldown(write_took: Duration) -> Duration {
    let cooldown = (write_took * COOLDOWN_FACTOR).min(COOLDOWN_MAX);
    if cooldown < COOLDOWN_MIN { Duration::ZERO } else { cooldown }
}

#[cfg(test)]
mod tests {
    use domain::channel::UserRoleCode;
    use domain::event::{ChatEvent, EventKind};
    use domain::{ChannelId, Timestamp};

    use super::*;

    fn event(content: String) -> Arc<Encoded> {
        let channel = ChannelId::stored("c".into());
        let chat = ChatEvent {
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
        let kind = EventKind::Chat(chat);
        let event = Event { channel_id: channel, sent_at: Timestamp::from_millis(0), kind };
        Arc::new(Encoded::new(Arc::new(event)))
    }

    #[test]
    fn a_batch_is_encoded_once_for_each_profile_and_keeps_its_order() {
        let counters = Counters::default();
        let events: Vec<_> = (0..3).map(|at| event(at.to_string())).collect();
        let mut batch = Batch::new(events[0].clone());
        events[1..].iter().for_each(|event| _ = batch.push(event.clone()));
        let writes = batch.writes(Profile::Observed, &counters);
        assert_eq!(batch.writes(Profile::Observed, &counters), writes);
        assert_eq!(counters.stats().events_encoded, 3);
        let frames: Vec<u8> =
            events.iter().flat_map(|e| e.frame(Profile::Observed, &counters).websocket().clone()).collect();
        assert_eq!(writes, [(Bytes::from(frames), 3)]);
        batch.writes(Profile::Documented, &counters);
        assert_eq!(counters.stats().events_encoded, 6);
    }

    #[test]
    fn a_batch_of_large_events_is_cut_into_several_writes() {
        let counters = Counters::default();
        let mut batch = Batch::new(event("x".repeat(40_000)));
        batch.push(event("y".repeat(40_000)));
        batch.push(event("z".repeat(100_000)));
        let counts: Vec<_> =
            batch.writes(Profile::Documented, &counters).iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 1, 1]);
    }

    #[test]
    fn a_full_batch_ends_the_cooldown_once() {
        let mut batch = Batch::new(event("x".into()));
        let lengths: Vec<_> = (2..=BATCH_EVENTS_MAX)
            .filter_map(|_| batch.push(event("x".into())).then_some(batch.len()))
            .collect();
        assert_eq!((lengths, batch.is_full()), (vec![COOLDOWN_EVENTS_MAX], true));
    }

    #[test]
    fn only_costly_writes_are_followed_by_a_cooldown() {
        for (took_us, cooldown_us) in [(0, 0), (100, 0), (500, 3_000), (1_000, 6_000), (50_000, 8_000)] {
            let took = Duration::from_micros(took_us);
            assert_eq!(cooldown(took), Duration::from_micros(cooldown_us), "{took_us}");
        }
    }
}

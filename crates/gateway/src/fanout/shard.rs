//! The state machine of a shard: the subscriptions of some of the node's sessions, and the batches of their
//! channels. It takes commands and the time, and returns effects. It does no I/O and reads no clock.
//!
//! A shard applies the changes of a session in the order of their versions, each once. A change is a SYSTEM
//! message and a change of the index in one step. So no event of a subscription comes before its `subscribed`
//! or after its end. A shard that misses a version asks for the session's changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use bus::Interest;
use domain::event::EventType;
use domain::session::{ChangeKind, SessionChange, Subscription};
use domain::{ChannelId, SessionKey};
use service::lost_events::Lost;
use socketio::{CloseReason, Millis};

use super::batch::{Batch, Encoded, Pacing, cooldown};
use super::command::{Command, Join};
use super::index::{Index, Slot};
use super::recently_unsubscribed::RecentlyUnsubscribed;
use super::timers::{NEVER, Tick, Timers};
use crate::context::millis;

/// Makes this node receive the events of a channel.
pub(super) type InterestOf = Box<dyn Fn(&ChannelId) -> Interest + Send>;

/// An action that a shard returns and its thread runs. Effects run in order and before the next command, so
/// their slots are still valid.
pub(super) enum Effect {
    /// Write a batch to the subscribers of its channel, and report the duration.
    Write { channel: Slot, members: Vec<Slot>, batch: Batch },
    /// Send an event to the subscribers of its channel as a fault point decides.
    Evaluate { members: Vec<Slot>, event: Arc<Encoded> },
    /// Send the SYSTEM message about a change.
    Send { member: Slot, change: SessionChange },
    /// Check the deadlines of a session, and report the next one.
    CheckDeadlines(Slot),
    /// Read the changes after a version from the store, and send them as [`Command::CaughtUp`].
    CatchUp { member: Slot, after: i64 },
    /// Wait until the interest is confirmed, and send the change as [`Command::CaughtUp`].
    WaitForInterest { member: Slot, change: SessionChange, interest: Interest },
    /// Close a session.
    Close(Slot, CloseReason),
}

/// A shard. `S` is the handle of a session.
pub(super) struct Shard<S> {
    interest_of: InterestOf,
    /// A fault point decides about each event of each session, so events are not batched.
    has_fault_point: bool,
    /// The node's count of changes whose session was not found in any shard.
    unmatched_changes: Arc<AtomicU64>,
    index: Index<SessionKey, Member<S>, Pacing>,
    timers: Timers,
    /// Channels whose batch began in this round.
    new_batches: Vec<Slot>,
    /// Channels whose batch has enough events to end the cooldown.
    ready_batches: Vec<Slot>,
    /// Channels whose batch waits for the end of the cooldown, sorted by that end.
    cooling_down: BTreeSet<(Duration, Slot)>,
    unsubscribed: RecentlyUnsubscribed,
    effects: Vec<Effect>,
}

/// A session in the index of its shard.
struct Member<S> {
    session: S,
    /// The last version that was sent.
    applied: i64,
    /// The latest version of a change that the shard has received.
    latest_known: i64,
    /// `latest_known` when the store was last read. The read must return at least this version.
    requested: i64,
    /// The tick at which the member's deadlines are checked next.
    deadline_tick: Tick,
    is_introduced: bool,
    is_catching_up: bool,
    /// A change may have been missed without a later version arriving.
    is_behind: bool,
}

impl<S: Clone> Shard<S> {
    pub(super) fn new(
        unmatched_changes: Arc<AtomicU64>,
        interest_of: InterestOf,
        has_fault_point: bool,
    ) -> Self {
        Self {
            interest_of,
            has_fault_point,
            unmatched_changes,
            index: Index::new(),
            timers: Timers::default(),
            new_batches: Vec::new(),
            ready_batches: Vec::new(),
            cooling_down: BTreeSet::new(),
            unsubscribed: RecentlyUnsubscribed::default(),
            effects: Vec::new(),
        }
    }

    /// The session of a member.
    pub(super) fn session(&self, member: Slot) -> Option<&S> {
        self.index.member(member).map(|member| &member.session)
    }

    /// When the next cooldown ends. The caller must call [`end_round`](Self::end_round) at that time.
    pub(super) fn cooldown_end(&self) -> Option<Duration> {
        self.cooling_down.first().map(|(until, _)| *until)
    }

    /// Adds a session.
    pub(super) fn join(&mut self, join: Join<S>) -> Vec<Effect> {
        let Join { key, session, unmatched_changes, is_introduced } = join;
        let member = Member {
            session,
            applied: 0,
            latest_known: 0,
            requested: 0,
            deadline_tick: NEVER,
            is_introduced: false,
            is_catching_up: false,
            is_behind: self.unmatched_changes.load(SeqCst) != unmatched_changes,
        };
        let slot = self.index.insert(key.clone(), member);
        self.effects.push(Effect::CheckDeadlines(slot));
        if is_introduced {
            self.on_introduced(&key);
        }
        self.take_effects()
    }

    /// Processes a command.
    pub(super) fn handle(&mut self, command: Command<S>, now: Duration) -> Vec<Effect> {
        match command {
            Command::Events(events) => events.into_iter().for_each(|event| self.on_event(event)),
            Command::Change(change) => self.on_change(&change.0, change.1, now),
            Command::Introduced(key) => self.on_introduced(&key),
            Command::Watch(key) => {
                let slot = self.index.find(&key);
                self.effects.extend(slot.map(Effect::CheckDeadlines));
            }
            Command::Leave(key) => _ = self.index.remove(&key),
            Command::CaughtUp { key, changes, interests } => {
                self.on_caught_up(&key, changes, now);
                drop(interests);
            }
            Command::End(key, reason) => {
                let slot = self.index.find(&key);
                self.effects.extend(slot.map(|slot| Effect::Close(slot, reason)));
            }
            Command::Lost(lost) => self.on_lost(&lost),
            Command::Find(key, reply) => {
                let session = self.index.find(&key).and_then(|slot| self.session(slot));
                // The caller may be gone.
                let _ = reply.send(session.cloned());
            }
            Command::Subscriptions(keys, reply) => {
                let found = keys.iter().map(|key| self.index.find(key).map(|slot| self.subscriptions(slot)));
                // The caller may be gone.
                let _ = reply.send(found.collect());
            }
            Command::List(reply) => {
                let sessions = self.index.members().map(|(_, member)| member.session.clone());
                // The caller may be gone.
                let _ = reply.send(sessions.collect());
            }
        }
        self.take_effects()
    }

    fn subscriptions(&self, member: Slot) -> Vec<Subscription> {
        let subscription = |(event_type, channel): (EventType, &ChannelId)| Subscription {
            event_type,
            channel_id: channel.clone(),
        };
        self.index.subscriptions(member).map(subscription).collect()
    }

    fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    fn on_introduced(&mut self, key: &SessionKey) {
        let Some(slot) = self.index.find(key) else { return };
        let Some(member) = self.index.member_mut(slot) else { return };
        member.is_introduced = true;
        if member.is_behind || member.latest_known > member.applied {
            self.catch_up(slot);
        }
    }

    fn on_change(&mut self, key: &SessionKey, change: SessionChange, now: Duration) {
        let Some(slot) = self.index.find(key) else {
            self.unmatched_changes.fetch_add(1, SeqCst);
            return;
        };
        let Some(member) = self.index.member_mut(slot) else { return };
        member.latest_known = member.latest_known.max(change.version);
        if !member.is_introduced || change.version <= member.applied {
            return;
        }
        let (is_next, is_catching_up) = (change.version == member.applied + 1, member.is_catching_up);
        if is_next {
            // The interest is held until the channel holds one itself.
            let interest = self.interest_needed_for(&change);
            if interest.is_ready() {
                self.apply(slot, key, change, now);
            } else if !is_catching_up {
                self.wait_for_interest(slot, change, interest);
            }
        } else if !is_catching_up {
            self.catch_up(slot);
        }
    }

    /// Applies a change when the bus has confirmed the interest that the change needs. Until then the session
    /// counts as in a catch-up, which already has the change.
    fn wait_for_interest(&mut self, slot: Slot, change: SessionChange, interest: Interest) {
        let Some(member) = self.index.member_mut(slot) else { return };
        member.is_catching_up = true;
        member.requested = change.version;
        self.effects.push(Effect::WaitForInterest { member: slot, change, interest });
    }

    /// The interest in the channel of a change, if this shard has no subscriber of the channel yet.
    fn interest_needed_for(&self, change: &SessionChange) -> Interest {
        let channel = &change.subscription.channel_id;
        if change.kind == ChangeKind::Subscribed && self.index.channel(channel).is_none() {
            (self.interest_of)(channel)
        } else {
            Interest::default()
        }
    }

    /// Requests the missed changes of a session. A session has one such request at a time.
    fn catch_up(&mut self, slot: Slot) {
        let Some(member) = self.index.member_mut(slot) else { return };
        member.is_catching_up = true;
        member.is_behind = false;
        member.requested = member.latest_known;
        self.effects.push(Effect::CatchUp { member: slot, after: member.applied });
    }

    fn on_caught_up(&mut self, key: &SessionKey, changes: Vec<SessionChange>, now: Duration) {
        let Some(slot) = self.index.find(key) else { return };
        for change in changes {
            let applied = self.index.member(slot).map_or(0, |member| member.applied);
            if change.version == applied + 1 {
                self.apply(slot, key, change, now);
            } else if change.version > applied {
                // The stored changes do not reach back to the applied version.
                self.effects.push(Effect::Close(slot, CloseReason::Gap));
                return;
            }
        }
        let Some(member) = self.index.member_mut(slot) else { return };
        member.is_catching_up = false;
        if member.applied < member.requested {
            self.effects.push(Effect::Close(slot, CloseReason::Gap));
        } else if member.is_behind || member.latest_known > member.applied {
            self.catch_up(slot);
        }
    }

    /// Closes the sessions that are subscribed to a channel with lost events, or were in the last seconds.
    fn on_lost(&mut self, lost: &Lost) {
        let index = &self.index;
        let mut affected: Vec<Slot> = match lost {
            Lost::Channels(channels) => {
                let channels = channels.iter().filter_map(|id| index.channel(id));
                let subscribers = channels.flat_map(|channel| {
                    EventType::ALL.iter().flat_map(move |event| index.subscribers(channel, *event))
                });
                subscribers.copied().collect()
            }
            Lost::Everything => {
                let members = index.members().map(|(slot, _)| slot);
                members.filter(|slot| index.is_subscribed(*slot)).collect()
            }
        };
        let missed = self.unsubscribed.missed(lost);
        affected.extend(missed.into_iter().filter_map(|key| index.find(key)));
        self.effects.extend(affected.into_iter().map(|slot| Effect::Close(slot, CloseReason::Gap)));
    }

    /// Begins or ends a subscription, on the socket and in the index. Only this function does.
    fn apply(&mut self, slot: Slot, key: &SessionKey, change: SessionChange, now: Duration) {
        let (channel, event) = (&change.subscription.channel_id, change.subscription.event_type);
        if let Some(channel) = self.index.channel(channel) {
            // Earlier events go to the sessions that were subscribed before the change.
            self.write_batch(channel);
        }
        let Some(member) = self.index.member_mut(slot) else { return };
        member.applied = change.version;
        match change.kind {
            ChangeKind::Subscribed => self.subscribe(slot, channel, event),
            ChangeKind::Unsubscribed | ChangeKind::Revoked => {
                self.index.unsubscribe(slot, channel, event);
                self.unsubscribed.add(key, channel, millis(now));
            }
        }
        self.effects.push(Effect::Send { member: slot, change });
    }

    /// Subscribes a session. A channel's first subscriber makes this node interested in the channel. The
    /// interest ends with the last one.
    fn subscribe(&mut self, slot: Slot, id: &ChannelId, event: EventType) {
        let is_first = self.index.channel(id).is_none();
        self.index.subscribe(slot, id, event);
        if is_first && let Some(pacing) = self.index.channel(id).and_then(|c| self.index.channel_mut(c)) {
            pacing.interest = (self.interest_of)(id);
        }
    }

    fn on_event(&mut self, event: Arc<Encoded>) {
        if self.has_fault_point {
            return self.on_evaluated_event(event);
        }
        let Some(channel) = self.index.channel(&event.event.channel_id) else { return };
        let event_type = event.event.event_type();
        if self.index.subscribers(channel, event_type).is_empty() {
            return;
        }
        let Some(pacing) = self.index.channel_mut(channel) else { return };
        match &mut pacing.batch {
            // Events of one kind are batched. An event of another kind is written after the batch, which
            // keeps the order.
            Some(batch) if batch.event_type == event_type && !batch.is_full() => {
                if batch.push(event) {
                    self.ready_batches.push(channel);
                }
                return;
            }
            Some(_) => self.write_batch(channel),
            None => {}
        }
        if let Some(pacing) = self.index.channel_mut(channel) {
            pacing.batch = Some(Batch::new(event));
            self.new_batches.push(channel);
        }
    }

    /// Reports an event also when it has no subscriber.
    fn on_evaluated_event(&mut self, event: Arc<Encoded>) {
        let channel = self.index.channel(&event.event.channel_id);
        let subscribers = channel.map(|channel| self.index.subscribers(channel, event.event.event_type()));
        let members = subscribers.unwrap_or_default().to_vec();
        self.effects.push(Effect::Evaluate { members, event });
    }

    /// Ends a round: writes its batches, and those whose cooldown is over.
    pub(super) fn end_round(&mut self, now: Duration) -> Vec<Effect> {
        let mut new_batches = std::mem::take(&mut self.new_batches);
        for channel in new_batches.drain(..) {
            match self.index.channel_mut(channel).map(|pacing| pacing.cooldown_until) {
                Some(until) if until > now => _ = self.cooling_down.insert((until, channel)),
                Some(_) => self.write_batch(channel),
                None => {}
            }
        }
        self.new_batches = new_batches;
        while let Some(channel) = self.ready_batches.pop() {
            self.write_batch(channel);
        }
        while let Some(&(until, channel)) = self.cooling_down.first()
            && until <= now
        {
            self.cooling_down.pop_first();
            // The channel may have a later cooldown, because enough events ended this one early.
            if self.index.channel_mut(channel).is_some_and(|pacing| pacing.cooldown_until == until) {
                self.write_batch(channel);
            }
        }
        self.take_effects()
    }

    /// Writes the batch of a channel to all of its subscribers.
    fn write_batch(&mut self, channel: Slot) {
        let pacing = self.index.channel_mut(channel);
        let Some(batch) = pacing.and_then(|pacing| pacing.batch.take()) else { return };
        let members = self.index.subscribers(channel, batch.event_type).to_vec();
        self.effects.push(Effect::Write { channel, members, batch });
    }

    /// Starts the cooldown of a channel whose batch was written.
    pub(super) fn on_written(&mut self, channel: Slot, started: Duration, took: Duration) {
        if let Some(pacing) = self.index.channel_mut(channel) {
            pacing.cooldown_until = started + took + cooldown(took);
        }
    }

    /// Returns a check for every member with an expired deadline. Removes subscriptions that ended long ago.
    pub(super) fn tick(&mut self, now: Duration) -> Vec<Effect> {
        let now = millis(now);
        self.unsubscribed.forget(now);
        while let Some((tick, slots)) = self.timers.pop_expired(now) {
            for slot in slots {
                match self.index.member_mut(slot) {
                    Some(member) if member.deadline_tick == tick => member.deadline_tick = NEVER,
                    // The session has left, or was checked in the meantime.
                    _ => continue,
                }
                self.effects.push(Effect::CheckDeadlines(slot));
            }
        }
        self.take_effects()
    }

    /// Schedules the next check of a member whose deadlines were checked; `next` is the next deadline.
    pub(super) fn on_checked(&mut self, member: Slot, next: Option<Millis>, now: Millis) {
        let (Some(next), Some(entry)) = (next, self.index.member_mut(member)) else { return };
        let tick = Timers::tick_of(next, now);
        if tick < entry.deadline_tick {
            entry.deadline_tick = tick;
            self.timers.add(tick, member);
        }
    }
}

#[cfg(test)]
mod tests;

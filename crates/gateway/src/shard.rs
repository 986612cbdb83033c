//! A shard: one thread that owns a part of the sessions and their subscriptions. So the delivery of an event
//! takes no lock but that of each session. Commands are processed one after another, in the order of their
//! arrival.
//!
//! A shard is a thread, not a task, because it spends most of its time in system calls that write. As tasks,
//! two shards may share a runtime thread and write one after the other while a core is idle.
//!
//! A shard applies the changes of a session in the order of their versions, each once. A change is a SYSTEM
//! message and a change of the index in one step. So no event of a subscription comes before its `subscribed`
//! or after its end. A shard that misses a version reads the session's changes from the store in a separate
//! task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::event::{SYSTEM, system_change};
use domain::session::{ChangeKind, EventType, SessionChange};
use domain::{ChannelId, Profile, SessionKey};
use service::losses::Lost;
use socketio::{CloseReason, Millis, packet};
use tokio::sync::{mpsc, oneshot};

use crate::config::{ROUND_MAX, TICK};
use crate::fanout::{Batch, Encoded, Pacing, Writes, cooldown};
use crate::hub::Hub;
use crate::index::{Index, Slot};
use crate::recently_unsubscribed::RecentlyUnsubscribed;
use crate::session::Session;
use crate::session_task;
use crate::stats::add;

/// A registered session on its way to its shard.
pub(crate) struct Join {
    pub(crate) session: Arc<Session>,
    /// The hub's count of unmatched changes before the session was registered.
    pub(crate) unmatched_changes: u64,
    /// SYSTEM `connected` is queued, so changes may follow it.
    pub(crate) is_introduced: bool,
}

/// Sessions that have joined since their shard's last round. A join does not wake the shard, because that
/// would cost more than the rest of a connect. Joins are processed before the next command, or within one
/// tick. Every command about a session is sent after its join, so the shard knows the session by then.
///
/// `None` once the shard has stopped: the hub owns this, so a session left here would keep itself alive.
pub(crate) struct PendingJoins(Mutex<Option<Vec<Join>>>);

impl Default for PendingJoins {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl PendingJoins {
    /// `false` when the shard has stopped.
    pub(crate) fn push(&self, join: Join) -> bool {
        self.joins().as_mut().map(|joins| joins.push(join)).is_some()
    }

    fn take(&self) -> Vec<Join> {
        self.joins().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn close(&self) {
        // Dropped after the lock is released, because dropping a session takes long.
        let _left = self.joins().take();
    }

    fn joins(&self) -> MutexGuard<'_, Option<Vec<Join>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command to a shard.
pub(crate) enum Command {
    /// SYSTEM `connected` is queued, so changes may follow it.
    Introduced(Arc<Session>),
    /// The session's websocket takes no bytes: the shard watches the write deadline.
    Watch(Arc<Session>),
    /// The session has ended.
    Leave(Arc<Session>),
    /// Something happened on a channel.
    Event(Arc<Encoded>),
    /// A session's subscriptions changed.
    Change(Box<(SessionKey, SessionChange)>),
    /// The changes that a session missed, read from the store.
    CaughtUp { session: Arc<Session>, changes: Vec<SessionChange>, interests: Vec<bus::Interest> },
    /// Another node or a call ended the session in the store.
    End(SessionKey, CloseReason),
    /// Events were lost.
    Lost(Arc<Lost>),
    /// Asks for a session by its key.
    Find(SessionKey, oneshot::Sender<Option<Arc<Session>>>),
    /// Asks for every session.
    List(oneshot::Sender<Vec<Arc<Session>>>),
}

pub(crate) struct Shard {
    hub: Arc<Hub>,
    pending_joins: Arc<PendingJoins>,
    inbox: mpsc::Receiver<Command>,
    index: Index<SessionKey, Member, Pacing>,
    wheel: Wheel,
    /// Channels whose batch began in this round.
    new_batches: Vec<Slot>,
    /// Channels whose batch has enough events to end the cooldown.
    ready_batches: Vec<Slot>,
    /// Channels whose batch waits for the end of the cooldown, with that end.
    cooling_down: BTreeSet<(Duration, Slot)>,
    unsubscribed: RecentlyUnsubscribed,
}

/// A session with the shard's state of it.
struct Member {
    session: Arc<Session>,
    /// The last version that was sent.
    applied: i64,
    /// The latest version that the shard has received a change of.
    latest_known: i64,
    /// `latest_known` when the store was last read: the read must return at least that version.
    requested: i64,
    /// The tick at which its deadlines are checked next.
    deadline_tick: u64,
    is_introduced: bool,
    is_catching_up: bool,
    /// A change may have been missed without a later version arriving.
    is_behind: bool,
}

/// Deadlines by the tick at which they expire.
#[derive(Default)]
struct Wheel(BTreeMap<u64, Vec<Slot>>);

const NEVER: u64 = u64::MAX;

impl Drop for Shard {
    fn drop(&mut self) {
        self.pending_joins.close();
    }
}

impl Shard {
    pub(crate) fn new(
        hub: Arc<Hub>,
        pending_joins: Arc<PendingJoins>,
        inbox: mpsc::Receiver<Command>,
    ) -> Self {
        Self {
            hub,
            pending_joins,
            inbox,
            index: Index::new(),
            wheel: Wheel::default(),
            new_batches: Vec::new(),
            ready_batches: Vec::new(),
            cooling_down: BTreeSet::new(),
            unsubscribed: RecentlyUnsubscribed::default(),
        }
    }

    /// Works in rounds: takes the waiting commands, processes them and writes the resulting batches.
    pub(crate) async fn run(mut self) {
        let hub = self.hub.clone();
        let clock = hub.service.clock();
        let mut round = Vec::with_capacity(ROUND_MAX);
        let mut next_tick = clock.monotonic() + TICK;
        let mut alarm_at = next_tick;
        let mut alarm = Box::pin(clock.sleep_until(alarm_at));
        loop {
            let rang = tokio::select! {
                biased;
                count = self.inbox.recv_many(&mut round, ROUND_MAX) => {
                    if count == 0 {
                        return;
                    }
                    false
                }
                () = &mut alarm => true,
            };
            for join in self.pending_joins.take() {
                self.on_join(join);
            }
            for command in round.drain(..) {
                self.handle(command);
            }
            self.write_batches();
            let now = clock.monotonic();
            if now >= next_tick {
                self.tick(hub.now_ms());
                next_tick = now + TICK;
            }
            let wake_at = self.cooling_down.first().map_or(next_tick, |(until, _)| next_tick.min(*until));
            if rang || wake_at != alarm_at {
                alarm_at = wake_at;
                alarm.set(clock.sleep_until(alarm_at));
            }
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Event(event) => self.on_event(event),
            Command::Change(change) => self.on_change(change.0, change.1),
            Command::Introduced(session) => self.on_introduced(&session),
            Command::Watch(session) => {
                if let Some(slot) = self.index.find(&session.key) {
                    self.check_deadlines(slot, self.hub.now_ms());
                }
            }
            Command::Leave(session) => _ = self.index.remove(&session.key),
            Command::CaughtUp { session, changes, interests } => {
                self.on_caught_up(&session, changes);
                drop(interests);
            }
            Command::End(key, reason) => {
                if let Some(member) = self.index.find(&key).and_then(|slot| self.index.member(slot)) {
                    member.session.end(reason);
                }
            }
            Command::Lost(lost) => self.on_lost(&lost),
            Command::Find(key, reply) => {
                // The asker may have gone.
                let _ = reply.send(self.session(&key).cloned());
            }
            Command::List(reply) => {
                let sessions = self.index.members().map(|(_, member)| member.session.clone());
                // The asker may have gone.
                let _ = reply.send(sessions.collect());
            }
        }
    }

    fn session(&self, key: &SessionKey) -> Option<&Arc<Session>> {
        let member = self.index.member(self.index.find(key)?)?;
        Some(&member.session)
    }

    fn on_join(&mut self, Join { session, unmatched_changes, is_introduced }: Join) {
        let member = Member {
            session: session.clone(),
            applied: 0,
            latest_known: 0,
            requested: 0,
            deadline_tick: NEVER,
            is_introduced: false,
            is_catching_up: false,
            is_behind: self.hub.unmatched_changes.load(SeqCst) != unmatched_changes,
        };
        let slot = self.index.insert(session.key.clone(), member);
        self.check_deadlines(slot, self.hub.now_ms());
        if is_introduced {
            self.on_introduced(&session);
        }
    }

    fn on_introduced(&mut self, session: &Arc<Session>) {
        let Some(slot) = self.index.find(&session.key) else { return };
        let Some(member) = self.index.member_mut(slot) else { return };
        member.is_introduced = true;
        if member.is_behind || member.latest_known > member.applied {
            self.catch_up(slot);
        }
    }

    fn on_change(&mut self, key: SessionKey, change: SessionChange) {
        let Some(slot) = self.index.find(&key) else {
            self.hub.unmatched_changes.fetch_add(1, SeqCst);
            return;
        };
        let Some(member) = self.index.member_mut(slot) else { return };
        member.latest_known = member.latest_known.max(change.version);
        if !member.is_introduced || change.version <= member.applied {
            return;
        }
        let (is_next, is_catching_up) = (change.version == member.applied + 1, member.is_catching_up);
        if is_next {
            // Held until the channel holds an interest itself.
            let interest = self.interest_needed_for(&change);
            if interest.is_ready() {
                self.apply(slot, change);
            } else if !is_catching_up {
                self.wait_for_interest(slot, change, interest);
            }
        } else if !is_catching_up {
            self.catch_up(slot);
        }
    }

    /// Applies a change as soon as the bus has confirmed the interest that it needs, like a catch-up that has
    /// the change already.
    fn wait_for_interest(&mut self, slot: Slot, change: SessionChange, interest: bus::Interest) {
        let Some(member) = self.index.member_mut(slot) else { return };
        member.is_catching_up = true;
        member.requested = change.version;
        let session = member.session.clone();
        tokio::spawn(session_task::wait_for_interests(session, vec![change], vec![interest]));
    }

    /// An interest in the channel of a change, if this shard has no subscriber of the channel yet.
    fn interest_needed_for(&self, change: &SessionChange) -> bus::Interest {
        let channel = &change.subscription.channel_id;
        if change.kind == ChangeKind::Subscribed && self.index.channel(channel).is_none() {
            self.hub.service.interest(channel)
        } else {
            bus::Interest::default()
        }
    }

    /// Reads the missed changes of a session in a separate task, one read at a time.
    fn catch_up(&mut self, slot: Slot) {
        let Some(member) = self.index.member_mut(slot) else { return };
        member.is_catching_up = true;
        member.is_behind = false;
        member.requested = member.latest_known;
        tokio::spawn(session_task::catch_up(member.session.clone(), member.applied));
    }

    fn on_caught_up(&mut self, session: &Arc<Session>, changes: Vec<SessionChange>) {
        let Some(slot) = self.index.find(&session.key) else { return };
        for change in changes {
            let applied = self.index.member(slot).map_or(0, |member| member.applied);
            if change.version == applied + 1 {
                self.apply(slot, change);
            } else if change.version > applied {
                // The stored changes do not reach back to the applied version.
                return session.end(CloseReason::Gap);
            }
        }
        let Some(member) = self.index.member_mut(slot) else { return };
        member.is_catching_up = false;
        if member.applied < member.requested {
            session.end(CloseReason::Gap);
        } else if member.is_behind || member.latest_known > member.applied {
            self.catch_up(slot);
        }
    }

    /// Closes the sessions that are subscribed to a channel with lost events, or were until a moment ago.
    fn on_lost(&self, lost: &Lost) {
        let end = |member: &Member| member.session.end(CloseReason::Gap);
        match lost {
            Lost::Channels(channels) => {
                for channel in channels.iter().filter_map(|id| self.index.channel(id)) {
                    let slots =
                        EventType::ALL.iter().flat_map(|event| self.index.subscribers(channel, *event));
                    slots.filter_map(|slot| self.index.member(*slot)).for_each(end);
                }
            }
            Lost::Everything => {
                let subscribed = self.index.members().filter(|(slot, _)| self.index.is_subscribed(*slot));
                subscribed.for_each(|(_, member)| end(member));
            }
        }
        let missed = self.unsubscribed.missed(lost).into_iter().filter_map(|key| self.index.find(key));
        missed.filter_map(|slot| self.index.member(slot)).for_each(end);
    }

    /// Begins or ends a subscription, on the socket and in the index. Nothing else does.
    fn apply(&mut self, slot: Slot, change: SessionChange) {
        let subscription = &change.subscription;
        if let Some(channel) = self.index.channel(&subscription.channel_id) {
            // Earlier events go to the sessions that were subscribed before the change.
            self.write_batch(channel);
        }
        let Some(member) = self.index.member_mut(slot) else { return };
        member.applied = change.version;
        let session = member.session.clone();
        let frame = packet::event(SYSTEM, &system_change(&change));
        let (channel, event, now) = (&subscription.channel_id, subscription.event_type, self.hub.now_ms());
        let stalled = session.deliver(frame.websocket(), 1, now);
        match change.kind {
            ChangeKind::Subscribed => self.subscribe(slot, channel, event),
            ChangeKind::Unsubscribed | ChangeKind::Revoked => {
                self.index.unsubscribe(slot, channel, event);
                self.unsubscribed.add(&session.key, channel, now);
            }
        }
        if stalled {
            self.check_deadlines(slot, now);
        }
    }

    /// Subscribes a session. A channel's first subscriber makes this node interested in the channel. The
    /// interest ends with the last one.
    fn subscribe(&mut self, slot: Slot, id: &ChannelId, event: EventType) {
        let is_first = self.index.channel(id).is_none();
        self.index.subscribe(slot, id, event);
        if is_first && let Some(pacing) = self.index.channel(id).and_then(|c| self.index.channel_mut(c)) {
            pacing.interest = self.hub.service.interest(id);
        }
    }

    fn on_event(&mut self, event: Arc<Encoded>) {
        let Some(channel) = self.index.channel(&event.event.channel_id) else { return };
        let event_type = event.event.event_type();
        if self.index.subscribers(channel, event_type).is_empty() {
            return;
        }
        let Some(pacing) = self.index.channel_mut(channel) else { return };
        match &mut pacing.batch {
            // Events of one kind are batched. An event of another kind is written after them, to keep the
            // order.
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

    /// Writes the batches of this round, and those whose cooldown is over.
    fn write_batches(&mut self) {
        let mut new_batches = std::mem::take(&mut self.new_batches);
        let now = self.hub.service.clock().monotonic();
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
        while let Some(&(until, channel)) = self.cooling_down.first() {
            if until > self.hub.service.clock().monotonic() {
                return;
            }
            self.cooling_down.pop_first();
            // A later cooldown has begun, because enough events ended this one early.
            if self.index.channel_mut(channel).is_some_and(|pacing| pacing.cooldown_until == until) {
                self.write_batch(channel);
            }
        }
    }

    /// Writes the batch of a channel to all of its subscribers.
    fn write_batch(&mut self, channel: Slot) {
        let Some(batch) = self.index.channel_mut(channel).and_then(|pacing| pacing.batch.take()) else {
            return;
        };
        let hub = self.hub.clone();
        let started = hub.service.clock().monotonic();
        let sessions = self.index.subscribers(channel, batch.event_type).len();
        self.write_to_all(channel, &batch, hub.now_ms());
        add(&hub.counters.deliveries, sessions * batch.len());
        let took = hub.service.clock().worked(started);
        if let Some(pacing) = self.index.channel_mut(channel) {
            pacing.cooldown_until = started + took + cooldown(took);
        }
    }

    fn write_to_all(&mut self, channel: Slot, batch: &Batch, now: Millis) {
        let (mut documented, mut observed) = (None::<Writes>, None::<Writes>);
        let mut stalled = Vec::new();
        for &slot in self.index.subscribers(channel, batch.event_type) {
            let Some(member) = self.index.member(slot) else { continue };
            let profile = member.session.profile;
            let writes = match profile {
                Profile::Documented => &mut documented,
                Profile::Observed => &mut observed,
            };
            let writes = writes.get_or_insert_with(|| batch.writes(profile, &self.hub.counters));
            for (bytes, messages) in writes.iter() {
                if member.session.deliver(bytes, *messages, now) {
                    stalled.push(slot);
                }
            }
        }
        for slot in stalled {
            self.check_deadlines(slot, now);
        }
    }

    /// Checks every deadline that has expired.
    fn tick(&mut self, now: Millis) {
        self.unsubscribed.forget(now);
        while let Some((tick, slots)) = self.wheel.pop_until(now) {
            for slot in slots {
                match self.index.member_mut(slot) {
                    Some(member) if member.deadline_tick == tick => member.deadline_tick = NEVER,
                    // The session left, or was checked since.
                    _ => continue,
                }
                self.check_deadlines(slot, now);
            }
        }
    }

    /// Does what is due for a session and schedules its next check.
    fn check_deadlines(&mut self, slot: Slot, now: Millis) {
        let Some(member) = self.index.member_mut(slot) else { return };
        let Some(next) = member.session.on_deadline(now) else { return };
        let tick = next.max(now + 1).div_ceil(TICK.as_millis() as Millis);
        if tick < member.deadline_tick {
            member.deadline_tick = tick;
            self.wheel.0.entry(tick).or_default().push(slot);
        }
    }
}

impl Wheel {
    /// The first expired tick, and its slots.
    fn pop_until(&mut self, now: Millis) -> Option<(u64, Vec<Slot>)> {
        let entry = self.0.first_entry()?;
        let is_over = *entry.key() * TICK.as_millis() as Millis <= now;
        is_over.then(|| entry.remove_entry())
    }
}

// The index has one list for each event type of a channel.
const _: () = assert!(EventType::ALL.len() == 3 && size_of::<Member>() <= 48);

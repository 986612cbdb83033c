//! A shard: one thread that looks after a part of the sessions. It owns their subscriptions, so nothing on the way of an
//! event takes a lock but the session's own. Commands are done one after another, in the order they came.
//!
//! A thread and not a task, because most of its time goes into the kernel's part of writing, which is nobody else's turn: as
//! tasks, two shards may come to share a thread of the runtime, and write one after the other while a core is idle.
//!
//! Changes of a session are applied in the order of their versions, each once: a change is a SYSTEM message and a change
//! of the index in one step, so no event of a subscription comes before its `subscribed` or after its end. A shard
//! that misses a version reads the session's log from the store, beside the dispatch, and goes on when it has it.

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

use crate::config::{ROUND_MAX, SESSIONS_AT_ONCE, TICK};
use crate::fanout::{Chunks, Encoded, Gathering, Run, rest};
use crate::hub::Hub;
use crate::index::{Index, Slot};
use crate::life;
use crate::recently_unsubscribed::RecentlyUnsubscribed;
use crate::session::Session;
use crate::stats::add;

/// A session that was registered, on its way to its shard.
pub(crate) struct Join {
    pub(crate) session: Arc<Session>,
    /// The hub's count of strays before it was registered.
    pub(crate) strays: u64,
    /// SYSTEM `connected` is queued: changes may follow it.
    pub(crate) is_introduced: bool,
}

/// Sessions that have joined since their shard's last round. A join does not wake the shard, because that would cost more than
/// the rest of a connect. Joins are processed before the next command, or within one tick. Every command about a session is sent
/// after its join, so the shard knows the session by then.
///
/// `None` once the shard has stopped: the hub owns this, so a session left here would keep itself alive.
pub(crate) struct Doorway(Mutex<Option<Vec<Join>>>);

impl Default for Doorway {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Doorway {
    /// `false` when there is no shard any more.
    pub(crate) fn enter(&self, join: Join) -> bool {
        self.joins().as_mut().map(|joins| joins.push(join)).is_some()
    }

    fn take(&self) -> Vec<Join> {
        self.joins().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn close(&self) {
        // Let go of only after the lock: a session that goes takes much along.
        let _left = self.joins().take();
    }

    fn joins(&self) -> MutexGuard<'_, Option<Vec<Join>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a shard is told.
pub(crate) enum Command {
    /// SYSTEM `connected` is queued: changes may follow it.
    Introduced(Arc<Session>),
    /// The session's websocket takes no bytes.
    Watch(Arc<Session>),
    /// The session is over.
    Leave(Arc<Session>),
    /// Something happened on a channel.
    Event(Arc<Encoded>),
    /// A session's subscriptions changed.
    Change(Box<(SessionKey, SessionChange)>),
    /// The changes that a session missed, from the store.
    CaughtUp { session: Arc<Session>, changes: Vec<SessionChange>, interests: Vec<bus::Interest> },
    /// Somebody else ended a session in the store.
    End(SessionKey, CloseReason),
    /// Events were lost.
    Lost(Arc<Lost>),
    /// Is this session here?
    Find(SessionKey, oneshot::Sender<Option<Arc<Session>>>),
    /// Which sessions are there?
    List(oneshot::Sender<Vec<Arc<Session>>>),
}

pub(crate) struct Shard {
    hub: Arc<Hub>,
    doorway: Arc<Doorway>,
    inbox: mpsc::Receiver<Command>,
    index: Index<SessionKey, Follower, Gathering>,
    wheel: Wheel,
    /// Channels whose run began in this round.
    begun: Vec<Slot>,
    /// Channels whose run became long enough in this round not to rest any more.
    enough: Vec<Slot>,
    /// Channels whose run waits for the end of their rest, or did when it began.
    resting: BTreeSet<(Duration, Slot)>,
    unsubscribed: RecentlyUnsubscribed,
}

/// A session, as its shard knows it.
struct Follower {
    session: Arc<Session>,
    /// The last version that is on the socket.
    applied: i64,
    /// The last version heard of.
    heard: i64,
    /// What was heard of when the store was last asked: at least that much it must know.
    asked: i64,
    /// The tick of its next look at deadlines.
    armed: u64,
    is_introduced: bool,
    is_catching_up: bool,
    /// Something may have been missed that nothing was heard of.
    is_behind: bool,
}

/// Deadlines, by the tick at which they are over.
#[derive(Default)]
struct Wheel(BTreeMap<u64, Vec<Slot>>);

const NEVER: u64 = u64::MAX;

impl Drop for Shard {
    fn drop(&mut self) {
        self.doorway.close();
    }
}

impl Shard {
    pub(crate) fn new(hub: Arc<Hub>, doorway: Arc<Doorway>, inbox: mpsc::Receiver<Command>) -> Self {
        Self {
            hub,
            doorway,
            inbox,
            index: Index::new(),
            wheel: Wheel::default(),
            begun: Vec::new(),
            enough: Vec::new(),
            resting: BTreeSet::new(),
            unsubscribed: RecentlyUnsubscribed::default(),
        }
    }

    /// Works in rounds: takes what has come, does it, writes what that gave.
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
            for join in self.doorway.take() {
                self.on_join(join);
            }
            for command in round.drain(..) {
                self.obey(command);
            }
            self.write_runs();
            let now = clock.monotonic();
            if now >= next_tick {
                self.tick(hub.now_ms());
                next_tick = now + TICK;
            }
            let wake_at = self.resting.first().map_or(next_tick, |(until, _)| next_tick.min(*until));
            if rang || wake_at != alarm_at {
                alarm_at = wake_at;
                alarm.set(clock.sleep_until(alarm_at));
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Event(event) => self.on_event(event),
            Command::Change(change) => self.on_change(change.0, change.1),
            Command::Introduced(session) => self.on_introduced(&session),
            Command::Watch(session) => {
                if let Some(slot) = self.index.find(&session.key) {
                    self.look_at(slot, self.hub.now_ms());
                }
            }
            Command::Leave(session) => _ = self.index.remove(&session.key),
            Command::CaughtUp { session, changes, interests } => {
                self.on_caught_up(&session, changes);
                drop(interests);
            }
            Command::End(key, reason) => {
                if let Some(follower) = self.index.find(&key).and_then(|slot| self.index.member(slot)) {
                    follower.session.end(reason);
                }
            }
            Command::Lost(lost) => self.on_lost(&lost),
            Command::Find(key, reply) => {
                // Nobody waits for the answer any more: so be it.
                let _ = reply.send(self.session(&key).cloned());
            }
            Command::List(reply) => {
                let sessions = self.index.members().map(|(_, follower)| follower.session.clone());
                // Nobody waits for the answer any more: so be it.
                let _ = reply.send(sessions.collect());
            }
        }
    }

    fn session(&self, key: &SessionKey) -> Option<&Arc<Session>> {
        let follower = self.index.member(self.index.find(key)?)?;
        Some(&follower.session)
    }

    fn on_join(&mut self, Join { session, strays, is_introduced }: Join) {
        let follower = Follower {
            session: session.clone(),
            applied: 0,
            heard: 0,
            asked: 0,
            armed: NEVER,
            is_introduced: false,
            is_catching_up: false,
            is_behind: self.hub.strays.load(SeqCst) != strays,
        };
        let slot = self.index.insert(session.key.clone(), follower);
        self.look_at(slot, self.hub.now_ms());
        if is_introduced {
            self.on_introduced(&session);
        }
    }

    fn on_introduced(&mut self, session: &Arc<Session>) {
        let Some(slot) = self.index.find(&session.key) else { return };
        let Some(follower) = self.index.member_mut(slot) else { return };
        follower.is_introduced = true;
        if follower.is_behind || follower.heard > follower.applied {
            self.catch_up(slot);
        }
    }

    fn on_change(&mut self, key: SessionKey, change: SessionChange) {
        let Some(slot) = self.index.find(&key) else {
            self.hub.strays.fetch_add(1, SeqCst);
            return;
        };
        let Some(follower) = self.index.member_mut(slot) else { return };
        follower.heard = follower.heard.max(change.version);
        if !follower.is_introduced || change.version <= follower.applied {
            return;
        }
        let (is_next, is_catching_up) = (change.version == follower.applied + 1, follower.is_catching_up);
        if is_next {
            // Held until the channel has its own.
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

    /// Applies a change when the bus has confirmed the interest that it needs: a catch-up with the change in hand.
    fn wait_for_interest(&mut self, slot: Slot, change: SessionChange, interest: bus::Interest) {
        let Some(follower) = self.index.member_mut(slot) else { return };
        follower.is_catching_up = true;
        follower.asked = change.version;
        let session = follower.session.clone();
        tokio::spawn(life::wait_for_interests(session, vec![change], vec![interest]));
    }

    /// An interest in the channel that a change subscribes to, when nobody here is subscribed to it yet.
    fn interest_needed_for(&self, change: &SessionChange) -> bus::Interest {
        let channel = &change.subscription.channel_id;
        if change.kind == ChangeKind::Subscribed && self.index.channel(channel).is_none() {
            self.hub.service.interest(channel)
        } else {
            bus::Interest::default()
        }
    }

    /// Reads what a session missed, beside the dispatch. One reading at a time.
    fn catch_up(&mut self, slot: Slot) {
        let Some(follower) = self.index.member_mut(slot) else { return };
        follower.is_catching_up = true;
        follower.is_behind = false;
        follower.asked = follower.heard;
        tokio::spawn(life::catch_up(follower.session.clone(), follower.applied));
    }

    fn on_caught_up(&mut self, session: &Arc<Session>, changes: Vec<SessionChange>) {
        let Some(slot) = self.index.find(&session.key) else { return };
        for change in changes {
            let applied = self.index.member(slot).map_or(0, |follower| follower.applied);
            if change.version == applied + 1 {
                self.apply(slot, change);
            } else if change.version > applied {
                // The log does not reach back to where this session is.
                return session.end(CloseReason::Gap);
            }
        }
        let Some(follower) = self.index.member_mut(slot) else { return };
        follower.is_catching_up = false;
        if follower.applied < follower.asked {
            session.end(CloseReason::Gap);
        } else if follower.is_behind || follower.heard > follower.applied {
            self.catch_up(slot);
        }
    }

    /// Sessions that are subscribed to what was lost, or were until a moment ago, have a hole in what they received: they end.
    fn on_lost(&self, lost: &Lost) {
        let end = |follower: &Follower| follower.session.end(CloseReason::Gap);
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
                subscribed.for_each(|(_, follower)| end(follower));
            }
        }
        let missed = self.unsubscribed.missed(lost).into_iter().filter_map(|key| self.index.find(key));
        missed.filter_map(|slot| self.index.member(slot)).for_each(end);
    }

    /// The one place where a subscription begins or ends, on the socket and in the index.
    fn apply(&mut self, slot: Slot, change: SessionChange) {
        let subscription = &change.subscription;
        if let Some(channel) = self.index.channel(&subscription.channel_id) {
            // What happened before the change goes to those who were subscribed before it.
            self.write_run(channel);
        }
        let Some(follower) = self.index.member_mut(slot) else { return };
        follower.applied = change.version;
        let session = follower.session.clone();
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
            self.look_at(slot, now);
        }
    }

    /// The first subscriber of a channel makes this node interested in it, the last one takes that along.
    fn subscribe(&mut self, slot: Slot, id: &ChannelId, event: EventType) {
        let is_first = self.index.channel(id).is_none();
        self.index.subscribe(slot, id, event);
        if is_first && let Some(gathering) = self.index.channel(id).and_then(|c| self.index.channel_mut(c)) {
            gathering.interest = self.hub.service.interest(id);
        }
    }

    fn on_event(&mut self, event: Arc<Encoded>) {
        let Some(channel) = self.index.channel(&event.event.channel_id) else { return };
        let event_type = event.event.event_type();
        if self.index.subscribers(channel, event_type).is_empty() {
            return;
        }
        let Some(gathering) = self.index.channel_mut(channel) else { return };
        match &mut gathering.run {
            // Events of one kind go together; those of another wait until these are written, to keep their order.
            Some(run) if run.event_type == event_type && !run.is_full() => {
                if run.push(event) {
                    self.enough.push(channel);
                }
                return;
            }
            Some(_) => self.write_run(channel),
            None => {}
        }
        if let Some(gathering) = self.index.channel_mut(channel) {
            gathering.run = Some(Run::new(event));
            self.begun.push(channel);
        }
    }

    /// Writes the runs of this round and those whose rest is over.
    fn write_runs(&mut self) {
        let mut begun = std::mem::take(&mut self.begun);
        let now = self.hub.service.clock().monotonic();
        for channel in begun.drain(..) {
            match self.index.channel_mut(channel).map(|gathering| gathering.rests_until) {
                Some(until) if until > now => _ = self.resting.insert((until, channel)),
                Some(_) => self.write_run(channel),
                None => {}
            }
        }
        self.begun = begun;
        while let Some(channel) = self.enough.pop() {
            self.write_run(channel);
        }
        while let Some(&(until, channel)) = self.resting.first() {
            if until > self.hub.service.clock().monotonic() {
                return;
            }
            self.resting.pop_first();
            // Another rest has begun since, after events that did not wait for the end of this one.
            if self.index.channel_mut(channel).is_some_and(|gathering| gathering.rests_until == until) {
                self.write_run(channel);
            }
        }
    }

    /// Writes what a channel gathered to all of its subscribers.
    fn write_run(&mut self, channel: Slot) {
        let Some(run) = self.index.channel_mut(channel).and_then(|gathering| gathering.run.take()) else {
            return;
        };
        let hub = self.hub.clone();
        let started = hub.service.clock().monotonic();
        let sessions = self.index.subscribers(channel, run.event_type).len();
        self.write_to_all(channel, &run, hub.now_ms());
        add(&hub.counters.deliveries, sessions * run.len());
        let took = hub.service.clock().worked(started);
        if let Some(gathering) = self.index.channel_mut(channel) {
            gathering.rests_until = started + took + rest(took);
        }
    }

    fn write_to_all(&mut self, channel: Slot, run: &Run, now: Millis) {
        let (mut documented, mut observed) = (None::<Chunks>, None::<Chunks>);
        let mut stalled = Vec::new();
        let subscribers = self.index.subscribers(channel, run.event_type);
        for slots in subscribers.chunks(SESSIONS_AT_ONCE) {
            // They lie anywhere in memory: looked up together, the waits for memory are one wait.
            let mut sessions = [None; SESSIONS_AT_ONCE];
            for (place, &slot) in sessions.iter_mut().zip(slots) {
                let session = self.index.member(slot).map(|follower| &*follower.session);
                *place = session.map(|session| (slot, session, session.profile));
            }
            for (slot, session, profile) in sessions.into_iter().flatten() {
                let chunks = match profile {
                    Profile::Documented => &mut documented,
                    Profile::Observed => &mut observed,
                };
                let chunks = chunks.get_or_insert_with(|| run.chunks(profile, &self.hub.counters));
                for (bytes, messages) in chunks.iter() {
                    if session.deliver(bytes, *messages, now) {
                        stalled.push(slot);
                    }
                }
            }
        }
        for slot in stalled {
            self.look_at(slot, now);
        }
    }

    /// Looks at every deadline that is over.
    fn tick(&mut self, now: Millis) {
        self.unsubscribed.forget(now);
        while let Some((tick, slots)) = self.wheel.pop_until(now) {
            for slot in slots {
                match self.index.member_mut(slot) {
                    Some(follower) if follower.armed == tick => follower.armed = NEVER,
                    // The session left, or was looked at since.
                    _ => continue,
                }
                self.look_at(slot, now);
            }
        }
    }

    /// Does what is due for a session, and comes back to it at its next deadline.
    fn look_at(&mut self, slot: Slot, now: Millis) {
        let Some(follower) = self.index.member_mut(slot) else { return };
        let Some(next) = follower.session.on_deadline(now) else { return };
        let tick = next.max(now + 1).div_ceil(TICK.as_millis() as Millis);
        if tick < follower.armed {
            follower.armed = tick;
            self.wheel.0.entry(tick).or_default().push(slot);
        }
    }
}

impl Wheel {
    /// The first tick that is over, and the slots that wait for it.
    fn pop_until(&mut self, now: Millis) -> Option<(u64, Vec<Slot>)> {
        let entry = self.0.first_entry()?;
        let is_over = *entry.key() * TICK.as_millis() as Millis <= now;
        is_over.then(|| entry.remove_entry())
    }
}

// One index entry for each of them in each channel.
const _: () = assert!(EventType::ALL.len() == 3 && size_of::<Follower>() <= 48);

//! The thread of a shard. It passes commands to the shard and runs the effects. Delivering an event takes no
//! lock except that of each session.
//!
//! A shard is a thread, not a task, because it spends most of its time in system calls that write. Two tasks
//! could share a runtime thread and write one after the other while a core is idle.

use std::sync::Arc;
use std::time::Duration;

use domain::{Profile, SessionKey};
use service::Clock;
use tokio::sync::mpsc;

use super::batch::{Batch, Encoded, Writes};
use super::catch_up::CatchUps;
use super::command::{Command, PendingJoins};
use super::index::Slot;
use super::shard::{Effect, Shard};
use super::shards::{Inbox, Shards};
use crate::config::{ROUND_MAX, TICK};
use crate::context::{Context, millis};
use crate::metrics::add;
use crate::session::Session;

/// A shard and its inbox.
pub(crate) struct ShardThread {
    context: Arc<Context>,
    catch_ups: Arc<CatchUps>,
    pending_joins: Arc<PendingJoins>,
    commands: mpsc::Receiver<Command>,
    shard: Shard<Arc<Session>>,
}

impl Drop for ShardThread {
    fn drop(&mut self) {
        self.pending_joins.close();
    }
}

impl ShardThread {
    /// One thread for each inbox.
    pub(crate) fn all(context: &Arc<Context>, shards: &Arc<Shards>, inboxes: Vec<Inbox>) -> Vec<Self> {
        let catch_ups = CatchUps::new(context.clone(), shards.clone());
        let thread = |Inbox { pending_joins, commands }| {
            let service = context.service.clone();
            let interest_of = Box::new(move |channel: &_| service.interest(channel));
            let has_fault_point = context.service.socket_faults().is_some();
            let shard = Shard::new(shards.unmatched_counter(), interest_of, has_fault_point);
            let (context, catch_ups) = (context.clone(), catch_ups.clone());
            Self { context, catch_ups, pending_joins, commands, shard }
        };
        inboxes.into_iter().map(thread).collect()
    }

    /// Works in rounds: takes the waiting commands, processes them and writes the resulting batches.
    pub(crate) async fn run(mut self) {
        let clock = self.context.clock().clone();
        let mut round = Vec::with_capacity(ROUND_MAX);
        let mut next_tick = clock.monotonic() + TICK;
        let mut alarm_at = next_tick;
        let mut alarm = Box::pin(clock.sleep_until(alarm_at));
        loop {
            let rang = tokio::select! {
                biased;
                count = self.commands.recv_many(&mut round, ROUND_MAX) => {
                    if count == 0 {
                        return;
                    }
                    false
                }
                () = &mut alarm => true,
            };
            self.process(&clock, round.drain(..));
            let now = clock.monotonic();
            if now >= next_tick {
                let effects = self.shard.tick(now);
                self.run_effects(effects);
                next_tick = now + TICK;
            }
            let wake_at = self.shard.cooldown_end().map_or(next_tick, |until| next_tick.min(until));
            if rang || wake_at != alarm_at {
                alarm_at = wake_at;
                alarm.set(clock.sleep_until(alarm_at));
            }
        }
    }

    /// Processes the sessions that have joined and the commands of one round.
    fn process(&mut self, clock: &Clock, round: impl Iterator<Item = Command>) {
        for join in self.pending_joins.take() {
            let effects = self.shard.join(join);
            self.run_effects(effects);
        }
        let now = clock.monotonic();
        for command in round {
            let effects = self.shard.handle(command, now);
            self.run_effects(effects);
        }
        let effects = self.shard.end_round(clock.monotonic());
        self.run_effects(effects);
    }

    fn run_effects(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.run_effect(effect);
        }
    }

    fn run_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Write { channel, members, batch } => self.write(channel, &members, &batch),
            Effect::Evaluate { members, event } => self.evaluate(&members, &event),
            Effect::Send { member, change } => {
                let now = self.context.now_ms();
                let session = self.shard.session(member);
                if session.is_some_and(|session| session.deliver_change(&change, now)) {
                    self.check_deadlines(member);
                }
            }
            Effect::CheckDeadlines(member) => self.check_deadlines(member),
            Effect::CatchUp { member, after } => {
                if let Some(session) = self.shard.session(member) {
                    tokio::spawn(self.catch_ups.clone().run(session.clone(), after));
                }
            }
            Effect::WaitForInterest { member, change, interest } => {
                if let Some(session) = self.shard.session(member) {
                    let (catch_ups, key) = (self.catch_ups.clone(), session.key().clone());
                    tokio::spawn(async move {
                        catch_ups.wait_for_interests(key, vec![change], vec![interest]).await;
                    });
                }
            }
            Effect::Close(member, reason) => {
                if let Some(session) = self.shard.session(member) {
                    session.end(reason);
                }
            }
        }
    }

    /// Writes a batch to sessions, and reports the duration to the shard.
    fn write(&mut self, channel: Slot, members: &[Slot], batch: &Batch) {
        let clock = self.context.clock();
        let started = clock.monotonic();
        let stalled = self.write_to_all(members, batch, started);
        add(&self.context.counters.deliveries, members.len() * batch.len());
        let took = clock.worked(started);
        for member in stalled {
            self.check_deadlines(member);
        }
        self.shard.on_written(channel, started, took);
    }

    /// Returns the members whose sockets are full.
    fn write_to_all(&self, members: &[Slot], batch: &Batch, now: Duration) -> Vec<Slot> {
        let (mut documented, mut observed) = (None::<Writes>, None::<Writes>);
        let (mut stalled, now) = (Vec::new(), millis(now));
        for &member in members {
            let Some(session) = self.shard.session(member) else { continue };
            session.count_events(batch.len());
            let profile = session.profile();
            let writes = match profile {
                Profile::Documented => &mut documented,
                Profile::Observed => &mut observed,
            };
            let writes = writes.get_or_insert_with(|| batch.writes(profile, &self.context.counters));
            for (bytes, messages) in writes.iter() {
                if session.deliver(bytes, *messages, now) {
                    stalled.push(member);
                }
            }
        }
        stalled
    }

    /// Sends an event to sessions, to each as the fault point decides.
    fn evaluate(&mut self, members: &[Slot], event: &Encoded) {
        let context = self.context.clone();
        let Some(point) = context.service.socket_faults() else { return };
        let session_of = |member: &Slot| Some((*member, self.shard.session(*member)?.clone()));
        let subscribers: Vec<(Slot, Arc<Session>)> = members.iter().filter_map(session_of).collect();
        let keys: Vec<SessionKey> = subscribers.iter().map(|(_, session)| session.key().clone()).collect();
        let actions = point.on_event(&event.event, &keys);
        add(&context.counters.deliveries, subscribers.len());
        let now = context.now_ms();
        for ((member, session), action) in subscribers.into_iter().zip(actions) {
            session.count_events(1);
            let frame = event.frame(session.profile(), &context.counters);
            if session.deliver_with(frame.websocket(), action, now) {
                self.check_deadlines(member);
            }
        }
    }

    /// Processes the expired deadlines of a session, and schedules its next check.
    fn check_deadlines(&mut self, member: Slot) {
        let now = self.context.now_ms();
        let next = self.shard.session(member).and_then(|session| session.on_deadline(now));
        self.shard.on_checked(member, next, now);
    }
}

//! A shard without sockets: its sessions are names, and its clock is a number.

use bus::{BoxFuture, Guard};
use domain::Timestamp;
use domain::channel::UserRoleCode;
use domain::event::{ChatEvent, DonationEvent, Event, EventKind};
use domain::session::Subscription;

use super::*;
use crate::config::COOLDOWN_EVENTS_MAX;

/// The name of a session.
type Name = &'static str;

/// An interest that is never confirmed.
#[derive(Debug)]
struct Unconfirmed;

impl Guard for Unconfirmed {
    fn is_ready(&self) -> bool {
        false
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

struct World {
    shard: Shard<Name>,
    now: Duration,
}

impl World {
    fn new() -> Self {
        Self::with_interests(|_| Interest::default())
    }

    fn with_interests(interest_of: impl Fn(&ChannelId) -> Interest + Send + 'static) -> Self {
        let shard = Shard::new(Arc::default(), Box::new(interest_of), false);
        Self { shard, now: Duration::from_secs(100) }
    }

    fn with_fault_point() -> Self {
        let shard = Shard::new(Arc::default(), Box::new(|_| Interest::default()), true);
        Self { shard, now: Duration::from_secs(100) }
    }

    /// Describes effects in a few words each.
    fn described(&self, effects: Vec<Effect>) -> Vec<String> {
        let name = |slot: Slot| *self.shard.session(slot).expect("a member");
        let describe = |effect| match effect {
            Effect::Write { members, batch, .. } => {
                let names: Vec<_> = members.into_iter().map(name).collect();
                format!("write {} {} to {}", batch.len(), batch.event_type.name(), names.join(" "))
            }
            Effect::Evaluate { members, event } => {
                let names: Vec<_> = members.into_iter().map(name).collect();
                format!("evaluate {} for {}", event.event.event_type().name(), names.join(" "))
            }
            Effect::Send { member, change } => format!("{} to {}", change.kind.name(), name(member)),
            Effect::CheckDeadlines(member) => format!("check {}", name(member)),
            Effect::CatchUp { member, after } => format!("read changes of {} after {after}", name(member)),
            Effect::WaitForInterest { member, change, .. } => {
                format!("wait for change {} of {}", change.version, name(member))
            }
            Effect::Close(member, reason) => format!("close {}: {reason}", name(member)),
        };
        effects.into_iter().map(describe).collect()
    }

    fn handle(&mut self, command: Command<Name>) -> Vec<String> {
        let effects = self.shard.handle(command, self.now);
        self.described(effects)
    }

    fn end_round(&mut self) -> Vec<String> {
        let effects = self.shard.end_round(self.now);
        self.described(effects)
    }

    /// Adds a session that is introduced.
    fn join(&mut self, name: Name) {
        let join = Join { key: key(name), session: name, unmatched_changes: 0, is_introduced: true };
        let effects = self.shard.join(join);
        assert_eq!(self.described(effects), [format!("check {name}")]);
    }

    fn change(&mut self, name: Name, version: i64, kind: ChangeKind) -> Vec<String> {
        self.handle(Command::Change(Box::new((key(name), change(version, kind, EventType::Chat)))))
    }

    fn caught_up(&mut self, name: Name, changes: Vec<SessionChange>) -> Vec<String> {
        self.handle(Command::CaughtUp { key: key(name), changes, interests: Vec::new() })
    }
}

fn key(name: &str) -> SessionKey {
    SessionKey::stored(name.to_owned())
}

fn channel() -> ChannelId {
    ChannelId::stored("channel".into())
}

fn change(version: i64, kind: ChangeKind, event_type: EventType) -> SessionChange {
    SessionChange { version, kind, subscription: Subscription { event_type, channel_id: channel() } }
}

fn event(kind: EventKind) -> Command<Name> {
    let event = Event { channel_id: channel(), sent_at: Timestamp::from_millis(0), kind };
    Command::Events(vec![Arc::new(Encoded::new(Arc::new(event)))])
}

fn chat() -> Command<Name> {
    event(EventKind::Chat(ChatEvent {
        sender_channel_id: channel(),
        nickname: "n".into(),
        badges: Vec::new(),
        verified_mark: false,
        user_role_code: UserRoleCode::Streamer,
        chat_channel_id: "chat".into(),
        content: "text".into(),
        emojis: Default::default(),
        message_time: Timestamp::from_millis(0),
    }))
}

fn donation() -> Command<Name> {
    event(EventKind::Donation(DonationEvent {
        donation_type: domain::chat::DonationType::Chat,
        donator: None,
        pay_amount: "1".into(),
        donation_text: String::new(),
        emojis: Default::default(),
    }))
}

const NOTHING: [&str; 0] = [];

#[test]
fn changes_are_applied_in_order_and_once() {
    let mut world = World::new();
    world.join("a");
    assert_eq!(world.change("a", 1, ChangeKind::Subscribed), ["subscribed to a"]);
    assert_eq!(world.change("a", 1, ChangeKind::Subscribed), NOTHING);
    // The third change comes before the second, so the shard reads both from the store, once.
    assert_eq!(world.change("a", 3, ChangeKind::Subscribed), ["read changes of a after 1"]);
    assert_eq!(world.change("a", 4, ChangeKind::Revoked), NOTHING);
    let (second, third) = (
        change(2, ChangeKind::Unsubscribed, EventType::Chat),
        change(3, ChangeKind::Subscribed, EventType::Chat),
    );
    // The shard has received the fourth change, and the read returned only the others.
    let effects = world.caught_up("a", vec![second, third]);
    assert_eq!(effects, ["unsubscribed to a", "subscribed to a", "read changes of a after 3"]);
    let effects = world.caught_up("a", vec![change(4, ChangeKind::Revoked, EventType::Chat)]);
    assert_eq!(effects, ["revoked to a"]);
}

#[test]
fn a_session_whose_changes_are_incomplete_is_closed() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.join(name);
        world.change(name, 3, ChangeKind::Subscribed);
    }
    assert_eq!(world.caught_up("a", Vec::new()), ["close a: gap"]);
    let third = change(3, ChangeKind::Subscribed, EventType::Chat);
    assert_eq!(world.caught_up("b", vec![third]), ["close b: gap"]);
}

#[test]
fn a_session_that_joins_after_an_unmatched_change_reads_its_changes() {
    let mut world = World::new();
    assert_eq!(world.change("a", 1, ChangeKind::Subscribed), NOTHING);
    let join = Join { key: key("a"), session: "a", unmatched_changes: 0, is_introduced: false };
    let effects = world.shard.join(join);
    assert_eq!(world.described(effects), ["check a"]);
    assert_eq!(world.handle(Command::Introduced(key("a"))), ["read changes of a after 0"]);
}

#[test]
fn a_subscription_waits_for_the_interest_of_its_channel() {
    let mut world = World::with_interests(|_| Interest::with_guard(Unconfirmed));
    world.join("a");
    assert_eq!(world.change("a", 1, ChangeKind::Subscribed), ["wait for change 1 of a"]);
    assert_eq!(world.change("a", 2, ChangeKind::Unsubscribed), NOTHING);
    world.handle(chat());
    assert_eq!(world.end_round(), NOTHING);
    let effects = world.caught_up("a", vec![change(1, ChangeKind::Subscribed, EventType::Chat)]);
    assert_eq!(effects, ["subscribed to a", "read changes of a after 1"]);
}

#[test]
fn events_of_one_kind_are_written_together_to_the_subscribers() {
    let mut world = World::new();
    world.join("a");
    world.join("b");
    world.change("a", 1, ChangeKind::Subscribed);
    let donations = change(2, ChangeKind::Subscribed, EventType::Donation);
    assert_eq!(world.handle(Command::Change(Box::new((key("a"), donations)))), ["subscribed to a"]);
    assert_eq!(world.handle(chat()), NOTHING);
    assert_eq!(world.handle(chat()), NOTHING);
    assert_eq!(world.handle(donation()), ["write 2 CHAT to a"]);
    let effects = world.change("b", 1, ChangeKind::Subscribed);
    assert_eq!(effects, ["write 1 DONATION to a", "subscribed to b"]);
    world.handle(chat());
    assert_eq!(world.end_round(), ["write 1 CHAT to a b"]);
    assert_eq!(world.handle(Command::Leave(key("a"))), NOTHING);
    world.handle(chat());
    assert_eq!(world.end_round(), ["write 1 CHAT to b"]);
    assert_eq!(world.change("b", 2, ChangeKind::Unsubscribed), ["unsubscribed to b"]);
    world.handle(chat());
    assert_eq!(world.end_round(), NOTHING);
}

#[test]
fn a_channel_with_a_costly_write_cools_down() {
    let mut world = World::new();
    world.join("a");
    world.change("a", 1, ChangeKind::Subscribed);
    let write = |world: &mut World| {
        world.handle(chat());
        let effects = world.shard.end_round(world.now);
        let [Effect::Write { channel, .. }] = effects[..] else { panic!("one write") };
        world.shard.on_written(channel, world.now, Duration::from_millis(1));
        world.shard.cooldown_end()
    };
    assert_eq!(write(&mut world), None, "nothing waits");
    world.handle(chat());
    assert_eq!(world.end_round(), NOTHING);
    let end = world.now + Duration::from_millis(7);
    assert_eq!(world.shard.cooldown_end(), Some(end));
    world.now = end;
    assert_eq!(world.end_round(), ["write 1 CHAT to a"]);
    // Enough events end the next cooldown early.
    write(&mut world);
    for _ in 1..COOLDOWN_EVENTS_MAX {
        world.handle(chat());
        assert_eq!(world.end_round(), NOTHING);
    }
    world.handle(chat());
    assert_eq!(world.end_round(), [format!("write {COOLDOWN_EVENTS_MAX} CHAT to a")]);
}

#[test]
fn lost_events_close_those_who_may_have_missed_them() {
    let mut world = World::new();
    for name in ["subscribed", "left", "idle"] {
        world.join(name);
    }
    world.change("subscribed", 1, ChangeKind::Subscribed);
    world.change("left", 1, ChangeKind::Subscribed);
    world.change("left", 2, ChangeKind::Unsubscribed);
    for lost in [Lost::Channels(vec![channel()]), Lost::Everything] {
        let effects = world.handle(Command::Lost(Arc::new(lost)));
        assert_eq!(effects, ["close subscribed: gap", "close left: gap"]);
    }
    let other = Lost::Channels(vec![ChannelId::stored("other".into())]);
    assert_eq!(world.handle(Command::Lost(Arc::new(other))), NOTHING);
}

#[test]
fn deadlines_are_checked_at_their_tick() {
    let mut world = World::new();
    world.join("a");
    world.join("b");
    let tick = |world: &mut World, ms| {
        let effects = world.shard.tick(Duration::from_millis(ms));
        world.described(effects)
    };
    world.shard.on_checked(0, Some(5_000), 0);
    // An earlier deadline replaces a later one.
    world.shard.on_checked(0, Some(3_500), 0);
    world.shard.on_checked(1, Some(3_500), 0);
    assert_eq!(tick(&mut world, 3_999), NOTHING);
    world.handle(Command::Leave(key("b")));
    assert_eq!(tick(&mut world, 4_000), ["check a"]);
    assert_eq!(tick(&mut world, 5_000), NOTHING);
    assert_eq!(world.handle(Command::Watch(key("a"))), ["check a"]);
    let end = Command::End(key("a"), CloseReason::Evicted);
    assert_eq!(world.handle(end), ["close a: evicted"]);
}

#[test]
fn a_shard_with_a_fault_point_reports_each_event_at_once_also_without_subscribers() {
    let mut world = World::with_fault_point();
    world.join("one");
    assert_eq!(world.handle(chat()), ["evaluate CHAT for "]);
    assert_eq!(world.change("one", 1, ChangeKind::Subscribed), ["subscribed to one"]);
    assert_eq!(world.handle(chat()), ["evaluate CHAT for one"]);
    assert_eq!(world.handle(donation()), ["evaluate DONATION for "]);
    assert_eq!(world.end_round(), Vec::<String>::new());
}

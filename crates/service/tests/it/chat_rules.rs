//! The rules of who may post in a chat, at their boundaries. A refused message leaves no rows.

use std::sync::Arc;

use domain::channel::UserRole;
use domain::chat::{Emojis, MessageText, chat_channel_id};
use domain::chat_settings::{
    ChatRefusal, ChatSettingsChange, Condition, Group, MIN_FOLLOWER_MINUTES, SLOW_MODE_SECONDS,
};
use domain::limits::MINUTE_MS;
use domain::{ChannelId, Refusal};
use service::channel_events::PaidSubscription;
use service::chats::PostedMessage;
use service::idempotency::IdempotencyKey;
use service::restrictions::ChatTarget;
use service::{Error, Service};

use crate::world::{World, at_once, both, events_among, received, refused, winners};

const MESSAGES: &str = "SELECT COUNT(*) FROM chat_messages";
const TRACES: &str = "SELECT (SELECT COUNT(*) FROM chat_messages) + (SELECT COUNT(*) FROM chat_speakers)
                          + (SELECT COUNT(*) FROM idempotency_keys)";
const NONE: ChatSettingsChange = ChatSettingsChange {
    condition: None,
    group: None,
    min_follower_minute: None,
    allow_subscriber_in_follower_mode: None,
    slow_mode_sec: None,
    emoji_mode: None,
};

async fn say_on(
    service: &Service,
    channel: &ChannelId,
    sender: &ChannelId,
    key: Option<&str>,
) -> Result<PostedMessage, Error> {
    let key = key.map(|key| IdempotencyKey::parse("POST /chats".to_owned(), key, "body").unwrap());
    let text = MessageText::parse("안녕".to_owned()).unwrap();
    service.post_chat(channel, sender, text, Emojis::new(), key).await
}

async fn say(world: &World, channel: &ChannelId, sender: &ChannelId) -> Result<PostedMessage, Error> {
    say_on(&world.service, channel, sender, None).await
}

async fn set(world: &World, channel: &ChannelId, change: ChatSettingsChange) {
    world.service.change_chat_settings(channel, change).await.unwrap();
}

fn about(channel: &ChannelId, target: &ChannelId) -> ChatTarget {
    ChatTarget { target: target.clone(), chat_channel_id: chat_channel_id(channel) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_may_post_after_exactly_the_set_minutes() {
    both(|world| async move {
        let channel = world.user("channel").await;
        set(&world, &channel, ChatSettingsChange { group: Some(Group::Follower), ..NONE }).await;
        for minutes in MIN_FOLLOWER_MINUTES {
            set(&world, &channel, ChatSettingsChange { min_follower_minute: Some(minutes), ..NONE }).await;
            let viewer = world.user(&format!("viewer-{minutes}")).await;
            let refusal = |refusal| Refusal::Chat(refusal);
            let too_short = |left_s| refusal(ChatRefusal::FollowerMinutes { left_s });
            assert_eq!(refused(say(&world, &channel, &viewer).await), refusal(ChatRefusal::Follower));
            world.service.follow(channel.clone(), viewer.clone(), None).await.unwrap();
            if minutes > 0 {
                assert_eq!(refused(say(&world, &channel, &viewer).await), too_short(minutes * 60));
                world.advance_ms((minutes * MINUTE_MS) as u64 - 1_001);
                assert_eq!(refused(say(&world, &channel, &viewer).await), too_short(2));
                world.advance_ms(1_000);
                assert_eq!(refused(say(&world, &channel, &viewer).await), too_short(1));
                world.advance_ms(1);
            }
            say(&world, &channel, &viewer).await.unwrap();
        }
        assert_eq!(world.count(MESSAGES).await, MIN_FOLLOWER_MINUTES.len() as i64);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_waits_exactly_the_set_seconds_in_slow_mode() {
    both(|world| async move {
        let channel = world.user("channel").await;
        for seconds in SLOW_MODE_SECONDS {
            set(&world, &channel, ChatSettingsChange { slow_mode_sec: Some(seconds), ..NONE }).await;
            let viewer = world.user(&format!("viewer-{seconds}")).await;
            say(&world, &channel, &viewer).await.unwrap();
            if seconds > 0 {
                let too_soon = |left_s| Refusal::Chat(ChatRefusal::SlowMode { left_s });
                assert_eq!(refused(say(&world, &channel, &viewer).await), too_soon(seconds));
                world.advance_ms(seconds as u64 * 1_000 - 1);
                // Repeated refusals do not extend the waiting time.
                for _ in 0..3 {
                    assert_eq!(refused(say(&world, &channel, &viewer).await), too_soon(1));
                }
                world.advance_ms(1);
            }
            say(&world, &channel, &viewer).await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_50_concurrent_messages_through_two_nodes_slow_mode_accepts_one() {
    both(|world| async move {
        let (channel, viewer) = (world.user("channel").await, world.user("viewer").await);
        let other_node = world.node("node-b");
        set(&world, &channel, ChatSettingsChange { slow_mode_sec: Some(5), ..NONE }).await;
        let mut bus = world.service.subscribe_to_bus();
        for round in 1..=3 {
            let outcomes = at_once((0..50).map(|n| {
                let service = if n % 2 == 0 { world.service.clone() } else { other_node.clone() };
                let (channel, viewer) = (channel.clone(), viewer.clone());
                async move { say_on(&service, &channel, &viewer, Some(&format!("{round}-{n}"))).await }
            }))
            .await;
            let too_soon = Refusal::Chat(ChatRefusal::SlowMode { left_s: 5 });
            assert_eq!(winners(outcomes, &too_soon).len(), 1);
            assert_eq!(world.count(MESSAGES).await, round);
            assert_eq!(world.count("SELECT COUNT(*) FROM idempotency_keys").await, round);
            assert_eq!(events_among(&received(&mut bus).await).len(), 1);
            world.advance_ms(5_000);
        }
    })
    .await;
}

/// Every setting that restricts viewers.
const STRICTEST: ChatSettingsChange = ChatSettingsChange {
    condition: Some(Condition::RealName),
    group: Some(Group::Subscriber),
    min_follower_minute: Some(259_200),
    allow_subscriber_in_follower_mode: Some(false),
    slow_mode_sec: Some(300),
    emoji_mode: Some(true),
};

#[tokio::test(flavor = "multi_thread")]
async fn the_streamer_and_managers_of_every_role_are_exempt_from_all_rules() {
    both(|world| async move {
        let (channel, viewer) = (world.user("channel").await, world.user("viewer").await);
        set(&world, &channel, STRICTEST).await;
        let mut people = vec![channel.clone()];
        for role in UserRole::GIVEN {
            let manager = world.user(role.name()).await;
            // The restriction was made before the channel became a manager.
            world.service.restrict(&channel, manager.clone()).await.unwrap();
            world.service.restrict_temporarily(&channel, about(&channel, &manager)).await.unwrap();
            assert_eq!(
                refused(say(&world, &channel, &manager).await),
                Refusal::Chat(ChatRefusal::Restricted)
            );
            world.service.put_manager(channel.clone(), manager.clone(), role).await.unwrap();
            people.push(manager);
        }
        for person in &people {
            for _ in 0..3 {
                say(&world, &channel, person).await.unwrap();
            }
        }
        assert_eq!(refused(say(&world, &channel, &viewer).await), Refusal::Chat(ChatRefusal::RealName));
        // A manager of this channel is a viewer of other channels.
        let other = world.user("other").await;
        set(&world, &other, STRICTEST).await;
        assert_eq!(refused(say(&world, &other, &people[1]).await), Refusal::Chat(ChatRefusal::RealName));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_leaves_no_rows_and_its_key_can_be_used_later() {
    both(|world| async move {
        let (channel, viewer) = (world.user("channel").await, world.user("viewer").await);
        let mut bus = world.service.subscribe_to_bus();
        let slow = ChatSettingsChange { slow_mode_sec: Some(300), ..NONE };
        for (change, refusal) in [
            (ChatSettingsChange { condition: Some(Condition::RealName), ..slow }, ChatRefusal::RealName),
            (
                ChatSettingsChange { condition: Some(Condition::None), group: Some(Group::Follower), ..slow },
                ChatRefusal::Follower,
            ),
            (ChatSettingsChange { group: Some(Group::Manager), ..slow }, ChatRefusal::Manager),
            (ChatSettingsChange { group: Some(Group::Subscriber), ..slow }, ChatRefusal::Subscriber),
            (
                ChatSettingsChange { group: Some(Group::All), emoji_mode: Some(true), ..slow },
                ChatRefusal::Emoji,
            ),
        ] {
            set(&world, &channel, change).await;
            let said = say_on(&world.service, &channel, &viewer, Some("key")).await;
            assert_eq!(refused(said), Refusal::Chat(refusal));
            assert_eq!(world.count(TRACES).await, 0, "{refusal:?}");
        }
        set(&world, &channel, ChatSettingsChange { emoji_mode: Some(false), ..NONE }).await;
        world.service.restrict(&channel, viewer.clone()).await.unwrap();
        let said = say_on(&world.service, &channel, &viewer, Some("key")).await;
        assert_eq!(refused(said), Refusal::Chat(ChatRefusal::Restricted));
        assert_eq!(world.count(TRACES).await, 0);
        world.service.release(&channel, viewer.clone()).await.unwrap();
        assert!(received(&mut bus).await.is_empty());

        let first = say_on(&world.service, &channel, &viewer, Some("key")).await.unwrap();
        assert_eq!(world.count(TRACES).await, 3);
        assert_eq!(say_on(&world.service, &channel, &viewer, Some("key")).await.unwrap(), first);
        let too_soon = say_on(&world.service, &channel, &viewer, Some("next")).await;
        assert_eq!(refused(too_soon), Refusal::Chat(ChatRefusal::SlowMode { left_s: 300 }));
        assert_eq!(world.count(TRACES).await, 3);
        assert_eq!(received(&mut bus).await.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_slow_mode_no_posting_times_are_kept() {
    both(|world| async move {
        let (channel, viewer) = (world.user("channel").await, world.user("viewer").await);
        for sender in [&channel, &viewer] {
            say(&world, &channel, sender).await.unwrap();
        }
        assert_eq!(world.count("SELECT COUNT(*) FROM chat_speakers").await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_may_post_in_follower_mode_only_if_the_setting_allows_it() {
    both(|world| async move {
        let (channel, viewer) = (world.user("channel").await, world.user("viewer").await);
        let paid = PaidSubscription {
            subscriber: viewer.clone(),
            tier_no: 1,
            tier_name: "별".into(),
            month: 1,
            created: None,
        };
        world.service.subscribe_paid(&channel, paid, None).await.unwrap();
        let follower = ChatSettingsChange { group: Some(Group::Follower), ..NONE };
        set(&world, &channel, ChatSettingsChange { min_follower_minute: Some(5), ..follower }).await;
        assert_eq!(refused(say(&world, &channel, &viewer).await), Refusal::Chat(ChatRefusal::Follower));
        let allow = |allow| ChatSettingsChange { allow_subscriber_in_follower_mode: Some(allow), ..NONE };
        set(&world, &channel, allow(true)).await;
        say(&world, &channel, &viewer).await.unwrap();
        set(&world, &channel, allow(false)).await;
        world.service.follow(channel.clone(), viewer.clone(), None).await.unwrap();
        let too_short = Refusal::Chat(ChatRefusal::FollowerMinutes { left_s: 300 });
        assert_eq!(refused(say(&world, &channel, &viewer).await), too_short);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_activity_restriction_holds_forever_and_a_temporary_one_for_a_minute() {
    both(|world| async move {
        let (channel, viewer) = (world.user("channel").await, world.user("viewer").await);
        world.service.restrict(&channel, viewer.clone()).await.unwrap();
        world.advance_ms(10 * 365 * 86_400_000);
        world.service.sweep().await.unwrap();
        assert_eq!(refused(say(&world, &channel, &viewer).await), Refusal::Chat(ChatRefusal::Restricted));
        world.service.release(&channel, viewer.clone()).await.unwrap();

        world.service.restrict_temporarily(&channel, about(&channel, &viewer)).await.unwrap();
        world.advance_ms(59_999);
        world.service.sweep().await.unwrap();
        let left = Refusal::Chat(ChatRefusal::TemporarilyRestricted { left_s: 1 });
        assert_eq!(refused(say(&world, &channel, &viewer).await), left);
        world.advance_ms(1);
        say(&world, &channel, &viewer).await.unwrap();
        assert_eq!(world.count("SELECT COUNT(*) FROM temporary_restrictions").await, 1);
        assert_eq!(world.service.sweep().await.unwrap(), 1);
        assert_eq!(world.count("SELECT COUNT(*) FROM temporary_restrictions").await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_deletes_posting_times_after_the_longest_slow_mode() {
    both(|world| async move {
        let (channel, viewer) = (world.user("channel").await, world.user("viewer").await);
        set(&world, &channel, ChatSettingsChange { slow_mode_sec: Some(300), ..NONE }).await;
        say(&world, &channel, &viewer).await.unwrap();
        world.advance_ms(299_999);
        assert_eq!(world.service.sweep().await.unwrap(), 0);
        assert!(say(&world, &channel, &viewer).await.is_err());
        world.advance_ms(1);
        assert_eq!(world.service.sweep().await.unwrap(), 1);
        say(&world, &channel, &viewer).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_that_race_with_a_restriction_are_published_or_refused_and_later_ones_are_refused() {
    both(|world| async move {
        let (channel, viewer) = (world.user("channel").await, world.user("viewer").await);
        let mut bus = world.service.subscribe_to_bus();
        let restricting = {
            let (service, channel, viewer) = (world.service.clone(), channel.clone(), viewer.clone());
            async move { service.restrict(&channel, viewer).await }
        };
        let talking = at_once((0..50).map(|_| {
            let (service, channel, viewer) = (world.service.clone(), channel.clone(), viewer.clone());
            async move { say_on(&service, &channel, &viewer, None).await }
        }));
        let (restricted, said) = tokio::join!(tokio::spawn(restricting), talking);
        restricted.unwrap().unwrap();
        let through = winners(said, &Refusal::Chat(ChatRefusal::Restricted)).len();
        let events: Vec<Arc<_>> = events_among(&received(&mut bus).await);
        assert_eq!((events.len(), world.count(MESSAGES).await), (through, through as i64));
        assert_eq!(refused(say(&world, &channel, &viewer).await), Refusal::Chat(ChatRefusal::Restricted));
        assert!(received(&mut bus).await.is_empty());
    })
    .await;
}

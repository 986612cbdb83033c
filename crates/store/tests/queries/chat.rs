//! Chat settings, facts about viewers, slow mode, notices, hidden messages.

use domain::channel::{UserRole, UserRoleCode};
use domain::chat::MessageText;
use domain::chat_settings::{ChatSettings, ChatSettingsChange, Condition, Group};
use domain::event::{ChatEvent, SubscriptionEvent};
use domain::restriction::RestrictionStatus;
use domain::{ChannelId, MessageId, Timestamp};
use store::queries::channels::ChannelRecord;
use store::queries::chat_settings::{ChatFacts, SlowModeTurn};
use store::queries::chats::NewMessage;
use store::queries::relations::FollowOutcome;
use store::{StoreError, Tx};

use crate::{at, both, channel, in_seeded, number, record, tx};

const FULL: ChatSettings = ChatSettings {
    condition: Condition::RealName,
    group: Group::Subscriber,
    min_follower_minute: 1_440,
    allow_subscriber_in_follower_mode: true,
    slow_mode_sec: 30,
    emoji_mode: true,
};

/// A change for each field, to its value in [`FULL`].
fn changes() -> [ChatSettingsChange; 6] {
    let none = ChatSettingsChange::default();
    [
        ChatSettingsChange { condition: Some(FULL.condition), ..none },
        ChatSettingsChange { group: Some(FULL.group), ..none },
        ChatSettingsChange { min_follower_minute: Some(FULL.min_follower_minute), ..none },
        ChatSettingsChange { allow_subscriber_in_follower_mode: Some(true), ..none },
        ChatSettingsChange { slow_mode_sec: Some(FULL.slow_mode_sec), ..none },
        ChatSettingsChange { emoji_mode: Some(true), ..none },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_the_defaults_until_changed_and_a_change_keeps_the_rest() {
    in_seeded(async move |tx: &mut Tx| {
        let mut expected = ChatSettings::default();
        assert_eq!(tx.chat_settings(&channel("a")).await?, expected);
        for change in changes() {
            tx.change_chat_settings(&channel("a"), change).await?;
            expected = change.applied_to(expected);
            assert_eq!(tx.chat_settings(&channel("a")).await?, expected);
            tx.change_chat_settings(&channel("a"), ChatSettingsChange::default()).await?;
            assert_eq!(tx.chat_settings(&channel("a")).await?, expected, "nothing changed");
        }
        assert_eq!(expected, FULL);
        let back = ChatSettingsChange {
            allow_subscriber_in_follower_mode: Some(false),
            emoji_mode: Some(false),
            slow_mode_sec: Some(0),
            ..Default::default()
        };
        tx.change_chat_settings(&channel("a"), back).await?;
        assert_eq!(tx.chat_settings(&channel("a")).await?, back.applied_to(FULL), "false and 0 are values");
        assert_eq!(tx.chat_settings(&channel("b")).await?, ChatSettings::default());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_change_starts_from_the_defaults() {
    both(|store| async move {
        for (name, change) in ["a", "b", "c"].into_iter().zip(changes()) {
            let settings = tx!(store, tx => {
                tx.change_chat_settings(&channel(name), change).await?;
                tx.chat_settings(&channel(name)).await
            });
            assert_eq!(settings, Ok(change.applied_to(ChatSettings::default())));
        }
        let none = ChatSettingsChange::default();
        let missing = tx!(store, tx => { tx.change_chat_settings(&channel("missing"), none).await });
        assert_eq!(missing, Err(StoreError::ForeignKey));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_of_different_fields_all_take_effect() {
    both(|store| async move {
        let tasks: Vec<_> = changes()
            .into_iter()
            .map(|change| {
                let store = store.clone();
                tokio::spawn(async move {
                    tx!(store, tx => { tx.change_chat_settings(&channel("a"), change).await })
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(tx!(store, tx => { tx.chat_settings(&channel("a")).await }), Ok(FULL));
    })
    .await;
}

fn subscription(by: &str) -> SubscriptionEvent {
    SubscriptionEvent {
        subscriber_channel_id: channel(by),
        subscriber_nickname: by.to_owned(),
        tier_no: 1,
        tier_name: "별".to_owned(),
        month: 1,
    }
}

async fn facts(tx: &mut Tx, of: &ChannelId, who: &ChannelId) -> Result<Option<ChatFacts>, StoreError> {
    Ok(tx.chat_facts(&[(of, who)]).await?.pop().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_row_has_all_facts_about_a_viewer() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b) = (channel("a"), channel("b"));
        let plain = facts(tx, &a, &b).await?.unwrap();
        assert_eq!((plain.speaker.name.as_str(), plain.speaker.role), ("channel b", None));
        assert_eq!(plain.settings, ChatSettings::default());
        assert_eq!((plain.viewer.following_since, plain.viewer.subscriber), (None, false));
        assert_eq!(
            (plain.viewer.real_name_verified, plain.viewer.restriction),
            (false, RestrictionStatus::default())
        );

        let real = ChannelRecord { real_name_verified: true, verified_mark: true, ..record("b") };
        tx.put_channel(&real, at(1)).await?;
        tx.follow(&a, &b, at(5)).await?;
        tx.put_subscriber(&a, &subscription("b"), at(6)).await?;
        tx.put_manager(&a, &b, UserRole::StreamingSettlementManager, at(7)).await?;
        tx.restrict(&a, &b, at(8)).await?;
        tx.restrict_temporarily(&a, &b, at(99), at(9)).await?;
        for change in changes() {
            tx.change_chat_settings(&a, change).await?;
        }
        let full = facts(tx, &a, &b).await?.unwrap();
        assert_eq!(full.settings, FULL);
        assert_eq!(full.speaker.role, Some(UserRole::StreamingSettlementManager));
        assert!(full.speaker.verified_mark && full.viewer.real_name_verified && full.viewer.subscriber);
        assert_eq!(full.viewer.following_since, Some(at(5)));
        assert_eq!(full.viewer.restriction, RestrictionStatus { restricted: true, until: Some(at(99)) });

        // What a channel says of a viewer holds nowhere else, and not the other way round.
        for (of, who) in [("a", "c"), ("b", "a"), ("c", "b")] {
            let other = facts(tx, &channel(of), &channel(who)).await?.unwrap();
            assert_eq!((other.speaker.role, other.viewer.following_since), (None, None), "{of} {who}");
            assert_eq!(other.viewer.restriction, RestrictionStatus::default(), "{of} {who}");
            assert!(!other.viewer.subscriber);
            assert_eq!(other.settings == FULL, of == "a", "{of} {who}");
        }
        for (of, who) in [("a", "missing"), ("missing", "a"), ("missing", "missing")] {
            assert!(facts(tx, &channel(of), &channel(who)).await?.is_none(), "{of} {who}");
        }
        Ok(())
    })
    .await;
}

/// One after the other, everything changes that what is known of `b` in the chat of `a` comes from; `None`
/// behind the last.
async fn change_facts(tx: &mut Tx, number: usize) -> Result<Option<()>, StoreError> {
    let (a, b) = (channel("a"), channel("b"));
    match number {
        0 => {
            tx.put_channel(&ChannelRecord { name: "another".into(), ..record("b") }, at(1)).await?;
        }
        1 => tx.change_chat_settings(&a, changes()[1]).await?,
        2 => assert_eq!(tx.follow(&a, &b, at(5)).await?, FollowOutcome::New),
        3 => assert!(tx.move_follow(&a, &b, at(6)).await?),
        4 => tx.put_subscriber(&a, &subscription("b"), at(6)).await?,
        5 => tx.put_manager(&a, &b, UserRole::StreamingChannelManager, at(7)).await?,
        6 => assert!(tx.restrict(&a, &b, at(8)).await?),
        7 => assert!(tx.restrict_temporarily(&a, &b, at(99), at(9)).await?),
        8 => assert!(tx.release_temporarily(&a, &b, at(10)).await?),
        9 => assert!(tx.release(&a, &b).await?),
        10 => assert!(tx.delete_manager(&a, &b).await?),
        11 => assert!(tx.delete_subscriber(&a, &b).await?),
        12 => assert!(tx.unfollow(&a, &b).await?),
        _ => return Ok(None),
    }
    Ok(Some(()))
}

/// What is known of `b` in the chat of `a`, to be compared.
async fn known(tx: &mut Tx) -> Result<String, StoreError> {
    Ok(format!("{:?}", facts(tx, &channel("a"), &channel("b")).await?.unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_include_the_changes_of_the_transaction() {
    both(|store| async move {
        for number in 0.. {
            let before = tx!(store, tx => { known(tx).await }).unwrap();
            assert_eq!(
                tx!(store, tx => { known(tx).await }),
                Ok(before.clone()),
                "{number}: nothing changed"
            );

            // Changed, seen, and taken back.
            let (sender, receiver) = std::sync::mpsc::channel();
            let taken_back = tx!(store, tx => {
                let first = known(tx).await?;
                let changed = change_facts(tx, number).await?;
                sender.send((first, known(tx).await?, changed)).unwrap();
                Err::<(), _>(StoreError::Misuse("to be taken back"))
            });
            assert_eq!(taken_back, Err(StoreError::Misuse("to be taken back")));
            let (first, inside, changed) = receiver.recv().unwrap();
            if changed.is_none() {
                assert!(number > 12, "all changes were tried");
                return;
            }
            assert_eq!(first, before, "{number}: before the change");
            assert_ne!(inside, before, "{number}: the transaction sees its own change");
            assert_eq!(tx!(store, tx => { known(tx).await }), Ok(before), "{number}: it was taken back");

            // Changed for good.
            tx!(store, tx => { change_facts(tx, number).await }).unwrap();
            assert_eq!(tx!(store, tx => { known(tx).await }), Ok(inside), "{number}: it was changed");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_have_the_order_of_the_questions() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b, missing) = (channel("a"), channel("b"), channel("missing"));
        tx.restrict(&a, &b, at(1)).await?;
        let kinds = [(&a, &b), (&b, &a), (&missing, &a), (&a, &b), (&a, &a), (&a, &missing)];
        for count in 0..40 {
            let asked: Vec<_> = kinds.iter().copied().cycle().take(count).collect();
            let found = tx.chat_facts(&asked).await?;
            assert_eq!(found.len(), count);
            for ((of, who), facts) in asked.into_iter().zip(found) {
                let exist = ![of, who].contains(&&missing);
                assert_eq!(facts.is_some(), exist);
                if let Some(facts) = facts {
                    assert_eq!(facts.speaker.name, format!("channel {}", who.as_str()));
                    assert_eq!(facts.viewer.restriction.restricted, (of, who) == (&a, &b));
                }
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_granted_again_at_the_exact_millisecond() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b, c) = (channel("a"), channel("b"), channel("c"));
        assert_eq!(tx.take_slow_mode_turn(&a, &b, 3, at(1_000)).await?, SlowModeTurn::Granted);
        assert_eq!(
            tx.take_slow_mode_turn(&a, &c, 3, at(1_000)).await?,
            SlowModeTurn::Granted,
            "another viewer"
        );
        assert_eq!(
            tx.take_slow_mode_turn(&c, &b, 3, at(1_000)).await?,
            SlowModeTurn::Granted,
            "another chat"
        );
        let too_soon = SlowModeTurn::TooSoon { last: at(1_000) };
        assert_eq!(tx.take_slow_mode_turn(&a, &b, 3, at(3_999)).await?, too_soon);
        assert_eq!(
            tx.take_slow_mode_turn(&a, &b, 300, at(4_000)).await?,
            too_soon,
            "by the wait that holds now"
        );
        assert_eq!(tx.take_slow_mode_turn(&a, &b, 3, at(4_000)).await?, SlowModeTurn::Granted);
        assert_eq!(
            tx.take_slow_mode_turn(&a, &b, 3, at(6_999)).await?,
            SlowModeTurn::TooSoon { last: at(4_000) }
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_50_concurrent_messages_is_granted() {
    both(|store| async move {
        for now in [1_000, 4_000, 7_000] {
            let tasks: Vec<_> = (0..50)
                .map(|_| {
                    let store = store.clone();
                    tokio::spawn(async move {
                        tx!(store, tx => { tx.take_slow_mode_turn(&channel("a"), &channel("b"), 3, at(now)).await })
                    })
                })
                .collect();
            let mut granted = 0;
            for task in tasks {
                match task.await.unwrap().unwrap() {
                    SlowModeTurn::Granted => granted += 1,
                    SlowModeTurn::TooSoon { last } => assert_eq!(last, at(now)),
                }
            }
            assert_eq!(granted, 1, "at {now}");
        }
    })
    .await;
}

/// A message of `sender` in the chat of `of`, as it is recorded.
async fn say(tx: &mut Tx, of: &str, sender: &str, ms: i64, n: u8) -> Result<MessageId, StoreError> {
    let id = MessageId::generate(at(ms), [n; 10]);
    let chat = ChatEvent {
        sender_channel_id: channel(sender),
        nickname: sender.into(),
        badges: Vec::new(),
        verified_mark: false,
        user_role_code: UserRoleCode::CommonUser,
        chat_channel_id: format!("chat-{of}"),
        content: format!("{sender} says {n}"),
        emojis: Default::default(),
        message_time: at(ms),
    };
    let message = NewMessage { id: &id, channel: &channel(of), chat: &chat, emojis: "{}".into() };
    tx.insert_chat_messages(&[message]).await?;
    Ok(id)
}

async fn hidden(tx: &mut Tx) -> Result<Vec<(String, i64)>, StoreError> {
    const HIDDEN: &str =
        "SELECT content, hidden_at FROM chat_messages WHERE hidden_at IS NOT NULL ORDER BY message_id";
    tx.query(HIDDEN, &[]).await?.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_hidden_by_chat_sender_and_time() {
    in_seeded(async move |tx: &mut Tx| {
        for (n, (of, sender, ms)) in [
            ("a", "b", 99),
            ("a", "b", 100),
            ("a", "b", 100),
            ("a", "b", 101),
            ("a", "c", 100),
            ("c", "b", 100),
        ]
        .into_iter()
        .enumerate()
        {
            say(tx, of, sender, ms, n as u8).await?;
        }
        let (a, b) = (channel("a"), channel("b"));
        let then = at(100)..at(101);
        assert_eq!(tx.hide_messages(&a, &channel("a"), then.clone(), at(500)).await?, 0);
        assert_eq!(tx.hide_messages(&b, &b, then.clone(), at(500)).await?, 0);
        assert_eq!(tx.hide_messages(&a, &b, at(102)..at(103), at(500)).await?, 0);
        assert_eq!(hidden(tx).await?, []);
        assert_eq!(tx.hide_messages(&a, &b, then.clone(), at(500)).await?, 2);
        assert_eq!(tx.hide_messages(&a, &b, then, at(600)).await?, 2, "again");
        let both = [("b says 1".to_owned(), 500), ("b says 2".to_owned(), 500)];
        assert_eq!(hidden(tx).await?, both, "since the first time");
        assert_eq!(tx.hide_messages(&a, &b, at(100)..Timestamp::LAST, at(700)).await?, 3);
        assert_eq!(hidden(tx).await?.len(), 3);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_has_one_notice_the_last() {
    in_seeded(async move |tx: &mut Tx| {
        const NOTICE: &str =
            "SELECT COUNT(*) FROM chat_notices WHERE channel_id = 'a' AND content = $1 AND created_at = $2";
        async fn is(tx: &mut Tx, text: &str, ms: i64) -> Result<bool, StoreError> {
            let found: i64 = tx.query_one(NOTICE, store::params![text, ms]).await?.get(0)?;
            Ok(found == 1 && number(tx, "SELECT COUNT(*) FROM chat_notices").await? == 1)
        }
        let a = channel("a");
        let text = |text: &str| MessageText::parse(text.to_owned()).unwrap();
        tx.put_notice(&a, &text("첫 공지"), at(1)).await?;
        assert!(is(tx, "첫 공지", 1).await?);
        let seen = say(tx, "a", "b", 5, 1).await?;
        let elsewhere = say(tx, "c", "b", 5, 2).await?;
        let gone = say(tx, "a", "b", 6, 3).await?;
        tx.hide_messages(&a, &channel("b"), at(6)..at(7), at(8)).await?;
        for id in [&elsewhere, &gone, &MessageId::stored("nothing".into())] {
            assert!(!tx.pin_message(&a, id, at(9)).await?, "{id}");
        }
        assert!(is(tx, "첫 공지", 1).await?, "nothing changed");
        assert!(tx.pin_message(&a, &seen, at(10)).await?);
        assert!(is(tx, "b says 1", 10).await?);
        assert!(tx.pin_message(&a, &seen, at(11)).await?);
        assert!(is(tx, "b says 1", 11).await?);
        tx.put_notice(&a, &text("끝"), at(12)).await?;
        assert!(is(tx, "끝", 12).await?);
        assert!(tx.show_message(&a, &gone).await? && !tx.show_message(&a, &elsewhere).await?);
        assert!(tx.pin_message(&a, &gone, at(13)).await?, "it is visible again");
        tx.delete_notice(&a).await?;
        tx.delete_notice(&a).await?;
        assert_eq!(number(tx, "SELECT COUNT(*) FROM chat_notices").await?, 0);
        tx.put_notice(&a, &text("끝"), at(12)).await?;
        assert_eq!(number(tx, "SELECT COUNT(*) FROM chat_notices WHERE message_id IS NULL").await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_needs_an_existing_chat() {
    both(|store| async move {
        let text = MessageText::parse("공지".to_owned()).unwrap();
        let missing: ChannelId = channel("missing");
        let outcome = tx!(store, tx => { tx.put_notice(&missing, &text, at(1)).await });
        assert_eq!(outcome, Err(StoreError::ForeignKey));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_message_is_that_of_one_sender_in_one_chat() {
    in_seeded(async move |tx: &mut Tx| {
        for (of, sender, ms, n) in [("a", "b", 5, 1), ("a", "b", 7, 2), ("a", "c", 9, 3), ("b", "b", 11, 4)] {
            say(tx, of, sender, ms, n).await?;
        }
        let (a, b) = (channel("a"), channel("b"));
        for (from, expected) in [(1, Some(at(7))), (7, Some(at(7))), (8, None)] {
            assert_eq!(tx.last_message(&a, &b, at(from)).await?, expected, "{from}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_chat_has_its_latest_messages_and_its_notice() {
    in_seeded(async move |tx: &mut Tx| {
        let a = channel("a");
        tx.put_manager(&a, &channel("c"), UserRole::StreamingChatManager, at(1)).await?;
        for (of, sender, ms, n) in
            [("a", "b", 5, 1), ("a", "c", 7, 2), ("b", "b", 9, 3), ("a", "gone", 11, 4)]
        {
            say(tx, of, sender, ms, n).await?;
        }
        tx.hide_messages(&a, &channel("b"), at(5)..at(6), at(8)).await?;
        let start = MessageId::bound_at(at(0));
        let log = tx.latest_messages(&a, &start, 10, 10).await?;
        let lines: Vec<_> =
            log.iter().map(|line| (line.content.as_str(), line.message_time, line.role)).collect();
        let manager = Some(UserRole::StreamingChatManager);
        assert_eq!(
            lines,
            [("gone says 4", at(11), None), ("c says 2", at(7), manager), ("b says 1", at(5), None)]
        );
        let names: Vec<_> = log.iter().map(|line| line.sender_name.as_deref()).collect();
        assert_eq!(names, [None, Some("channel c"), Some("channel b")]);
        let hidden: Vec<_> = log.iter().map(|line| line.hidden_at).collect();
        assert_eq!(hidden, [None, None, Some(at(8))]);
        for line in &log {
            assert_eq!(tx.logged_message(&a, &line.message_id).await?.as_ref(), Some(line));
            assert_eq!(tx.logged_message(&channel("b"), &line.message_id).await?, None);
        }
        let count = |found: Vec<store::queries::chat_log::LoggedMessage>| found.len();
        assert_eq!(count(tx.latest_messages(&a, &start, 2, 10).await?), 2);
        assert_eq!(count(tx.latest_messages(&a, &start, 10, 2).await?), 1, "two rows of all chats");
        assert_eq!(count(tx.latest_messages(&a, &MessageId::bound_at(at(7)), 10, 10).await?), 2);
        assert_eq!(count(tx.latest_messages(&channel("c"), &start, 10, 10).await?), 0);

        let ten_minutes = at(10 * 60_000);
        let (recent, _) = tx.recent_messages(&a, &start, 10, ten_minutes).await?;
        assert_eq!(recent, log, "other chats do not count");
        assert_eq!(count(tx.recent_messages(&a, &start, 2, ten_minutes).await?.0), 2);
        assert_eq!(count(tx.recent_messages(&a, &MessageId::bound_at(at(7)), 10, at(11)).await?.0), 2);
        assert_eq!(count(tx.recent_messages(&a, &start, 10, at(60 * 60_000)).await?.0), 0, "too old");

        assert_eq!(tx.notice(&a).await?, None);
        tx.put_notice(&a, &MessageText::parse("공지".to_owned()).unwrap(), at(12)).await?;
        let notice = tx.notice(&a).await?.unwrap();
        assert_eq!((notice.content.as_str(), notice.created_at), ("공지", at(12)));
        assert_eq!(tx.notice(&channel("b")).await?, None);
        Ok(())
    })
    .await;
}

//! Followers, subscribers and roles: their order, their pages and the counts that find them.

use std::collections::BTreeMap;

use domain::channel::{SubscriberSort, UserRole};
use domain::event::SubscriptionEvent;
use store::migrate::MIGRATIONS;
use store::queries::Page;
use store::queries::relations::FollowOutcome;
use store::testing::engines;
use store::{Options, Store, Tx, params};

use crate::{at, both, channel, in_seeded, number, record, tx};

/// Blocks are split when they are fuller than this, by level.
const BLOCK_ITEMS_MAX: [i64; 3] = [128, 4_096, 131_072];

/// Numbers that look random, the same in every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn throw(&mut self, below: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % below
    }
}

fn page(page: i64, size: i64) -> Page {
    Page { size, page }
}

fn subscription(by: &str, month: i64) -> SubscriptionEvent {
    SubscriptionEvent {
        subscriber_channel_id: channel(by),
        subscriber_nickname: by.to_owned(),
        tier_no: 1,
        tier_name: "팬".to_owned(),
        month,
    }
}

/// So many steps in one transaction are done in time on a busy machine too.
const STEPS: usize = 40;

pub async fn put_channels(store: &Store, count: usize) {
    const INSERT: &str = "
        INSERT INTO channels (channel_id, channel_name, verified_mark, real_name_verified, created_at)
        VALUES ($1, $1, FALSE, FALSE, 1)";
    for first in (0..count).step_by(STEPS * 4) {
        let made = tx!(store, tx => {
            for n in first..(first + STEPS * 4).min(count) {
                tx.execute(INSERT, params![id(n)]).await?;
            }
            Ok(())
        });
        made.unwrap();
    }
}

/// Ids that bytes order in another way than languages do.
pub fn id(n: usize) -> String {
    format!("{}{n}", ["f-", "F_", "f.", "G"][n % 4])
}

/// The ids of one page of channel `a`'s followers, or of its subscribers in an order.
async fn ids(store: &Store, sort: Option<SubscriberSort>, page: Page) -> Vec<String> {
    let found: Result<Vec<_>, _> = tx!(store, tx => {
        let a = channel("a");
        Ok(match sort {
            None => tx.followers(&a, page).await?.into_iter().map(|one| one.channel_id).collect(),
            Some(sort) => tx.subscribers(&a, sort, page).await?.into_iter().map(|one| one.channel_id).collect(),
        })
    });
    found.unwrap().iter().map(|id: &domain::ChannelId| id.as_str().to_owned()).collect()
}

/// The ids of a list as they come page by page, until one is empty.
pub async fn walk(store: &Store, sort: Option<SubscriberSort>, size: i64) -> Vec<String> {
    let mut met = Vec::new();
    for number in 0.. {
        let found = ids(store, sort, page(number, size)).await;
        if found.is_empty() {
            break;
        }
        met.extend(found);
    }
    met
}

type Place = (i64, String);

/// Checks that every block counts exactly the rows between its first place and the next block's, that none is
/// too full or left over, and that higher blocks begin where lower ones do.
fn check_blocks(list: &str, rows: &[store::Row], blocks: &[store::Row]) {
    let place = |row: &store::Row| (row.get::<i64>(0).unwrap(), row.get::<String>(1).unwrap());
    let mut rows: Vec<Place> = rows.iter().map(place).collect();
    rows.sort();
    let mut higher: Vec<Place> = Vec::new();
    for level in (1..=3_i64).rev() {
        let found: Vec<_> = blocks.iter().filter(|block| block.get(3) == Ok(level)).collect();
        let mut firsts: Vec<Place> = found.iter().map(|block| place(block)).collect();
        assert!(rows.is_empty() || firsts.first().is_some_and(|first| first.1.is_empty()), "{list} {level}");
        for (index, block) in found.iter().enumerate() {
            let (first, items) = (&firsts[index], block.get::<i64>(2).unwrap());
            let begin = rows.partition_point(|row| row < first);
            let end = firsts.get(index + 1).map_or(rows.len(), |next| rows.partition_point(|row| row < next));
            assert_eq!(items, (end - begin) as i64, "{list} {level} {first:?}");
            assert!(items <= BLOCK_ITEMS_MAX[level as usize - 1], "{list} {level} {first:?} {items}");
            assert!(items > 0 || index == 0 || higher.contains(first), "left over: {list} {level} {first:?}");
        }
        assert!(higher.iter().all(|first| firsts.contains(first)), "{list} {level}");
        higher = std::mem::take(&mut firsts);
    }
}

pub async fn check_lists(store: &Store) {
    const LISTS: [(&str, &str); 3] = [
        ("FOLLOWERS", "SELECT -created_at, follower_channel_id FROM followers WHERE channel_id = 'a'"),
        (
            "SUBSCRIBERS_NEWEST",
            "SELECT -created_at, subscriber_channel_id FROM subscribers WHERE channel_id = 'a'",
        ),
        (
            "SUBSCRIBERS_LONGEST",
            "SELECT -month, subscriber_channel_id FROM subscribers WHERE channel_id = 'a'",
        ),
    ];
    const BLOCKS: &str = "
        SELECT first_rank, first_id, items, level FROM list_blocks WHERE channel_id = 'a' AND list = $1
        ORDER BY first_rank, first_id";
    let mut lengths = Vec::new();
    for (list, rows) in LISTS {
        let found =
            tx!(store, tx => { Ok((tx.query(rows, &[]).await?, tx.query(BLOCKS, params![list]).await?)) });
        let (rows, blocks) = found.unwrap();
        check_blocks(list, &rows, &blocks);
        lengths.push(rows.len() as i64);
    }
    tx!(store, tx => {
        let a = channel("a");
        assert_eq!(number(tx, "SELECT follower_count FROM channels WHERE channel_id = 'a'").await?, lengths[0]);
        assert_eq!(tx.count_followers(&a).await?, lengths[0]);
        assert_eq!(tx.count_subscribers(&a).await?, lengths[1]);
        Ok(())
    })
    .unwrap();
}

/// What the list should be: by number along the list, then by id.
pub fn in_order(model: &BTreeMap<String, i64>) -> Vec<String> {
    let mut places: Vec<_> = model.iter().map(|(id, number)| (-number, id.clone())).collect();
    places.sort();
    places.into_iter().map(|(_, id)| id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_are_listed_newest_first_then_by_id() {
    both(|store| async move {
        put_channels(&store, 700).await;
        let (mut dice, mut model) = (Dice(7), BTreeMap::new());
        for round in 0..60 {
            // More come than go, then more go than come; a few days only, so that many share one.
            let coming = if round < 35 { 8 } else { 2 };
            let mut throw = |_| {
                (dice.throw(10) < coming, dice.throw(3) == 0, id(dice.throw(700) as usize), dice.throw(9))
            };
            let steps: Vec<_> = (0..STEPS).map(&mut throw).collect();
            for (comes, moves, who, day) in &steps {
                if !comes {
                    model.remove(who);
                } else if *moves || !model.contains_key(who) {
                    model.insert(who.clone(), *day);
                }
            }
            let done = tx!(store, tx => {
                let a = channel("a");
                for (comes, moves, who, day) in steps {
                    let who = channel(&who);
                    if !comes {
                        tx.unfollow(&a, &who).await?;
                    } else if tx.follow(&a, &who, at(day)).await? != FollowOutcome::New && moves {
                        assert!(tx.move_follow(&a, &who, at(day)).await?);
                    }
                }
                Ok(())
            });
            done.unwrap();
            if round % 6 == 5 {
                check_lists(&store).await;
                assert_eq!(walk(&store, None, 50).await, in_order(&model));
            }
        }
        let everybody = in_order(&model);
        assert!(everybody.len() > 100, "{}", everybody.len());
        for some in everybody.chunks(STEPS) {
            let some = some.to_vec();
            let done = tx!(store, tx => {
                let a = channel("a");
                for who in some {
                    assert!(tx.unfollow(&a, &channel(&who)).await?);
                    assert!(!tx.unfollow(&a, &channel(&who)).await?);
                    assert!(!tx.move_follow(&a, &channel(&who), at(1)).await?);
                }
                Ok(())
            });
            done.unwrap();
        }
        check_lists(&store).await;
        assert!(ids(&store, None, page(0, 50)).await.is_empty());
        let left = tx!(store, tx => { number(tx, "SELECT COUNT(*) FROM list_blocks").await });
        assert_eq!(left, Ok(3), "nothing is left over");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_follows_of_one_time_are_paged_like_others() {
    both(|store| async move {
        const COUNT: usize = 4_320;
        // Half of them at one moment, the other half one after the other.
        let day = |n: usize| if n.is_multiple_of(2) { 500 } else { n as i64 };
        put_channels(&store, COUNT).await;
        for first in (0..COUNT).step_by(STEPS) {
            let done = tx!(store, tx => {
                for n in first..first + STEPS {
                    tx.follow(&channel("a"), &channel(&id(n)), at(day(n))).await?;
                }
                Ok(())
            });
            done.unwrap();
        }
        check_lists(&store).await;
        let upper =
            tx!(store, tx => { number(tx, "SELECT COUNT(*) FROM list_blocks WHERE level = 2").await });
        assert_eq!(upper, Ok(2), "a block of blocks was split");
        let expected = in_order(&(0..COUNT).map(|n| (id(n), day(n))).collect());
        assert!(walk(&store, None, 50).await == expected);
        for (number, size) in
            [(0, 1), (1, 1), (4_319, 1), (64, 1), (143, 30), (144, 30), (i32::MAX as i64, 50)]
        {
            let found = ids(&store, None, page(number, size)).await;
            let from = (number * size) as usize;
            let slice = expected.get(from..COUNT.min(from + size as usize)).unwrap_or_default();
            assert_eq!(found, slice, "{number} {size}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_have_two_orders_that_follow_every_change() {
    both(|store| async move {
        put_channels(&store, 400).await;
        let (mut dice, mut days, mut months) = (Dice(11), BTreeMap::new(), BTreeMap::new());
        for round in 0..24 {
            let mut throw =
                |_| (dice.throw(4) > 0, id(dice.throw(400) as usize), dice.throw(5), dice.throw(100));
            let steps: Vec<_> = (0..STEPS).map(&mut throw).collect();
            for (comes, who, month, day) in &steps {
                if *comes {
                    days.entry(who.clone()).or_insert(*day);
                    months.insert(who.clone(), *month);
                } else {
                    days.remove(who);
                    months.remove(who);
                }
            }
            let done = tx!(store, tx => {
                let a = channel("a");
                for (comes, who, month, day) in steps {
                    if comes {
                        tx.put_subscriber(&a, &subscription(&who, month), at(day)).await?;
                    } else {
                        tx.delete_subscriber(&a, &channel(&who)).await?;
                        assert!(!tx.delete_subscriber(&a, &channel(&who)).await?);
                    }
                }
                Ok(())
            });
            done.unwrap();
            if round % 6 == 5 {
                check_lists(&store).await;
                assert_eq!(walk(&store, Some(SubscriberSort::Recent), 50).await, in_order(&days));
                assert_eq!(walk(&store, Some(SubscriberSort::Longer), 17).await, in_order(&months));
            }
        }
        assert!(days.len() > 200, "{}", days.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn list_items_have_the_written_values() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b) = (channel("a"), channel("b"));
        tx.follow(&a, &b, at(-5)).await?;
        let follower = tx.followers(&a, page(0, 1)).await?.remove(0);
        assert_eq!(
            (follower.channel_id, follower.name.as_str(), follower.created_at),
            (b.clone(), "channel b", at(-5))
        );
        assert!(tx.followers(&b, page(0, 50)).await?.is_empty());

        let mut paid = subscription("b", 3);
        tx.put_subscriber(&a, &paid, at(9)).await?;
        (paid.tier_no, paid.month) = (2, 4);
        tx.put_subscriber(&a, &paid, at(10)).await?;
        let subscriber = tx.subscribers(&a, SubscriberSort::Longer, page(0, 1)).await?.remove(0);
        assert_eq!((subscriber.channel_id, subscriber.name.as_str()), (b, "channel b"));
        assert_eq!((subscriber.month, subscriber.tier_no, subscriber.created_at), (4, 2, at(9)));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn managers_come_after_the_owner_by_the_day_of_their_first_role() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b, c) = (channel("a"), channel("b"), channel("c"));
        tx.put_channel(&record("A-upper"), at(1)).await?;
        tx.put_manager(&a, &c, UserRole::StreamingChatManager, at(5)).await?;
        tx.put_manager(&a, &b, UserRole::StreamingChatManager, at(5)).await?;
        tx.put_manager(&a, &channel("A-upper"), UserRole::StreamingChannelManager, at(5)).await?;
        tx.put_manager(&a, &c, UserRole::StreamingSettlementManager, at(9)).await?;
        let managers = tx.managers(&a).await?;
        let lines: Vec<_> =
            managers.iter().map(|m| (m.channel_id.as_str(), m.name.as_str(), m.role, m.created_at)).collect();
        assert_eq!(
            lines,
            [
                ("a", "channel a", UserRole::StreamingChannelOwner, at(1)),
                ("A-upper", "channel A-upper", UserRole::StreamingChannelManager, at(5)),
                ("b", "channel b", UserRole::StreamingChatManager, at(5)),
                ("c", "channel c", UserRole::StreamingSettlementManager, at(5)),
            ]
        );
        assert_eq!(tx.managers_after(&a, (at(-9), ""), 9).await?, managers[1..]);
        assert_eq!(tx.managers_after(&a, (at(5), "A-upper"), 1).await?, managers[2..3]);
        assert!(tx.managers_after(&a, (at(5), "c"), 9).await?.is_empty());
        assert_eq!((tx.count_other_managers(&a, &b).await?, tx.count_other_managers(&a, &a).await?), (2, 3));
        assert!(tx.delete_manager(&a, &b).await?);
        assert!(!tx.delete_manager(&a, &b).await?);
        assert_eq!(tx.managers(&a).await?.len(), 3);
        assert!(tx.managers(&channel("missing")).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_finds_the_channels_with_a_role_but_no_barred_ones() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b, c) = (channel("a"), channel("b"), channel("c"));
        for of in [&a, &b] {
            tx.put_manager(of, &c, UserRole::StreamingChatManager, at(5)).await?;
        }
        let managed = tx.managed_channels(&c, "", 9).await?;
        let found: Vec<_> = managed.iter().map(|one| (one.channel_id.as_str(), one.name.as_str())).collect();
        assert_eq!(found, [("a", "channel a"), ("b", "channel b")]);
        assert_eq!((managed[0].role, managed[0].created_at), (UserRole::StreamingChatManager, at(5)));
        assert_eq!(tx.managed_channels(&c, "a", 9).await?, managed[1..]);
        assert_eq!(tx.managed_channels(&c, "", 1).await?, managed[..1]);
        assert_eq!(tx.managed_channel(&c, &a).await?.as_ref(), Some(&managed[0]));
        assert_eq!(tx.managed_channel(&a, &c).await?, None);
        tx.bar_channel(&a, at(6)).await?;
        assert_eq!(tx.managed_channel(&c, &a).await?, None);
        assert_eq!(tx.managed_channels(&c, "", 9).await?, managed[1..]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_calls_of_one_follow_count_once() {
    both(|store| async move {
        let racers: Vec<_> = (0..50)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move {
                    tx!(store, tx => { tx.follow(&channel("a"), &channel("b"), at(n)).await }).unwrap()
                })
            })
            .collect();
        let mut new = 0;
        for racer in racers {
            new += i64::from(racer.await.unwrap() == FollowOutcome::New);
        }
        assert_eq!(new, 1);
        assert_eq!(ids(&store, None, page(0, 50)).await, ["b"]);
        check_lists(&store).await;
    })
    .await;
}

/// Everybody follows and unfollows everybody at once, and subscribes: nothing is counted wrong, and missing
/// waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn counts_match_the_rows_after_concurrent_changes() {
    both(|store| async move {
        let names = ["a", "b", "c"];
        let racers: Vec<_> = (0..240_usize)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move {
                    let (of, who) = (channel(names[n % 3]), channel(names[(n / 3) % 3]));
                    let done = tx!(store, tx => {
                        match n % 7 {
                            0 | 1 => tx.follow(&of, &who, at(n as i64)).await.map(drop),
                            2 | 3 => tx.unfollow(&of, &who).await.map(drop),
                            4 => tx.move_follow(&of, &who, at(-(n as i64))).await.map(drop),
                            5 => tx.put_subscriber(&of, &subscription(who.as_str(), n as i64), at(1)).await,
                            _ => tx.delete_subscriber(&of, &who).await.map(drop),
                        }
                    });
                    done.unwrap();
                })
            })
            .collect();
        for racer in racers {
            racer.await.unwrap();
        }
        tx!(store, tx => {
            assert!(tx.lock_channel(&channel("a")).await?);
            assert!(!tx.lock_channel(&channel("missing")).await?);
            for name in names {
                let followers = tx.followers(&channel(name), page(0, 50)).await?.len() as i64;
                assert_eq!(tx.count_followers(&channel(name)).await?, followers, "{name}");
                assert_eq!(tx.channels_by_id(&[channel(name)]).await?[0].follower_count, followers, "{name}");
            }
            Ok(())
        })
        .unwrap();
        check_lists(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_an_older_database_are_counted_when_it_is_migrated() {
    const CHANNELS: &str = "
        INSERT INTO channels (channel_id, channel_name, verified_mark, real_name_verified, created_at, follower_count)
        VALUES ($1, $1, FALSE, FALSE, 1, $2)";
    const FOLLOWER: &str =
        "INSERT INTO followers (channel_id, follower_channel_id, created_at) VALUES ('a', $1, $2)";
    const SUBSCRIBER: &str = "
        INSERT INTO subscribers (channel_id, subscriber_channel_id, tier_no, tier_name, month, created_at)
        VALUES ('a', $1, 1, 't', $2, $3)";
    for engine in engines().await {
        let old = engine.open(Options { migrations: &MIGRATIONS[..1], ..Options::default() }).await;
        let followers: BTreeMap<_, _> = (0..2_500_usize).map(|n| (id(n), (n % 100) as i64)).collect();
        let months: BTreeMap<_, _> = (0..300_usize).map(|n| (id(n), (n % 5) as i64)).collect();
        tx!(old, tx => { tx.execute(CHANNELS, params!["a", 2_500]).await }).unwrap();
        for first in (0..2_500_usize).step_by(100) {
            tx!(old, tx => {
                for n in first..first + 100 {
                    tx.execute(CHANNELS, params![id(n), 0]).await?;
                    tx.execute(FOLLOWER, params![id(n), n as i64 % 100]).await?;
                    if n < 300 {
                        tx.execute(SUBSCRIBER, params![id(n), n as i64 % 5, n as i64]).await?;
                    }
                }
                Ok(())
            })
            .unwrap();
        }
        old.close().await;

        let store = engine.open(Options::default()).await;
        check_lists(&store).await;
        assert!(walk(&store, None, 50).await == in_order(&followers));
        assert_eq!(walk(&store, Some(SubscriberSort::Longer), 50).await, in_order(&months));
        // And it goes on from there.
        tx!(store, tx => {
            assert!(tx.unfollow(&channel("a"), &channel(&id(3))).await?);
            tx.follow(&channel("a"), &channel("a"), at(50)).await
        })
        .unwrap();
        check_lists(&store).await;
        store.close().await;
        engine.remove().await;
    }
}

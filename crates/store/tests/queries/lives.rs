//! Categories, lives, broadcast settings, stream keys.

use domain::CategoryId;
use domain::live::{Category, CategoryType};
use store::queries::broadcast_settings::BroadcastSetting;
use store::queries::categories::CategoryMark;
use store::queries::lives::{FirstLives, LiveListing, LivePlace, LiveVersions};
use store::{Store, StoreError, Tx};
use tokio::sync::oneshot;

use crate::{at, both, channel, in_seeded, live, number, tx};

fn category(id: &str, value: &str) -> Category {
    Category {
        category_id: CategoryId::stored(id.to_owned()),
        category_type: CategoryType::Game,
        category_value: value.to_owned(),
        poster_image_url: None,
    }
}

/// A write of a category, with the number that it takes.
async fn write(tx: &mut Tx, category: &Category) -> Result<(), StoreError> {
    tx.next_category_version().await?;
    tx.put_category(category).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_category_is_replaced_by_the_next_put_and_numbered_by_it() {
    in_seeded(async move |tx: &mut Tx| {
        let id = CategoryId::stored("game".to_owned());
        assert_eq!(tx.category(&id).await?, None);
        assert_eq!(tx.category_version().await?, 0);
        let first = Category {
            poster_image_url: Some("https://i.example/p.png".to_owned()),
            ..category("game", "first")
        };
        write(tx, &first).await?;
        assert_eq!(tx.category(&id).await?, Some(first));
        let second = Category { category_type: CategoryType::Sports, ..category("game", "둘째") };
        write(tx, &second).await?;
        assert_eq!(tx.category(&id).await?, Some(second));
        assert_eq!(tx.category_version().await?, 2);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn categories_are_read_in_the_order_of_their_last_writes() {
    in_seeded(async move |tx: &mut Tx| {
        let mut mark = CategoryMark { version: -1, category_id: String::new() };
        assert!(tx.categories_after(&mark, 10).await?.is_empty());
        for id in ["c", "a", "b", "c"] {
            write(tx, &category(id, id)).await?;
        }
        let mut read = Vec::new();
        for limit in [2, 2, 2] {
            for (category, after) in tx.categories_after(&mark, limit).await? {
                assert_eq!(after.category_id, category.category_id.as_str());
                read.push((after.category_id.clone(), after.version));
                mark = after;
            }
        }
        assert_eq!(read, [("a", 2), ("b", 3), ("c", 4)].map(|(id, version)| (id.to_owned(), version)));
        // Categories with the same version, as before versions were recorded, are ordered by id.
        tx.execute("UPDATE categories SET version = 9", &[]).await?;
        let mark = CategoryMark { version: 9, category_id: "a".to_owned() };
        let ids: Vec<_> =
            tx.categories_after(&mark, 10).await?.into_iter().map(|row| row.1.category_id).collect();
        assert_eq!(ids, ["b", "c"]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_keeps_its_number_and_its_beginning_through_every_change() {
    in_seeded(async move |tx: &mut Tx| {
        write(tx, &category("game", "게임")).await?;
        assert_eq!(tx.live_on_air(&channel("a")).await?, None);
        let (first, second) = (tx.next_live_version().await?, tx.next_live_version().await?);
        assert!(0 < first && first < second, "{first} {second}");
        assert_eq!((tx.next_live_id().await?, tx.next_live_id().await?), (1, 2));
        let bare = live(2, 7, 2);
        tx.begin_live(&channel("a"), &bare, at(5)).await?;
        assert_eq!(tx.live_on_air(&channel("a")).await?.as_ref(), Some(&bare));

        let mut full = live(2, 8, 3);
        full.show.title = "둘 👋".to_owned();
        full.show.thumbnail_image_url = Some("https://i.example/t.png".to_owned());
        full.show.adult = true;
        full.show.category_id = Some(CategoryId::stored("game".to_owned()));
        full.show.tags = vec!["태그".to_owned(), "tag2".to_owned()];
        tx.change_live(&channel("a"), &full).await?;
        assert_eq!(tx.live_on_air(&channel("a")).await?.as_ref(), Some(&full));
        let first = tx.first_lives(5).await?;
        let last = first.versions.expect("a list with a live").to_string();
        assert!(last.split(',').any(|number| number == second.to_string()), "{last}");
        let listed = &first.lives[0];
        assert_eq!((listed.live_id, listed.opened_at), (2, at(5)));
        assert_eq!(listed.category, Some(category("game", "게임")));
        assert_eq!((&listed.title, &listed.tags, listed.adult), (&full.show.title, &full.show.tags, true));
        assert_eq!((&listed.channel_id, listed.channel_name.as_str()), (&channel("a"), "channel a"));

        tx.change_live_details(&channel("a"), "셋", None, &[]).await?;
        tx.change_live_details(&channel("b"), "not on air", None, &[]).await?;
        let dressed = tx.live_on_air(&channel("a")).await?.unwrap();
        assert_eq!((dressed.show.title.as_str(), dressed.show.category_id), ("셋", None));
        assert!(dressed.show.tags.is_empty() && dressed.show.adult);
        assert_eq!((dressed.show.concurrent_user_count, dressed.counted_since), (8, 3));

        assert!(!tx.end_live(&channel("b")).await?);
        assert!(tx.end_live(&channel("a")).await?);
        assert!(!tx.end_live(&channel("a")).await?);
        assert!(tx.first_lives(5).await?.lives.is_empty());
        Ok(())
    })
    .await;
}

/// Gives a channel's live another viewer count, as the service does.
async fn count(tx: &mut Tx, of: &str, live_id: i64, viewers: i64) -> Result<(), StoreError> {
    let version = tx.next_live_version().await?;
    match tx.live_on_air(&channel(of)).await? {
        None => tx.begin_live(&channel(of), &live(live_id, viewers, version), at(1)).await?,
        Some(before) => {
            tx.close_live_span(live_id, before.counted_since, version, at(9)).await?;
            tx.change_live(&channel(of), &live(live_id, viewers, version)).await?;
        }
    }
    tx.open_live_span(live_id, viewers, version).await
}

fn items(lives: &[LiveListing]) -> Vec<(i64, i64)> {
    lives.iter().map(|live| (live.live_id, live.concurrent_user_count)).collect()
}

fn place(versions: &LiveVersions, of: &LiveListing) -> LivePlace {
    LivePlace {
        versions: versions.clone(),
        concurrent_user_count: of.concurrent_user_count,
        live_id: of.live_id,
    }
}

/// The place of the first live of a page.
fn begin_walk(first: &FirstLives) -> LivePlace {
    place(first.versions.as_ref().expect("a list with a live"), &first.lives[0])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_a_list_have_the_order_of_the_first_page() {
    in_seeded(async move |tx: &mut Tx| {
        for (of, id, viewers) in [("a", 1, 5), ("b", 2, 9), ("c", 3, 5)] {
            count(tx, of, id, viewers).await?;
        }
        assert_eq!(items(&tx.first_lives(3).await?.lives), [(2, 9), (1, 5), (3, 5)]);
        let start = begin_walk(&tx.first_lives(1).await?);
        // Everything moves, twice, and one live comes and goes.
        for viewers in [0, 100] {
            for (of, id) in [("a", 1), ("b", 2), ("c", 3)] {
                count(tx, of, id, viewers + id).await?;
            }
        }
        tx.put_channel(&crate::record("d"), at(1)).await?;
        count(tx, "d", 4, 7).await?;
        assert_eq!(items(&tx.first_lives(9).await?.lives), [(3, 103), (2, 102), (1, 101), (4, 7)]);
        assert_eq!(items(&tx.next_lives(&start, 9).await?), [(1, 5), (3, 5)]);
        let second = tx.next_lives(&start, 1).await?;
        assert_eq!(items(&second), [(1, 5)]);
        assert_eq!(items(&tx.next_lives(&place(&start.versions, &second[0]), 9).await?), [(3, 5)]);
        tx.end_live(&channel("a")).await?;
        assert_eq!(items(&tx.next_lives(&start, 1).await?), [(3, 5)], "an ended live takes no room");
        assert_eq!(number(tx, "SELECT COUNT(*) FROM live_spans WHERE live_id = 1").await?, 0);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_is_empty_until_it_is_changed() {
    in_seeded(async move |tx: &mut Tx| {
        assert_eq!(tx.broadcast_setting(&channel("missing")).await?, None);
        let empty = BroadcastSetting {
            channel_name: "channel a".to_owned(),
            default_live_title: String::new(),
            category: None,
            tags: Vec::new(),
        };
        assert_eq!(tx.broadcast_setting(&channel("a")).await?.as_ref(), Some(&empty));
        tx.lock_broadcast_setting(&channel("a")).await?;
        assert_eq!(tx.broadcast_setting(&channel("a")).await?.as_ref(), Some(&empty));
        write(tx, &category("game", "게임")).await?;
        let set = BroadcastSetting {
            default_live_title: "제목".to_owned(),
            category: Some(category("game", "게임")),
            tags: vec!["하나".to_owned(), "둘".to_owned()],
            ..empty
        };
        tx.change_broadcast_setting(&channel("a"), &set).await?;
        tx.lock_broadcast_setting(&channel("a")).await?;
        assert_eq!(tx.broadcast_setting(&channel("a")).await?, Some(set));
        assert_eq!(tx.broadcast_setting(&channel("b")).await?.unwrap().default_live_title, "");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_stream_key_stays_until_it_is_replaced() {
    in_seeded(async move |tx: &mut Tx| {
        assert_eq!(tx.stream_key(&channel("a")).await?, None);
        tx.make_stream_key(&channel("a"), "one", at(1)).await?;
        tx.make_stream_key(&channel("a"), "two", at(2)).await?;
        assert_eq!(tx.stream_key(&channel("a")).await?.as_deref(), Some("one"));
        tx.replace_stream_key(&channel("a"), "three", at(3)).await?;
        tx.replace_stream_key(&channel("b"), "four", at(3)).await?;
        assert_eq!(tx.stream_key(&channel("a")).await?.as_deref(), Some("three"));
        assert_eq!(tx.stream_key(&channel("b")).await?.as_deref(), Some("four"));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_of_an_unknown_channel_or_category_is_a_foreign_key_error() {
    both(|store| async move {
        let mut lost = live(1, 0, 0);
        lost.show.category_id = Some(CategoryId::stored("none".to_owned()));
        let outcomes = [
            tx!(store, tx => { tx.begin_live(&channel("missing"), &live(1, 0, 0), at(1)).await }),
            tx!(store, tx => { tx.begin_live(&channel("a"), &lost, at(1)).await }),
            tx!(store, tx => { tx.open_live_span(77, 0, 0).await }),
            tx!(store, tx => { tx.lock_broadcast_setting(&channel("missing")).await }),
            tx!(store, tx => { tx.make_stream_key(&channel("missing"), "k", at(1)).await }),
            tx!(store, tx => { tx.replace_stream_key(&channel("missing"), "k", at(1)).await }),
        ];
        for (index, outcome) in outcomes.into_iter().enumerate() {
            assert_eq!(outcome, Err(StoreError::ForeignKey), "{index}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_walk_sees_what_its_first_page_saw_while_counts_change_at_once() {
    const LIVES: i64 = 12;
    const WRITERS: i64 = 6;
    both(|store| async move {
        begin_lives(&store, LIVES).await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for n in 0..40 {
                        // Two lives in one transaction, none of which another writer has.
                        let ids = [writer * 2 + 1, writer * 2 + 2];
                        let viewers = (n * 7_919 + writer * 31) % 50;
                        tx!(store, tx => {
                            for id in ids {
                                count(tx, &format!("live-{id}"), id, viewers + id).await?;
                            }
                            Ok(())
                        })
                        .unwrap();
                    }
                })
            })
            .collect();
        let (mut walks, mut seen) = (0, std::collections::BTreeSet::new());
        while walks < 20 || !writers.iter().all(|writer| writer.is_finished()) {
            let first = tx!(store, tx => { tx.first_lives(LIVES).await }).unwrap();
            let (start, whole) = (begin_walk(&first), items(&first.lives));
            let rest = tx!(store, tx => { tx.next_lives(&start, LIVES).await }).unwrap();
            assert_eq!(items(&rest), whole[1..]);
            seen.insert(whole);
            walks += 1;
        }
        assert!(seen.len() > 3, "the walks began between changes");
        for writer in writers {
            writer.await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_waits_for_no_other_live_and_is_not_in_a_walk_that_began_before_its_commit() {
    // SQLite has one writer.
    let postgres = store::testing::postgres().await;
    let store = postgres.open(store::Options::default()).await;
    begin_lives(&store, 3).await;
    // The change of live 1 has its number, and is committed when the test sends `go_on`.
    let ((numbered, has_number), (go_on, may_commit)) = (oneshot::channel(), oneshot::channel::<()>());
    let slow = {
        let store = store.clone();
        tokio::spawn(async move {
            tx!(store, tx => {
                count(tx, "live-1", 1, 90).await?;
                numbered.send(()).expect("the test waits");
                may_commit.await.expect("the test goes on");
                Ok(())
            })
        })
    };
    has_number.await.unwrap();
    for n in 0..100 {
        tx!(store, tx => { count(tx, "live-2", 2, 50 + n % 2).await }).unwrap();
    }
    let first = tx!(store, tx => { tx.first_lives(3).await }).unwrap();
    assert_eq!(items(&first.lives), [(2, 51), (3, 3), (1, 1)]);
    go_on.send(()).unwrap();
    slow.await.unwrap().unwrap();
    let rest = tx!(store, tx => { tx.next_lives(&begin_walk(&first), 3).await }).unwrap();
    assert_eq!(items(&rest), [(3, 3), (1, 1)], "the walk keeps its order");
    let now = tx!(store, tx => { tx.first_lives(3).await }).unwrap();
    assert_eq!(items(&now.lives), [(1, 90), (2, 51), (3, 3)]);
    store.close().await;
    postgres.remove().await;
}

/// Begins lives `1` to `count`, each with as many viewers as its number.
async fn begin_lives(store: &Store, lives: i64) {
    tx!(store, tx => {
        for id in 1..=lives {
            let channel = format!("live-{id}");
            tx.put_channel(&crate::record(&channel), at(1)).await?;
            count(tx, &channel, id, id).await?;
        }
        Ok(())
    })
    .unwrap();
}

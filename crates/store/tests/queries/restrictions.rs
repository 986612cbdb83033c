//! Restricted channels.

use domain::Timestamp;
use store::queries::restrictions::RestrictedPlace;
use store::{StoreError, Tx};

use crate::{at, both, channel, in_seeded, record, tx};

#[tokio::test(flavor = "multi_thread")]
async fn a_restriction_begins_once_and_ends_once() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b, c) = (channel("a"), channel("b"), channel("c"));
        assert!(!tx.release(&a, &b).await?);
        assert!(tx.restrict(&a, &b, at(1)).await?);
        assert!(!tx.restrict(&a, &b, at(2)).await?);
        assert!(tx.restrict(&b, &a, at(2)).await? && tx.restrict(&a, &c, at(2)).await?);
        assert!(tx.release(&a, &b).await?);
        assert!(!tx.release(&a, &b).await?);
        assert!(tx.restrict(&a, &b, at(3)).await?, "and again");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_a_restriction_exist() {
    both(|store| async move {
        for (of, who) in [("a", "missing"), ("missing", "a")] {
            let outcome = tx!(store, tx => { tx.restrict(&channel(of), &channel(who), at(1)).await });
            assert_eq!(outcome, Err(StoreError::ForeignKey));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_restriction_is_over_on_time_and_can_begin_again() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b) = (channel("a"), channel("b"));
        assert!(!tx.release_temporarily(&a, &b, at(0)).await?);
        assert!(tx.restrict_temporarily(&a, &b, at(100), at(40)).await?);
        assert!(!tx.restrict_temporarily(&a, &b, at(159), at(99)).await?);
        assert!(tx.restrict_temporarily(&b, &a, at(159), at(99)).await?, "the other way round");
        assert!(!tx.release_temporarily(&a, &b, at(100)).await?, "it is over");
        assert!(tx.restrict_temporarily(&a, &b, at(160), at(100)).await?, "it is over");
        assert!(tx.release_temporarily(&a, &b, at(159)).await?);
        assert!(!tx.release_temporarily(&a, &b, at(159)).await?);
        assert!(tx.restrict_temporarily(&a, &b, at(219), at(159)).await?);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_restrictions_are_listed_while_they_run() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b, c) = (channel("a"), channel("b"), channel("c"));
        tx.restrict_temporarily(&a, &b, at(100), at(40)).await?;
        tx.restrict_temporarily(&a, &c, at(120), at(60)).await?;
        tx.restrict_temporarily(&b, &c, at(130), at(70)).await?;
        let found = tx.temporarily_restricted(&a, at(99), 10).await?;
        let lines: Vec<_> = found.iter().map(|line| (line.channel_id.as_str(), line.ends_at)).collect();
        assert_eq!(
            (lines, found[0].channel_name.as_str()),
            (vec![("c", at(120)), ("b", at(100))], "channel c")
        );
        assert_eq!(tx.temporarily_restricted(&a, at(100), 10).await?.len(), 1, "one is over");
        assert_eq!(tx.temporarily_restricted(&a, at(99), 1).await?.len(), 1);
        assert!(tx.temporarily_restricted(&c, at(0), 10).await?.is_empty());
        Ok(())
    })
    .await;
}

/// One of four ways to change the same row.
async fn attempt(tx: &mut Tx, which: usize, now: Timestamp) -> Result<bool, StoreError> {
    let (a, b) = (channel("a"), channel("b"));
    match which {
        0 => tx.restrict(&a, &b, now).await,
        1 => tx.release(&a, &b).await,
        2 => tx.restrict_temporarily(&a, &b, now.plus_ms(60), now).await,
        _ => tx.release_temporarily(&a, &b, now).await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_100_concurrent_calls_restricts_and_one_releases() {
    both(|store| async move {
        // The third temporary restriction replaces one that is over.
        for (which, now) in [(0, 1), (1, 1), (0, 2), (2, 1), (3, 1), (2, 2), (2, 62)] {
            let tasks: Vec<_> = (0..100)
                .map(|_| {
                    let store = store.clone();
                    tokio::spawn(async move { tx!(store, tx => { attempt(tx, which, at(now)).await }) })
                })
                .collect();
            let mut won = 0;
            for task in tasks {
                won += usize::from(task.await.unwrap().unwrap());
            }
            assert_eq!(won, 1, "{which} at {now}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_newest_first_and_continues_after_a_position() {
    in_seeded(async move |tx: &mut Tx| {
        let a = channel("a");
        for (name, ms) in [("d", 7), ("e", 9), ("f", 7), ("g", 8), ("h", 7)] {
            tx.put_channel(&record(name), at(1)).await?;
            tx.restrict(&a, &channel(name), at(ms)).await?;
        }
        tx.restrict(&channel("b"), &channel("c"), at(8)).await?;
        let all = tx.restricted_channels(&a, &RestrictedPlace::start(), 30).await?;
        let lines: Vec<_> = all.iter().map(|r| (r.channel_id.as_str(), r.created_at)).collect();
        assert_eq!(lines, [("e", at(9)), ("g", at(8)), ("h", at(7)), ("f", at(7)), ("d", at(7))]);
        assert_eq!(all[0].channel_name, "channel e");
        for size in 1..=5 {
            let (mut behind, mut walked) = (RestrictedPlace::start(), Vec::new());
            loop {
                let page = tx.restricted_channels(&a, &behind, size).await?;
                let Some(last) = page.last() else { break };
                behind = RestrictedPlace { created_at: last.created_at, channel_id: last.channel_id.clone() };
                walked.extend(page);
            }
            assert_eq!(walked, all, "in pages of {size}");
        }
        assert!(tx.restricted_channels(&channel("c"), &RestrictedPlace::start(), 30).await?.is_empty());
        Ok(())
    })
    .await;
}

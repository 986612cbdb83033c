//! The browsers in which a person is signed in.

use domain::BrowserSessionId;
use domain::Timestamp;
use store::Tx;
use store::queries::browser_sessions::BrowserUse;

use crate::{at, both, channel, hash, in_seeded, tx};

fn used(user_agent: &str) -> BrowserUse {
    BrowserUse { user_agent: user_agent.to_owned(), address: "203.0.113.7".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_are_listed_by_their_sign_in_and_deleted_by_their_person_alone() {
    in_seeded(async move |tx: &mut Tx| {
        for (token, person, end) in [("1", "a", 100), ("2", "a", 300), ("3", "a", 200), ("4", "b", 400)] {
            tx.insert_browser_session(&hash(token), &channel(person), at(end)).await?;
        }
        let first = (Timestamp::LAST, "");
        let ends = |found: &[store::queries::browser_sessions::BrowserSession]| {
            found.iter().map(|session| session.expires_at.as_millis()).collect::<Vec<_>>()
        };
        let all = tx.browser_sessions(&channel("a"), at(99), first, 10).await?;
        assert_eq!(ends(&all), [300, 200, 100]);
        assert_eq!(all[0].session_id, BrowserSessionId::of(&hash("2")));
        let later = tx.browser_sessions(&channel("a"), at(100), first, 1).await?;
        assert_eq!(ends(&later), [300], "up to one");
        let place = (later[0].expires_at, later[0].session_id.as_str());
        assert_eq!(ends(&tx.browser_sessions(&channel("a"), at(100), place, 10).await?), [200]);

        assert!(!tx.delete_browser_session_of(&channel("b"), &all[0].session_id).await?);
        assert!(tx.delete_browser_session_of(&channel("a"), &all[0].session_id).await?);
        assert!(tx.browser_session(&hash("2"), at(1)).await?.is_none());
        assert!(tx.browser_session(&hash("4"), at(1)).await?.is_some());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_use_is_recorded_after_the_one_before() {
    in_seeded(async move |tx: &mut Tx| {
        tx.insert_browser_session(&hash("t"), &channel("a"), at(1_000)).await?;
        assert!(tx.record_browser_use(&hash("t"), &used("one"), at(50), at(10)).await?);
        assert!(!tx.record_browser_use(&hash("t"), &used("two"), at(60), at(49)).await?);
        assert!(!tx.record_browser_use(&hash("unknown"), &used("two"), at(60), at(60)).await?);
        let found = tx.browser_sessions(&channel("a"), at(1), (Timestamp::LAST, ""), 1).await?.remove(0);
        assert_eq!((found.last_used_at, found.user_agent.as_str()), (at(50), "one"));
        assert!(tx.record_browser_use(&hash("t"), &used("two"), at(60), at(50)).await?);
        assert_eq!(tx.browser_session(&hash("t"), at(1)).await?.unwrap().last_used_at, at(60));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_concurrent_uses_is_recorded_and_one_of_many_endings_ends() {
    both(|store| async move {
        tx!(store, tx => { tx.insert_browser_session(&hash("t"), &channel("a"), at(1_000)).await }).unwrap();
        for ends in [false, true] {
            let tasks: Vec<_> = (0..50)
                .map(|_| {
                    let store = store.clone();
                    tokio::spawn(async move {
                        tx!(store, tx => {
                            match ends {
                                false => tx.record_browser_use(&hash("t"), &used("x"), at(90), at(30)).await,
                                true => {
                                    let id = BrowserSessionId::of(&hash("t"));
                                    tx.delete_browser_session_of(&channel("a"), &id).await
                                }
                            }
                        })
                    })
                })
                .collect();
            let mut won = 0;
            for task in tasks {
                won += usize::from(task.await.unwrap().unwrap());
            }
            assert_eq!(won, 1, "{ends}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_confirmed_by_its_sign_in_or_later() {
    in_seeded(async move |tx: &mut Tx| {
        let (one, two, a, b) = (hash("one"), hash("two"), channel("a"), channel("b"));
        tx.insert_browser_session(&one, &a, at(1_000)).await?;
        let is_at = async |tx: &mut Tx, token, channel, since, ends_after, now| {
            tx.is_browser_confirmed(token, channel, (at(since), at(ends_after)), at(now)).await
        };
        assert!(is_at(tx, &one, &a, 50, 999, 60).await?, "it has just signed in");
        assert!(!is_at(tx, &one, &a, 50, 1_000, 60).await?);
        assert!(!tx.confirm_browser(&one, &b, at(55), &two).await?);
        assert!(!tx.confirm_browser(&one, &a, at(1_000), &two).await?, "the sign-in has ended");
        assert!(tx.confirm_browser(&one, &a, at(55), &two).await?);
        assert!(!is_at(tx, &one, &a, 54, 1_000, 60).await?, "a copy of the former token");
        assert!(is_at(tx, &two, &a, 54, 1_000, 60).await? && !is_at(tx, &two, &a, 55, 1_000, 60).await?);
        assert!(!is_at(tx, &two, &b, 54, 999, 60).await? && !is_at(tx, &two, &a, 54, 999, 1_000).await?);
        let listed = tx.browser_sessions(&a, at(60), (at(9_999), ""), 9).await?;
        assert_eq!(listed[0].session_id, BrowserSessionId::of(&two), "its page knows it as this browser");
        assert!(!tx.renew_browser(&two, &b, &one).await? && tx.renew_browser(&two, &a, &one).await?);
        assert!(is_at(tx, &one, &a, 54, 1_000, 60).await? && !is_at(tx, &two, &a, 54, 1_000, 60).await?);
        Ok(())
    })
    .await;
}

//! The conditions of campaigns, and the minutes that viewers have watched.

use domain::drops::{Campaign, ClaimRefusal, Period, Reward};
use domain::{CampaignId, CategoryId, ChannelId};
use store::queries::drops::ClaimObstacle;
use store::queries::watching::{Watchable, Watched};
use store::{StoreError, Tx};

use crate::drops::{campaign, claim_id, new, plant, reward};
use crate::{at, both, channel, in_seeded, live, record, tx};

fn id(campaign: &str) -> CampaignId {
    CampaignId::stored(campaign.to_owned())
}

/// Puts a campaign of ours as `change` makes it.
async fn put(tx: &mut Tx, name: &str, change: impl FnOnce(&mut Campaign)) -> Result<(), StoreError> {
    let mut campaign = campaign(name, "ours", "sea");
    change(&mut campaign);
    assert_eq!(tx.put_campaign(&campaign).await?, None);
    tx.delete_campaign_channels(&campaign.campaign_id).await?;
    for channel in campaign.channels.iter().flatten() {
        assert!(tx.put_campaign_channel(&campaign.campaign_id, channel).await?);
    }
    for reward in &campaign.rewards {
        tx.put_reward(&campaign.campaign_id, reward).await?;
    }
    Ok(())
}

/// Puts a channel on air with a category.
async fn air(tx: &mut Tx, who: &str, live_id: i64, category: Option<&str>) -> Result<(), StoreError> {
    let mut live = live(live_id, 0, 0);
    live.show.category_id = category.map(|id| CategoryId::stored(id.to_owned()));
    tx.begin_live(&channel(who), &live, at(1)).await
}

fn watched(campaign: &str, viewer: &str, minutes: i64) -> Watched {
    Watched { campaign_id: id(campaign), viewer: channel(viewer), minutes }
}

async fn accrued(tx: &mut Tx, of: &str, viewers: &[&str], now: i64) -> Result<Vec<Watched>, StoreError> {
    let viewers: Vec<ChannelId> = viewers.iter().map(|id| channel(id)).collect();
    let mut accrued = tx.accrue(&channel(of), &viewers, 10, at(now)).await?;
    accrued.sort();
    Ok(accrued)
}

fn period(start: Option<i64>, end: Option<i64>) -> Period {
    Period { start: start.map(at), end: end.map(at) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_is_found_as_it_was_put_last() {
    in_seeded(async move |tx: &mut Tx| {
        plant(tx).await?;
        assert!(tx.campaign(&id("none")).await?.is_none());
        let all = tx.campaign(&id("ours-sea")).await?.unwrap();
        assert_eq!((all.name.as_str(), all.organization_id.as_str()), ("campaign ours-sea", "ours"));
        assert_eq!((all.period, all.channels), (Period::default(), None));
        put(tx, "ours-sea", |campaign| {
            campaign.period = period(Some(5), Some(9));
            campaign.channels = Some(vec![channel("b"), channel("a")]);
            campaign.rewards = vec![
                Reward { watch_minutes: 30, ..reward("sword") },
                Reward { watch_minutes: 10, ..reward("crown") },
            ];
        })
        .await?;
        let found = tx.campaign(&id("ours-sea")).await?.unwrap();
        assert_eq!((found.period, found.channels), (period(Some(5), Some(9)), Some(Vec::new())));
        assert_eq!(tx.campaign_channels(&id("ours-sea")).await?, [channel("a"), channel("b")]);
        assert!(!tx.put_campaign_channel(&id("ours-sea"), &channel("missing")).await?);
        let rewards = tx.reward_progress(&id("ours-sea"), None).await?;
        let rewards: Vec<_> =
            rewards.iter().map(|r| (r.reward.reward_id.as_str(), r.reward.watch_minutes)).collect();
        assert_eq!(rewards, [("crown", 10), ("sword", 30)], "shield is left out");
        put(tx, "ours-sea", |_| {}).await?;
        assert!(tx.campaign_channels(&id("ours-sea")).await?.is_empty());
        assert_eq!(tx.campaign(&id("ours-sea")).await?.unwrap().period, Period::default());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn minutes_count_where_category_dates_and_channel_allow_it() {
    in_seeded(async move |tx: &mut Tx| {
        plant(tx).await?;
        put(tx, "early", |campaign| campaign.period = period(None, Some(20))).await?;
        put(tx, "late", |campaign| campaign.period = period(Some(20), None)).await?;
        put(tx, "of-a", |campaign| campaign.channels = Some(vec![channel("a")])).await?;
        put(tx, "of-c", |campaign| campaign.channels = Some(vec![channel("c")])).await?;
        assert_eq!(accrued(tx, "a", &["b"], 10).await?, [], "off air");
        air(tx, "a", 1, Some("sea")).await?;
        air(tx, "c", 2, None).await?;
        assert_eq!(accrued(tx, "c", &["b"], 10).await?, [], "without a category");
        let always = ["of-a", "ours-sea", "theirs-sea"];
        for (now, first, of_first, minutes) in
            [(19, "early", 10, 10), (20, "late", 10, 20), (21, "late", 20, 30)]
        {
            let expected: Vec<_> = [watched(first, "b", of_first)]
                .into_iter()
                .chain(always.map(|campaign| watched(campaign, "b", minutes)))
                .collect();
            assert_eq!(accrued(tx, "a", &["b"], now).await?, expected, "at {now}");
        }
        let both = accrued(tx, "a", &["c", "missing", "b"], 30).await?;
        assert_eq!(both[2..4], [watched("of-a", "b", 40), watched("of-a", "c", 10)]);
        assert_eq!(both.len(), 8);
        assert_eq!(tx.accrue(&channel("a"), &[], 1, at(30)).await?, []);
        for (campaign, viewer, minutes) in [
            ("of-a", "b", Some(40)),
            ("of-a", "a", Some(0)),
            ("of-c", "b", Some(0)),
            ("of-a", "missing", None),
            ("none", "b", None),
        ] {
            assert_eq!(tx.watched_minutes(&id(campaign), &channel(viewer)).await?, minutes, "{campaign}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_claimable_reward_is_in_a_running_campaign_and_not_claimed() {
    in_seeded(async move |tx: &mut Tx| {
        plant(tx).await?;
        assert!(tx.first_claimable(&channel("a"), at(5)).await?.is_some());
        for name in ["ours-sea", "ours-sky", "theirs-sea", "theirs-sky"] {
            put(tx, name, |campaign| campaign.period = period(None, Some(5))).await?;
        }
        assert_eq!(tx.first_claimable(&channel("a"), at(5)).await?, None, "all are over");
        put(tx, "of-a", |campaign| {
            campaign.rewards = vec![
                Reward { watch_minutes: 10, ..reward("crown") },
                Reward { watch_minutes: 0, ..reward("sword") },
            ];
        })
        .await?;
        let found = tx.first_claimable(&channel("a"), at(5)).await?.expect("a reward");
        assert_eq!((found.0.as_str(), found.1.as_str()), ("of-a", "sword"));
        assert_eq!(tx.insert_claim(&new("1", "of-a", "sword", "a"), at(5)).await?, None);
        assert_eq!(tx.first_claimable(&channel("a"), at(5)).await?, None, "the other one needs minutes");
        assert!(tx.first_claimable(&channel("b"), at(5)).await?.is_some());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watchable_channel_has_its_live_and_the_number_of_existing_viewers() {
    in_seeded(async move |tx: &mut Tx| {
        plant(tx).await?;
        air(tx, "a", 1, Some("sea")).await?;
        air(tx, "b", 2, None).await?;
        let viewers = ["a", "c", "missing"].map(channel);
        let sea = Some(CategoryId::stored("sea".to_owned()));
        for (of, on_air, category_id) in [("a", true, sea), ("b", true, None), ("c", false, None)] {
            let found = tx.watchable(&channel(of), &viewers).await?;
            assert_eq!(found, Some(Watchable { viewers: 2, on_air, category_id }), "{of}");
        }
        assert_eq!(tx.watchable(&channel("missing"), &viewers).await?, None);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_waits_for_the_start_and_the_minutes_and_comes_before_the_end() {
    in_seeded(async move |tx: &mut Tx| {
        plant(tx).await?;
        put(tx, "ours-sea", |campaign| {
            campaign.period = period(Some(5), Some(9));
            campaign.rewards = vec![Reward { watch_minutes: 20, ..reward("sword") }];
        })
        .await?;
        let claim = new("1", "ours-sea", "sword", "b");
        let refused = |refusal| Some(ClaimObstacle::Terms(refusal));
        let unwatched = |left_minutes| refused(ClaimRefusal::Unwatched { left_minutes });
        air(tx, "a", 1, Some("sea")).await?;
        let early = refused(ClaimRefusal::NotBegun { start: at(5) });
        assert_eq!(tx.insert_claim(&claim, at(4)).await?, early);
        assert_eq!(tx.insert_claim(&claim, at(5)).await?, unwatched(20));
        accrued(tx, "a", &["b"], 6).await?;
        assert_eq!(tx.insert_claim(&claim, at(6)).await?, unwatched(10));
        accrued(tx, "a", &["b"], 6).await?;
        let over = refused(ClaimRefusal::Over { end: at(9) });
        assert_eq!(tx.insert_claim(&claim, at(9)).await?, over);
        assert_eq!(tx.insert_claim(&claim, at(8)).await?, None);
        let progress = tx.reward_progress(&id("ours-sea"), Some(&channel("b"))).await?;
        assert_eq!(progress[0].claim_id, Some(claim_id("1")));
        assert_eq!(tx.reward_progress(&id("ours-sea"), Some(&channel("c"))).await?[0].claim_id, None);
        let again = new("2", "ours-sea", "sword", "b");
        assert_eq!(tx.insert_claim(&again, at(9)).await?, Some(ClaimObstacle::Claimed), "though it is over");
        let other = new("2", "ours-sea", "sword", "c");
        assert_eq!(tx.insert_claim(&other, at(8)).await?, unwatched(20));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_reports_are_all_counted_without_a_deadlock() {
    both(|store| async move {
        tx!(store, tx => {
            plant(tx).await?;
            for n in 0..20 {
                tx.put_channel(&record(&format!("viewer-{n}")), at(1)).await?;
            }
            for (n, of) in [(1, "a"), (2, "b")] {
                air(tx, of, n, Some("sea")).await?;
            }
            Ok(())
        })
        .unwrap();
        let racing: Vec<_> = (0..60)
            .map(|n: usize| {
                let store = store.clone();
                let of = channel(["a", "b"][n % 2]);
                // The same viewers, in another order each time.
                let mut viewers: Vec<_> = (0..20).map(|n| channel(&format!("viewer-{n}"))).collect();
                viewers.rotate_left(n % 20);
                tokio::spawn(async move { tx!(store, tx => { tx.accrue(&of, &viewers, 3, at(5)).await }) })
            })
            .collect();
        for task in racing {
            assert_eq!(task.await.unwrap().unwrap().len(), 40, "20 viewers, 2 campaigns");
        }
        for n in 0..20 {
            let viewer = channel(&format!("viewer-{n}"));
            let minutes = tx!(store, tx => { tx.watched_minutes(&id("theirs-sea"), &viewer).await });
            assert_eq!(minutes, Ok(Some(180)));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_claim_is_made_during_concurrent_reports_and_changes_of_the_campaign() {
    both(|store| async move {
        tx!(store, tx => {
            plant(tx).await?;
            air(tx, "a", 1, Some("sea")).await
        })
        .unwrap();
        let racing: Vec<_> = (0..60)
            .map(|n: i64| {
                let store = store.clone();
                tokio::spawn(async move {
                    tx!(store, tx => {
                        match n % 3 {
                            0 => put(tx, "ours-sea", |campaign| {
                                campaign.period = period(Some(n % 2), None);
                                campaign.rewards = vec![Reward { watch_minutes: n, ..reward("sword") }];
                            })
                            .await
                            .map(|()| false),
                            1 => accrued(tx, "a", &["b"], 5).await.map(|_| false),
                            _ => {
                                let claim = new(&n.to_string(), "ours-sea", "sword", "b");
                                Ok(tx.insert_claim(&claim, at(5)).await?.is_none())
                            }
                        }
                    })
                })
            })
            .collect();
        let mut made = 0;
        for task in racing {
            made += i32::from(task.await.unwrap().unwrap());
        }
        let claim = new("last", "ours-sea", "sword", "b");
        let last = tx!(store, tx => {
            put(tx, "ours-sea", |campaign| campaign.rewards = vec![reward("sword")]).await?;
            tx.insert_claim(&claim, at(5)).await
        });
        match made {
            0 => assert_eq!(last, Ok(None)),
            1 => assert_eq!(last, Ok(Some(ClaimObstacle::Claimed))),
            _ => panic!("{made} claims were made"),
        }
    })
    .await;
}

//! Campaigns, rewards and claims.

use domain::drops::{Campaign, FulfillmentState, Period, Reward, RewardClaim};
use domain::limits::CLAIM_UPDATE_IDS_MAX;
use domain::live::{Category, CategoryType};
use domain::{CampaignId, CategoryId, ClaimId, OrganizationId, RewardId};
use store::queries::drops::{
    CampaignObstacle, ClaimFilter, ClaimObstacle, ClaimPosition, ClaimScope, NewClaim,
};
use store::{Store, StoreError, Tx, params};

use crate::{at, both, channel, client, in_seeded, number, organization, record, tx};

use FulfillmentState::{Claimed, Fulfilled};

fn owner(id: &str) -> OrganizationId {
    OrganizationId::stored(id.to_owned())
}

pub(crate) fn claim_id(id: &str) -> ClaimId {
    ClaimId::stored(id.to_owned())
}

pub(crate) fn campaign(id: &str, organization: &str, category: &str) -> Campaign {
    Campaign {
        campaign_id: CampaignId::stored(id.to_owned()),
        name: format!("campaign {id}"),
        organization_id: owner(organization),
        category_id: category.to_owned(),
        period: Period::default(),
        channels: None,
        rewards: Vec::new(),
    }
}

pub(crate) fn reward(id: &str) -> Reward {
    Reward { reward_id: RewardId::stored(id.to_owned()), name: format!("reward {id}"), watch_minutes: 0 }
}

pub(crate) fn new(id: &str, campaign: &str, reward: &str, by: &str) -> NewClaim {
    NewClaim {
        claim_id: claim_id(id),
        campaign_id: CampaignId::stored(campaign.to_owned()),
        reward_id: RewardId::stored(reward.to_owned()),
        channel_id: channel(by),
    }
}

/// Organizations `ours` and `theirs`, categories `sea` and `sky`, and a campaign for each pair, as
/// `ours-sea`, with the rewards `sword` and `shield`.
pub(crate) async fn plant(tx: &mut Tx) -> Result<(), StoreError> {
    for category in ["sea", "sky"] {
        tx.put_category(&Category {
            category_id: CategoryId::stored(category.to_owned()),
            category_type: CategoryType::Game,
            category_value: format!("The {category}"),
            poster_image_url: None,
        })
        .await?;
    }
    for organization_id in ["ours", "theirs"] {
        tx.put_organization(&organization(organization_id, true)).await?;
        for category in ["sea", "sky"] {
            put(
                tx,
                &format!("{organization_id}-{category}"),
                organization_id,
                category,
                &["sword", "shield"],
            )
            .await?;
        }
    }
    Ok(())
}

async fn put(tx: &mut Tx, id: &str, of: &str, category: &str, rewards: &[&str]) -> Result<(), StoreError> {
    let campaign = campaign(id, of, category);
    assert_eq!(tx.put_campaign(&campaign).await?, None);
    for id in rewards {
        tx.put_reward(&campaign.campaign_id, &reward(id)).await?;
    }
    Ok(())
}

/// Five claims of ours, named in the order in which they were made, and one of theirs.
async fn plant_claims(tx: &mut Tx) -> Result<(), StoreError> {
    plant(tx).await?;
    for (id, campaign, reward, by, ms) in [
        ("1", "ours-sea", "sword", "a", 10),
        ("2", "ours-sea", "shield", "a", 20),
        ("3", "ours-sky", "sword", "a", 20),
        ("4", "ours-sky", "sword", "b", 30),
        ("5", "ours-sea", "sword", "b", 40),
        ("x", "theirs-sea", "sword", "a", 50),
    ] {
        assert_eq!(tx.insert_claim(&new(id, campaign, reward, by), at(ms)).await?, None);
    }
    let fulfilled = [claim_id("2"), claim_id("4")];
    let changed = tx.update_claims(&owner("ours"), &fulfilled, Fulfilled, at(60)).await?;
    assert_eq!(changed.len(), 2);
    Ok(())
}

fn names(claims: &[RewardClaim]) -> String {
    claims.iter().map(|claim| claim.claim_id.as_str()).collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_needs_an_organization_and_a_category() {
    in_seeded(async move |tx: &mut Tx| {
        plant(tx).await?;
        let obstacle = tx.put_campaign(&campaign("new", "missing", "sea")).await?;
        assert_eq!(obstacle, Some(CampaignObstacle::NoOrganization));
        let obstacle = tx.put_campaign(&campaign("new", "ours", "none")).await?;
        assert_eq!(obstacle, Some(CampaignObstacle::NoCategory));
        let obstacle = tx.put_campaign(&campaign("ours-sea", "ours", "none")).await?;
        assert_eq!(obstacle, Some(CampaignObstacle::NoCategory));
        assert_eq!(number(tx, "SELECT COUNT(*) FROM drops_campaigns").await?, 4);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_needs_its_campaign_reward_and_channel_and_is_made_once() {
    in_seeded(async move |tx: &mut Tx| {
        plant(tx).await?;
        let first = new("1", "ours-sea", "sword", "a");
        assert_eq!(tx.insert_claim(&first, at(5)).await?, None);
        for (claim, obstacle) in [
            (new("2", "nothing", "sword", "a"), ClaimObstacle::NoCampaign),
            (new("2", "ours-sea", "bow", "a"), ClaimObstacle::NoReward),
            (new("2", "ours-sea", "sword", "missing"), ClaimObstacle::NoChannel),
            (new("1", "ours-sea", "sword", "b"), ClaimObstacle::IdTaken),
            (new("1", "theirs-sky", "shield", "c"), ClaimObstacle::IdTaken),
            (new("2", "ours-sea", "sword", "a"), ClaimObstacle::Claimed),
        ] {
            assert_eq!(tx.insert_claim(&claim, at(6)).await?, Some(obstacle), "{claim:?}");
        }
        for (id, campaign, reward, by) in [
            ("2", "ours-sea", "sword", "b"),
            ("3", "ours-sea", "shield", "a"),
            ("4", "ours-sky", "sword", "a"),
        ] {
            assert_eq!(tx.insert_claim(&new(id, campaign, reward, by), at(6)).await?, None, "{id}");
        }
        let found = tx.claim(&claim_id("1")).await?.unwrap();
        assert_eq!((found.campaign_id.as_str(), found.reward_id.as_str()), ("ours-sea", "sword"));
        assert_eq!((found.category_id.as_str(), found.category_name.as_str()), ("sea", "The sea"));
        assert_eq!((found.channel_id, found.state), (channel("a"), Claimed));
        assert_eq!((found.claimed_at, found.updated_at), (at(5), at(5)));
        assert!(tx.claim(&claim_id("9")).await?.is_none());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_reward_keeps_its_claims_and_accepts_no_more() {
    in_seeded(async move |tx: &mut Tx| {
        plant_claims(tx).await?;
        put(tx, "ours-sea", "ours", "sea", &["shield"]).await?;
        let late = new("6", "ours-sea", "sword", "c");
        assert_eq!(tx.insert_claim(&late, at(70)).await?, Some(ClaimObstacle::NoReward));
        assert_eq!(tx.insert_claim(&new("7", "ours-sea", "shield", "c"), at(70)).await?, None);
        assert!(tx.claim(&claim_id("1")).await?.is_some());
        put(tx, "ours-sea", "ours", "sea", &["sword"]).await?;
        assert_eq!(tx.insert_claim(&late, at(70)).await?, None);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_follow_their_campaign_to_another_organization_and_category() {
    in_seeded(async move |tx: &mut Tx| {
        plant_claims(tx).await?;
        put(tx, "ours-sea", "theirs", "sky", &["sword"]).await?;
        let all = ClaimFilter::default();
        assert_eq!(names(&tx.claims(&owner("ours"), &all, None, 9).await?), "4 3");
        let theirs = tx.claims(&owner("theirs"), &all, None, 9).await?;
        assert_eq!(names(&theirs), "x 5 2 1");
        assert_eq!((theirs[1].category_id.as_str(), theirs[1].category_name.as_str()), ("sky", "The sky"));
        Ok(())
    })
    .await;
}

fn filter(channel: Option<&str>, scope: Option<ClaimScope>, state: Option<FulfillmentState>) -> ClaimFilter {
    ClaimFilter { channel_id: channel.map(str::to_owned), scope, state }
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_the_organization_of_an_application_are_listed_oldest_first() {
    in_seeded(async move |tx: &mut Tx| {
        plant_claims(tx).await?;
        let join = "UPDATE applications SET organization_id = 'ours' WHERE client_id = 'app'";
        assert_eq!(tx.execute(join, &[]).await?, 1);
        let after = |ms, id: &str| ClaimPosition { claimed_at: at(ms), claim_id: claim_id(id) };
        for (position, before, limit, found) in [
            (after(0, ""), 100, 9, "1 2 3 4 5"),
            (after(20, ""), 40, 9, "2 3 4"),
            (after(20, "2"), 100, 2, "3 4"),
        ] {
            let claims = tx.claims_since(&client("app"), &position, at(before), limit).await?;
            assert_eq!(names(&claims), found);
        }
        assert!(tx.claims_since(&client("nobody"), &after(0, ""), at(100), 9).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_are_found_by_every_combination_of_filters_and_page_by_page() {
    in_seeded(async move |tx: &mut Tx| {
        plant_claims(tx).await?;
        let everything = tx.claims(&owner("ours"), &ClaimFilter::default(), None, 9).await?;
        assert_eq!(names(&everything), "5 4 3 2 1", "newest first, ties by id");
        let ids: Vec<String> = "1 2 3 4 5 x nothing".split(' ').map(str::to_owned).collect();
        let scopes = [
            None,
            Some(ClaimScope::Campaign("ours-sea".into())),
            Some(ClaimScope::Campaign("theirs-sea".into())),
            Some(ClaimScope::Campaign(String::new())),
            Some(ClaimScope::Category("sky".into())),
            Some(ClaimScope::Category("한글 ' OR 1=1".into())),
        ];
        for channel in [None, Some("a"), Some("b"), Some("missing")] {
            for scope in &scopes {
                for state in [None, Some(Claimed), Some(Fulfilled)] {
                    let filter = filter(channel, scope.clone(), state);
                    let passes = |claim: &&RewardClaim| {
                        channel.is_none_or(|id| claim.channel_id.as_str() == id)
                            && filter.campaign_id().is_none_or(|id| claim.campaign_id.as_str() == id)
                            && filter.category_id().is_none_or(|id| claim.category_id == id)
                            && state.is_none_or(|state| claim.state == state)
                    };
                    let expected: Vec<_> = everything.iter().filter(passes).cloned().collect();
                    let found = tx.claims(&owner("ours"), &filter, None, 9).await?;
                    assert_eq!(names(&found), names(&expected), "{filter:?}");
                    let named = tx.claims_by_id(&owner("ours"), &ids, &filter).await?;
                    assert_eq!(names(&named), names(&expected), "{filter:?}");
                    let (mut walked, mut after) = (Vec::new(), None);
                    while let Some(claim) = tx.claims(&owner("ours"), &filter, after.as_ref(), 1).await?.pop()
                    {
                        after = Some(ClaimPosition {
                            claimed_at: claim.claimed_at,
                            claim_id: claim.claim_id.clone(),
                        });
                        walked.push(claim);
                    }
                    assert_eq!(names(&walked), names(&expected), "{filter:?}");
                }
            }
        }
        assert!(tx.claims_by_id(&owner("ours"), &[], &ClaimFilter::default()).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_changes_an_organizations_own_claims_and_says_which_were_in_another_state() {
    in_seeded(async move |tx: &mut Tx| {
        plant_claims(tx).await?;
        let ids = ["1", "2", "x", "nothing"].map(claim_id);
        tx.lock_claims(&owner("ours")).await?;
        let changed = tx.update_claims(&owner("ours"), &ids, Fulfilled, at(80)).await?;
        assert_eq!(changed, [claim_id("1")]);
        tx.insert_claim_changes(&changed, Claimed, &client("app"), at(80)).await?;
        let mut owners = tx.claim_owners(&ids).await?;
        owners.sort();
        let expected = [("1", "ours"), ("2", "ours"), ("x", "theirs")];
        assert_eq!(owners, expected.map(|(id, of)| (claim_id(id), owner(of))));
        for (id, state, updated) in [("1", Fulfilled, 80), ("2", Fulfilled, 60), ("x", Claimed, 50)] {
            let claim = tx.claim(&claim_id(id)).await?.unwrap();
            assert_eq!((claim.state, claim.updated_at), (state, at(updated)), "{id}");
        }
        let changes = tx
            .query(
                "SELECT claim_id, from_state, to_state, client_id, changed_at FROM claim_changes",
                params![],
            )
            .await?;
        assert_eq!(changes.len(), 1);
        let texts: Vec<&str> = (0..4).map(|column| changes[0].get(column).unwrap()).collect();
        assert_eq!(texts, ["1", "CLAIMED", "FULFILLED", "app"]);
        assert_eq!(changes[0].get::<i64>(4)?, 80);

        assert!(tx.update_claims(&owner("ours"), &[], Claimed, at(90)).await?.is_empty());
        assert!(tx.claim_owners(&[]).await?.is_empty());
        tx.insert_claim_changes(&[], Claimed, &client("app"), at(90)).await?;
        assert_eq!(number(tx, "SELECT COUNT(*) FROM claim_changes").await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_claims_are_updated_at_once() {
    in_seeded(async move |tx: &mut Tx| {
        plant(tx).await?;
        let mut ids = Vec::new();
        for n in 0..CLAIM_UPDATE_IDS_MAX {
            let by = format!("viewer-{n}");
            tx.put_channel(&record(&by), at(1)).await?;
            assert_eq!(tx.insert_claim(&new(&by, "ours-sea", "sword", &by), at(2)).await?, None);
            ids.push(claim_id(&by));
        }
        assert_eq!(tx.update_claims(&owner("ours"), &ids, Fulfilled, at(3)).await?.len(), ids.len());
        assert_eq!(tx.claim_owners(&ids).await?.len(), ids.len());
        Ok(())
    })
    .await;
}

/// What each of many claims at once came to.
async fn raced(store: &Store, claims: Vec<NewClaim>) -> Vec<Result<Option<ClaimObstacle>, StoreError>> {
    let racing: Vec<_> = claims
        .into_iter()
        .map(|claim| {
            let store = store.clone();
            tokio::spawn(async move { tx!(store, tx => { tx.insert_claim(&claim, at(9)).await }) })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in racing {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_campaign_changes_hands_only_after_the_claim() {
    both(|store| async move {
        tx!(store, tx => { plant(tx).await }).unwrap();
        let racing: Vec<_> = (0..40)
            .map(|n| {
                let (store, by) = (store.clone(), format!("viewer-{n}"));
                tokio::spawn(async move {
                    let hands = ["ours", "theirs"][n % 2];
                    tx!(store, tx => { put(tx, "ours-sea", hands, "sea", &["sword"]).await }).unwrap();
                    tx!(store, tx => {
                        tx.put_channel(&record(&by), at(1)).await?;
                        let claim = new(&by, "ours-sea", "sword", &by);
                        tx.lock_campaign(&claim.campaign_id).await?;
                        tx.insert_claim(&claim, at(2)).await
                    })
                })
            })
            .collect();
        for task in racing {
            assert_eq!(task.await.unwrap(), Ok(None));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_concurrent_claims_is_made() {
    both(|store| async move {
        tx!(store, tx => { plant(tx).await }).unwrap();
        let same = (0..100).map(|n| new(&n.to_string(), "ours-sea", "sword", "a")).collect();
        let same_id = (0..3).map(|n| new("id", "ours-sky", "sword", ["a", "b", "c"][n])).collect();
        for (claims, obstacle) in [(same, ClaimObstacle::Claimed), (same_id, ClaimObstacle::IdTaken)] {
            let mut outcomes = raced(&store, claims).await;
            let made = outcomes.iter().position(|outcome| *outcome == Ok(None)).unwrap();
            drop(outcomes.remove(made));
            assert!(outcomes.iter().all(|outcome| *outcome == Ok(Some(obstacle))), "{outcomes:?}");
        }
        let count = tx!(store, tx => { number(tx, "SELECT COUNT(*) FROM reward_claims").await });
        assert_eq!(count, Ok(2));
    })
    .await;
}

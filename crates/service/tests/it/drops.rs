//! Reward claims of drops: failures of the store, and the context of cursors.

use domain::application::Organization;
use domain::drops::{Campaign, FulfillmentState, Reward, UpdateStatus};
use domain::live::{Category, CategoryType};
use domain::{CampaignId, CategoryId, ClaimId, ClientId, Invalid, OrganizationId, Refusal, RewardId, Rule};
use service::drops::{ClaimFilter, ClaimQuery, Publisher, RewardRequest};

use crate::world::{World, both, refused};

const CHANGES: &str = "SELECT COUNT(*) FROM claim_changes";

/// Makes a publisher with the claims `one` and `two`.
async fn publisher(world: &World) -> Publisher {
    let organization_id = OrganizationId::stored("games".to_owned());
    let organization =
        Organization { organization_id: organization_id.clone(), name: "games".to_owned(), verified: true };
    world.service.put_organization(organization).await.unwrap();
    let category = Category {
        category_id: CategoryId::stored("sea".to_owned()),
        category_type: CategoryType::Game,
        category_value: "The sea".to_owned(),
        poster_image_url: None,
    };
    world.service.put_category(category).await.unwrap();
    let campaign_id = CampaignId::stored("voyage".to_owned());
    let reward_id = RewardId::stored("compass".to_owned());
    let reward = Reward { reward_id: reward_id.clone(), name: "compass".to_owned(), watch_minutes: 0 };
    let campaign = Campaign {
        campaign_id: campaign_id.clone(),
        name: "voyage".to_owned(),
        organization_id: organization_id.clone(),
        category_id: "sea".to_owned(),
        period: domain::drops::Period::default(),
        channels: None,
        rewards: vec![reward],
    };
    world.service.put_campaign(campaign).await.unwrap();
    for id in ["one", "two"] {
        let request = RewardRequest {
            campaign_id: campaign_id.clone(),
            reward_id: reward_id.clone(),
            channel_id: world.user(id).await,
            claim_id: Some(ClaimId::stored(id.to_owned())),
        };
        world.service.claim_reward(request, None).await.unwrap();
    }
    Publisher { client_id: ClientId::stored("app".to_owned()), organization_id }
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_store_fails_every_well_formed_id_is_reported_as_failed() {
    both(|world| async move {
        let publisher = publisher(&world).await;
        let asked = ids(&["two", "no id", "unknown", "one"]);
        let update = async |state| {
            let groups = world.service.update_claims(&publisher, asked.clone(), state).await.unwrap();
            groups.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(
            update(FulfillmentState::Fulfilled).await,
            [
                (UpdateStatus::Success, ids(&["two", "one"])),
                (UpdateStatus::InvalidId, ids(&["no id"])),
                (UpdateStatus::NotFound, ids(&["unknown"])),
            ]
        );
        assert_eq!(world.count(CHANGES).await, 2);
        world.store.close().await;
        assert_eq!(
            update(FulfillmentState::Claimed).await,
            [
                (UpdateStatus::InvalidId, ids(&["no id"])),
                (UpdateStatus::UpdateFailed, ids(&["two", "unknown", "one"])),
            ]
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_valid_on_every_node_and_only_for_its_client() {
    both(|world| async move {
        let publisher = publisher(&world).await;
        let query = |from: Option<String>| ClaimQuery {
            claim_ids: None,
            filter: ClaimFilter::default(),
            from,
            size: 1,
        };
        let first = world.service.reward_claims(&publisher, query(None)).await.unwrap();
        assert_eq!(first.claims[0].claim_id.as_str(), "two");
        let node = world.node("node-b");
        let second = node.reward_claims(&publisher, query(first.cursor.clone())).await.unwrap();
        assert_eq!((second.claims[0].claim_id.as_str(), second.cursor), ("one", None));
        let borrower = Publisher { client_id: ClientId::stored("other".to_owned()), ..publisher };
        let borrowed = node.reward_claims(&borrower, query(first.cursor)).await;
        assert_eq!(refused(borrowed), Refusal::Invalid(Invalid::new("page.from", Rule::Cursor)));
    })
    .await;
}

//! Drops: campaigns and claims of their rewards (`docs/spec/drops.md`).

use std::collections::{BTreeMap, HashMap};

use domain::audit::AuditAction;
use domain::drops::{Campaign, FulfillmentState, RewardClaim, UpdateStatus, grouped};
use domain::limits::{CLAIM_ID_FILTER_MAX, CLAIM_UPDATE_IDS_MAX};
use domain::{
    CampaignId, ChannelId, ClaimId, ClientId, Invalid, OrganizationId, Refusal, RewardId, Rule, Timestamp,
};
use serde_json::json;
use store::queries::drops::{CampaignObstacle, ClaimObstacle, ClaimPosition, NewClaim};
pub use store::queries::drops::{ClaimFilter, ClaimScope};
use store::{StoreError, Tx};

use crate::platform::idempotency::{self, IdempotencyKey, StoredAnswer};
use crate::webhook::deliveries;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// A claim of a reward, as the platform reports it.
#[derive(Clone, Debug)]
pub struct RewardRequest {
    /// The campaign.
    pub campaign_id: CampaignId,
    /// The reward of the campaign.
    pub reward_id: RewardId,
    /// The channel that claims.
    pub channel_id: ChannelId,
    /// The id of the claim; `None` for a generated id, which grows with time.
    pub claim_id: Option<ClaimId>,
}

impl RewardRequest {
    /// The claim, with a generated id if the platform gave none.
    pub(crate) fn into_claim(self, now: Timestamp, random: [u8; 10]) -> NewClaim {
        let Self { campaign_id, reward_id, channel_id, claim_id } = self;
        let claim_id = claim_id.unwrap_or_else(|| ClaimId::generate(now, random));
        NewClaim { claim_id, campaign_id, reward_id, channel_id }
    }
}

/// An application that may use drops, and the verified organization whose claims it sees.
#[derive(Clone, Debug)]
pub struct Publisher {
    /// The application.
    pub client_id: ClientId,
    /// Its organization.
    pub organization_id: OrganizationId,
}

/// A publisher's query of claims.
#[derive(Clone, Debug)]
pub struct ClaimQuery {
    /// Up to 100 different ids: then one page has all matching claims.
    pub claim_ids: Option<Vec<String>>,
    /// The other conditions.
    pub filter: ClaimFilter,
    /// The cursor of the page before; `None` for the first page.
    pub from: Option<String>,
    /// The size of a page, from 1 to 1,000.
    pub size: i64,
}

/// A page of claims.
#[derive(Clone, Debug)]
pub struct ClaimPage {
    /// Newest first.
    pub claims: Vec<RewardClaim>,
    /// The cursor of the next page; `None` on the last one.
    pub cursor: Option<String>,
}

impl Service {
    /// Creates or replaces a campaign. A removed reward gets no new claims. Existing claims stay, and move
    /// with the campaign to another organization or category.
    ///
    /// # Errors
    /// The error of [`Campaign::check`]. `Invalid` for an unknown organization, category or channel.
    pub async fn put_campaign(&self, campaign: Campaign) -> Result<(), Error> {
        campaign.check()?;
        self.write(async move |work: &mut Work<'_>| {
            put_campaign(work, &campaign).await?;
            let Campaign { campaign_id, name, organization_id, .. } = &campaign;
            let details = json!({ "name": name, "organizationId": organization_id });
            Ok(work.audit_with(AuditAction::CampaignPut, campaign_id, details).await?)
        })
        .await
    }

    /// Claims a reward for a channel, once. The webhook messages for publishers are written in the same
    /// transaction.
    ///
    /// # Errors
    /// `Invalid` for an unknown campaign, reward or channel, for the id of another claim, and with
    /// [`Rule::Claimed`] when the channel has claimed the reward; [`Refusal::Claim`] before and after the
    /// campaign, and while the channel has not watched enough minutes.
    pub async fn claim_reward(
        &self,
        request: RewardRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<RewardClaim, Error> {
        let claim = request.into_claim(self.now(), self.random(Purpose::Claim));
        let (claim_again, key_again) = (claim.clone(), key.clone());
        let claimed =
            self.write(async move |work: &mut Work<'_>| self::claim(work, &claim, key.as_ref()).await).await;
        match claimed {
            // The campaign moved to another organization or category after the transaction had read the
            // campaign. This is rare. Only then the campaign is locked, because claims would queue for the
            // lock.
            Err(Error::Store(StoreError::ForeignKey)) => {
                self.write(async move |work: &mut Work<'_>| {
                    work.lock_campaign(&claim_again.campaign_id).await?;
                    self::claim(work, &claim_again, key_again.as_ref()).await
                })
                .await
            }
            claimed => claimed,
        }
    }

    /// The claims of a publisher's organization, newest first (`docs/spec/drops.md#query`). The pages from
    /// the first to the last contain each claim that existed at the first page exactly once, even if further
    /// claims are made between the pages.
    ///
    /// # Errors
    /// `Invalid` for more than 100 ids, and for a cursor of another list, publisher or filter.
    pub async fn reward_claims(&self, publisher: &Publisher, query: ClaimQuery) -> Result<ClaimPage, Error> {
        let context = context(publisher, &query);
        let after = query.from.as_deref().map(|cursor| self.position(&context, cursor)).transpose()?;
        let owner = publisher.organization_id.clone();
        let ClaimQuery { claim_ids, filter, size, .. } = query;
        if let Some(ids) = claim_ids {
            if ids.len() > CLAIM_ID_FILTER_MAX {
                return Err(Invalid::new("claimId", Rule::Items { min: 1, max: CLAIM_ID_FILTER_MAX }).into());
            }
            let found =
                self.read(async move |tx: &mut Tx| Ok(tx.claims_by_id(&owner, &ids, &filter).await?));
            return Ok(ClaimPage { claims: found.await?, cursor: None });
        }
        let claims = self
            .read(async move |tx: &mut Tx| Ok(tx.claims(&owner, &filter, after.as_ref(), size + 1).await?))
            .await?;
        let (claims, cursor) = self.page(&context, claims, size, |claim| {
            format!("{} {}", claim.claimed_at.as_millis(), claim.claim_id)
        });
        Ok(ClaimPage { claims, cursor })
    }

    /// Sets the state of claims of a publisher's organization, and returns the outcome for each id
    /// (`docs/spec/drops.md#update`). Every change of a state is recorded with the application that made it.
    /// When the store fails, no state changed or the outcome is unknown. The update can be repeated.
    ///
    /// # Errors
    /// `Invalid` for no id, or more than 100 different ones.
    pub async fn update_claims(
        &self,
        publisher: &Publisher,
        ids: Vec<String>,
        state: FulfillmentState,
    ) -> Result<BTreeMap<UpdateStatus, Vec<String>>, Error> {
        if !(1..=CLAIM_UPDATE_IDS_MAX).contains(&ids.len()) {
            return Err(Invalid::new("claimIds", Rule::Items { min: 1, max: CLAIM_UPDATE_IDS_MAX }).into());
        }
        let known: Vec<_> = ids.iter().filter_map(|id| ClaimId::parse("claimIds", id).ok()).collect();
        let acting_publisher = publisher.clone();
        let owners = self
            .write(async move |work: &mut Work<'_>| update(work, &acting_publisher, &known, state).await)
            .await;
        let owners = owners.inspect_err(|error| self.log_failure("reward claims were not updated", error));
        Ok(grouped(ids, |id| match &owners {
            Ok(owners) => UpdateStatus::of(owners.get(id), &publisher.organization_id),
            Err(_) => UpdateStatus::UpdateFailed,
        }))
    }

    fn position(&self, context: &str, cursor: &str) -> Result<ClaimPosition, Error> {
        let position = self.cursors().open("page.from", context, cursor)?;
        let (at, id) = position.split_once(' ').ok_or(Error::Internal(UNREADABLE_CURSOR))?;
        let claimed_at = Timestamp::from_millis(at.parse().map_err(|_| Error::Internal(UNREADABLE_CURSOR))?);
        Ok(ClaimPosition { claimed_at, claim_id: ClaimId::stored(id.to_owned()) })
    }
}

/// Cursors are authenticated, so the service wrote this cursor, and the error is internal.
const UNREADABLE_CURSOR: &str = "a cursor of reward claims cannot be read";

/// The context that a cursor is bound to: the list, the publisher and every filter, but not the size of a
/// page.
fn context(publisher: &Publisher, query: &ClaimQuery) -> String {
    let ClaimQuery { claim_ids, filter, .. } = query;
    let state = filter.state.map(FulfillmentState::name);
    let scope = (filter.campaign_id(), filter.category_id());
    let client = publisher.client_id.as_str();
    serde_json::json!(["reward-claims", client, claim_ids, filter.channel_id, scope, state]).to_string()
}

async fn put_campaign(work: &mut Work<'_>, campaign: &Campaign) -> Result<(), Error> {
    match work.put_campaign(campaign).await? {
        None => {}
        Some(CampaignObstacle::NoOrganization) => {
            return Err(Invalid::new("organizationId", Rule::KnownOrganization).into());
        }
        Some(CampaignObstacle::NoCategory) => {
            return Err(Invalid::new("categoryId", Rule::KnownCategory).into());
        }
    }
    let Campaign { campaign_id, channels, rewards, .. } = campaign;
    work.delete_campaign_channels(campaign_id).await?;
    for channel in channels.iter().flatten() {
        if !work.put_campaign_channel(campaign_id, channel).await? {
            return Err(Invalid::new("channelIds", Rule::KnownChannel).into());
        }
    }
    for reward in rewards {
        work.put_reward(campaign_id, reward).await?;
    }
    Ok(())
}

/// The id of the claim.
impl StoredAnswer for ClaimId {
    fn to_text(&self) -> String {
        self.as_str().to_owned()
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(Self::stored(text.to_owned()))
    }
}

/// Claims a reward, inside a transaction. Every claim is inserted here.
pub(crate) async fn claim(
    work: &mut Work<'_>,
    claim: &NewClaim,
    key: Option<&IdempotencyKey>,
) -> Result<RewardClaim, Error> {
    let now = work.now();
    if let Some(earlier) = idempotency::claim(work, key, &claim.claim_id).await? {
        let earlier = work.claim(&earlier).await?;
        let earlier = earlier.ok_or(Error::Internal("the claim of an idempotency key is gone"))?;
        // The first answer, without later updates by the publisher.
        return Ok(RewardClaim {
            state: FulfillmentState::Claimed,
            updated_at: earlier.claimed_at,
            ..earlier
        });
    }
    if let Some(obstacle) = work.insert_claim(claim, now).await? {
        return Err(refusal(obstacle).into());
    }
    let made = work.claim(&claim.claim_id).await?;
    let made = made.ok_or(Error::Internal("a claim is gone in the transaction that made it"))?;
    deliveries::write(work, &made).await?;
    Ok(made)
}

fn refusal(obstacle: ClaimObstacle) -> Refusal {
    let (field, rule) = match obstacle {
        ClaimObstacle::NoCampaign => ("campaignId", Rule::KnownCampaign),
        ClaimObstacle::NoReward => ("rewardId", Rule::KnownReward),
        ClaimObstacle::NoChannel => ("channelId", Rule::KnownChannel),
        ClaimObstacle::IdTaken => ("claimId", Rule::Taken),
        ClaimObstacle::Claimed => ("rewardId", Rule::Claimed),
        ClaimObstacle::Terms(refusal) => return refusal.into(),
    };
    Invalid::new(field, rule).into()
}

/// Updates the claims that the publisher's organization owns. Returns the owner of each existing claim.
async fn update(
    work: &mut Work<'_>,
    publisher: &Publisher,
    ids: &[ClaimId],
    state: FulfillmentState,
) -> Result<HashMap<ClaimId, OrganizationId>, Error> {
    let now = work.now();
    work.lock_claims(&publisher.organization_id).await?;
    let changed = work.update_claims(&publisher.organization_id, ids, state, now).await?;
    work.insert_claim_changes(&changed, state.other(), &publisher.client_id, now).await?;
    Ok(work.claim_owners(ids).await?.into_iter().collect())
}

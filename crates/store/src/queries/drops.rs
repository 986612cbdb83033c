//! Drops campaigns, and the claims of their rewards.

use domain::drops::{Campaign, ClaimRefusal, FulfillmentState, Period, Reward, RewardClaim, Terms};
use domain::{CampaignId, ChannelId, ClaimId, ClientId, OrganizationId, RewardId, Timestamp};

use super::columns::{Select, columns, sql};
use super::sql::{HUNDRED_IDS, padded};
use crate::{StoreError, Tx, Value, params};

/// Inserts nothing if the organization or the category does not exist, so that the same transaction can look
/// for the reason. Not an upsert: on PostgreSQL the conflict of an upsert is on one unique index, and a
/// concurrent row may violate the other one first.
const INSERT_CAMPAIGN: &str = "
    INSERT INTO drops_campaigns
        (campaign_id, campaign_name, organization_id, category_id, starts_at, ends_at, every_channel)
    SELECT $1, $2, o.organization_id, g.category_id, CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BOOLEAN)
    FROM organizations o JOIN categories g ON g.category_id = $4
    WHERE o.organization_id = $3
    ON CONFLICT DO NOTHING";

const UPDATE_CAMPAIGN: &str = "
    UPDATE drops_campaigns SET campaign_name = $2, organization_id = $3, category_id = $4, starts_at = $5,
        ends_at = $6, every_channel = $7
    WHERE campaign_id = $1
        AND EXISTS (SELECT 1 FROM organizations WHERE organization_id = $3)
        AND EXISTS (SELECT 1 FROM categories WHERE category_id = $4)";

const ORGANIZATION_EXISTS: &str = "SELECT 1 FROM organizations WHERE organization_id = $1";

const CLOSE_REWARDS: &str = "UPDATE drops_rewards SET claimable = FALSE WHERE campaign_id = $1 AND claimable";

const PUT_REWARD: &str = "
    INSERT INTO drops_rewards (campaign_id, reward_id, reward_name, watch_minutes, claimable)
    VALUES ($1, $2, $3, $4, TRUE)
    ON CONFLICT (campaign_id, reward_id) DO UPDATE
        SET reward_name = excluded.reward_name, watch_minutes = excluded.watch_minutes, claimable = TRUE";

const LOCK_CAMPAIGN: &str = "UPDATE drops_campaigns SET campaign_name = campaign_name WHERE campaign_id = $1";

/// One row for a campaign that exists: whether it has the reward, the channel exists, the claim's id is
/// taken, the reward is claimed, and what stands against what the campaign asks for.
const CLAIM_OBSTACLES: &str = sql!(
    "SELECT ",
    ClaimChecks::COLUMNS,
    "
    FROM drops_campaigns c
    LEFT JOIN drops_rewards r ON r.campaign_id = c.campaign_id AND r.reward_id = $2 AND r.claimable
    LEFT JOIN channels h ON h.channel_id = $3 AND h.deleted_at IS NULL
    LEFT JOIN watched_minutes w ON w.campaign_id = c.campaign_id AND w.channel_id = $3
    WHERE c.campaign_id = $1"
);

/// Of concurrent claims of one reward by one channel, one inserts. Inserts nothing if a row that the claim
/// needs does not exist, or if [`Terms`] refuse the claim, so that the same transaction can look for the
/// reason.
const INSERT_CLAIM: &str = "
    INSERT INTO reward_claims
        (claim_id, organization_id, campaign_id, reward_id, category_id, channel_id, fulfillment_state, claimed_at,
         updated_at)
    SELECT $1, c.organization_id, c.campaign_id, r.reward_id, c.category_id, h.channel_id, $5, $6, $6
    FROM drops_campaigns c
    JOIN drops_rewards r ON r.campaign_id = c.campaign_id AND r.reward_id = $3 AND r.claimable
    JOIN channels h ON h.channel_id = $4 AND h.deleted_at IS NULL
    LEFT JOIN watched_minutes w ON w.campaign_id = c.campaign_id AND w.channel_id = h.channel_id
    WHERE c.campaign_id = $2 AND c.disabled_at IS NULL AND r.watch_minutes <= COALESCE(w.minutes, 0)
        AND (c.starts_at IS NULL OR c.starts_at <= $6) AND (c.ends_at IS NULL OR c.ends_at > $6)
    ON CONFLICT DO NOTHING";

macro_rules! claims {
    ($($condition:literal),+) => {
        sql!(
            "SELECT ",
            RewardClaim::COLUMNS,
            " FROM reward_claims c JOIN categories g ON g.category_id = c.category_id WHERE ",
            $($condition),+
        )
    };
}

/// A page of an organization's claims, newest first, under a condition that an index serves.
macro_rules! page_of_claims {
    ($condition:literal) => {
        claims!(
            "c.organization_id = $1 AND (c.claimed_at, c.claim_id) < ($2, $3)",
            $condition,
            " ORDER BY c.claimed_at DESC, c.claim_id DESC LIMIT $4"
        )
    };
}

const CLAIMS: &str = page_of_claims!("");
const CLAIMS_IN_STATE: &str = page_of_claims!(" AND c.fulfillment_state = $5");
const CLAIMS_OF_CAMPAIGN: &str = page_of_claims!(" AND c.campaign_id = $5");
const CLAIMS_OF_CAMPAIGN_IN_STATE: &str =
    page_of_claims!(" AND c.campaign_id = $5 AND c.fulfillment_state = $6");
const CLAIMS_OF_CATEGORY: &str = page_of_claims!(" AND c.category_id = $5");
const CLAIMS_OF_CATEGORY_IN_STATE: &str =
    page_of_claims!(" AND c.category_id = $5 AND c.fulfillment_state = $6");
/// A channel has few claims, so the other conditions are checked row by row.
const CLAIMS_OF_CHANNEL: &str = page_of_claims!(
    " AND c.channel_id = $5 AND (CAST($6 AS TEXT) IS NULL OR c.campaign_id = $6)
        AND (CAST($7 AS TEXT) IS NULL OR c.category_id = $7)
        AND (CAST($8 AS TEXT) IS NULL OR c.fulfillment_state = $8)"
);

const CLAIM: &str = claims!("c.claim_id = $1");

/// The oldest claims of an application's organization in a window of time.
const CLAIMS_SINCE: &str = claims!(
    "c.organization_id = (SELECT a.organization_id FROM applications a WHERE a.client_id = $1)
        AND (c.claimed_at, c.claim_id) > ($2, $3) AND c.claimed_at < $4
    ORDER BY c.claimed_at, c.claim_id LIMIT $5"
);

const CLAIMS_BY_ID: &str = sql!(
    claims!("c.claim_id IN "),
    HUNDRED_IDS,
    " AND c.organization_id = $101
        AND (CAST($102 AS TEXT) IS NULL OR c.channel_id = $102)
        AND (CAST($103 AS TEXT) IS NULL OR c.campaign_id = $103)
        AND (CAST($104 AS TEXT) IS NULL OR c.category_id = $104)
        AND (CAST($105 AS TEXT) IS NULL OR c.fulfillment_state = $105)
    ORDER BY c.claimed_at DESC, c.claim_id DESC"
);

const LOCK_CLAIMS: &str = "UPDATE organizations SET verified = verified WHERE organization_id = $1";

const CLAIM_OWNERS: &str =
    sql!("SELECT claim_id, organization_id FROM reward_claims WHERE claim_id IN ", HUNDRED_IDS);

const UPDATE_CLAIMS: &str = sql!(
    "UPDATE reward_claims SET fulfillment_state = $101, updated_at = $102 WHERE claim_id IN ",
    HUNDRED_IDS,
    " AND organization_id = $103 AND fulfillment_state <> $101 RETURNING claim_id"
);

/// There are two states, so a claim that changed to one was in the other.
const INSERT_CLAIM_CHANGES: &str = sql!(
    "INSERT INTO claim_changes (claim_id, from_state, to_state, client_id, changed_at)
    SELECT claim_id, $101, fulfillment_state, $102, $103 FROM reward_claims WHERE claim_id IN ",
    HUNDRED_IDS
);

/// How often a claim is tried again when its obstacle has disappeared. Only a campaign that changes all the
/// time needs more.
const CLAIM_TRIES: usize = 8;

/// Why a campaign cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignObstacle {
    /// There is no such organization.
    NoOrganization,
    /// There is no such category.
    NoCategory,
}

/// Why a claim cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimObstacle {
    /// There is no such campaign.
    NoCampaign,
    /// The campaign has no such reward, or does not offer it any more.
    NoReward,
    /// There is no such channel.
    NoChannel,
    /// Another claim has the id.
    IdTaken,
    /// The channel has claimed this reward.
    Claimed,
    /// The campaign does not allow it now.
    Terms(ClaimRefusal),
}

/// What a claim needs, and whether it is there.
struct ClaimChecks {
    reward_exists: bool,
    channel_exists: bool,
    id_is_taken: bool,
    is_claimed: bool,
    terms: Terms,
    is_disabled: bool,
}

columns!(ClaimChecks {
    reward_exists: "r.reward_id IS NOT NULL",
    channel_exists: "h.channel_id IS NOT NULL",
    id_is_taken: "EXISTS (SELECT 1 FROM reward_claims WHERE claim_id = $4)",
    is_claimed: "EXISTS (SELECT 1 FROM reward_claims WHERE campaign_id = $1 AND reward_id = $2 AND channel_id = $3)",
    terms: Terms::COLUMNS,
    is_disabled: "c.disabled_at IS NOT NULL",
});

columns!(Terms {
    period: Period::COLUMNS,
    watch_minutes: "COALESCE(r.watch_minutes, 0)",
    watched: "COALESCE(w.minutes, 0)",
});

columns!(Period { start: "c.starts_at", end: "c.ends_at" });

impl ClaimChecks {
    fn obstacle(&self, now: Timestamp) -> Option<ClaimObstacle> {
        if !self.reward_exists {
            Some(ClaimObstacle::NoReward)
        } else if !self.channel_exists {
            Some(ClaimObstacle::NoChannel)
        } else if self.id_is_taken {
            Some(ClaimObstacle::IdTaken)
        } else if self.is_claimed {
            Some(ClaimObstacle::Claimed)
        } else if self.is_disabled {
            Some(ClaimObstacle::Terms(ClaimRefusal::Disabled))
        } else {
            self.terms.refusal(now).map(ClaimObstacle::Terms)
        }
    }
}

/// A new claim.
#[derive(Clone, Debug)]
pub struct NewClaim {
    /// Its id.
    pub claim_id: ClaimId,
    /// The campaign.
    pub campaign_id: CampaignId,
    /// The reward of the campaign.
    pub reward_id: RewardId,
    /// Who claims.
    pub channel_id: ChannelId,
}

/// The conditions of a list of claims. They are texts: a text that is no id matches nothing.
#[derive(Clone, Debug, Default)]
pub struct ClaimFilter {
    /// Claimed by this channel.
    pub channel_id: Option<String>,
    /// Of this campaign, or of this category.
    pub scope: Option<ClaimScope>,
    /// In this state.
    pub state: Option<FulfillmentState>,
}

/// A campaign or a category: one excludes the other (`docs/spec/drops.md#query`).
#[derive(Clone, Debug)]
pub enum ClaimScope {
    /// The id of a campaign.
    Campaign(String),
    /// The id of a category.
    Category(String),
}

impl ClaimFilter {
    /// The campaign, if that is asked for.
    pub fn campaign_id(&self) -> Option<&str> {
        match &self.scope {
            Some(ClaimScope::Campaign(id)) => Some(id),
            _ => None,
        }
    }

    /// The category, if that is asked for.
    pub fn category_id(&self) -> Option<&str> {
        match &self.scope {
            Some(ClaimScope::Category(id)) => Some(id),
            _ => None,
        }
    }
}

/// The last claim of a page, after which the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPosition {
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// Its id.
    pub claim_id: ClaimId,
}

columns!(RewardClaim {
    claim_id: "c.claim_id",
    campaign_id: "c.campaign_id",
    reward_id: "c.reward_id",
    category_id: "c.category_id",
    category_name: "g.category_value",
    channel_id: "c.channel_id",
    state: "c.fulfillment_state",
    claimed_at: "c.claimed_at",
    updated_at: "c.updated_at",
});

impl Tx {
    /// Creates or replaces a campaign. Its rewards and channels are written one by one, and none can be
    /// claimed before. Existing claims follow the campaign to another organization or category.
    pub async fn put_campaign(
        &mut self,
        campaign: &Campaign,
    ) -> Result<Option<CampaignObstacle>, StoreError> {
        let Campaign { campaign_id, name, organization_id, category_id, period, channels, .. } = campaign;
        let [start, end] = [period.start, period.end].map(|date| date.map(Timestamp::as_millis));
        let values = params![campaign_id, name, organization_id, category_id, start, end, channels.is_none()];
        if self.execute(INSERT_CAMPAIGN, values).await? > 0
            || self.execute(UPDATE_CAMPAIGN, values).await? > 0
        {
            self.execute(CLOSE_REWARDS, params![campaign_id]).await?;
            return Ok(None);
        }
        let organization = self.query_opt(ORGANIZATION_EXISTS, params![organization_id]).await?;
        Ok(Some(match organization {
            None => CampaignObstacle::NoOrganization,
            Some(_) => CampaignObstacle::NoCategory,
        }))
    }

    /// Creates or replaces a reward, and opens it to claims.
    pub async fn put_reward(&mut self, campaign: &CampaignId, reward: &Reward) -> Result<(), StoreError> {
        let Reward { reward_id, name, watch_minutes } = reward;
        self.execute(PUT_REWARD, params![campaign, reward_id, name, *watch_minutes]).await?;
        Ok(())
    }

    /// Locks a campaign for the rest of the transaction.
    pub async fn lock_campaign(&mut self, id: &CampaignId) -> Result<(), StoreError> {
        self.execute(LOCK_CAMPAIGN, params![id]).await?;
        Ok(())
    }

    /// Makes a claim. Of concurrent claims of one reward by one channel, one is made.
    /// `StoreError::ForeignKey` if the campaign, not locked, changes its organization or category meanwhile.
    pub async fn insert_claim(
        &mut self,
        claim: &NewClaim,
        now: Timestamp,
    ) -> Result<Option<ClaimObstacle>, StoreError> {
        let NewClaim { claim_id, campaign_id, reward_id, channel_id } = claim;
        let state = FulfillmentState::Claimed.name();
        for _ in 0..CLAIM_TRIES {
            let values = params![claim_id, campaign_id, reward_id, channel_id, state, now];
            if self.execute(INSERT_CLAIM, values).await? > 0 {
                return Ok(None);
            }
            if let Some(obstacle) = self.claim_obstacle(claim, now).await? {
                return Ok(Some(obstacle));
            }
        }
        Err(StoreError::Busy("what a claim stands on keeps changing"))
    }

    /// The obstacle of a claim; `None` if there is none any more.
    async fn claim_obstacle(
        &mut self,
        claim: &NewClaim,
        now: Timestamp,
    ) -> Result<Option<ClaimObstacle>, StoreError> {
        let NewClaim { claim_id, campaign_id, reward_id, channel_id } = claim;
        let values = params![campaign_id, reward_id, channel_id, claim_id];
        let checks = self.fetch_optional::<ClaimChecks>(CLAIM_OBSTACLES, values).await?;
        Ok(checks.map_or(Some(ClaimObstacle::NoCampaign), |checks| checks.obstacle(now)))
    }

    /// The claim of that id, of any organization.
    pub async fn claim(&mut self, id: &ClaimId) -> Result<Option<RewardClaim>, StoreError> {
        self.fetch_optional(CLAIM, params![id]).await
    }

    /// Up to `limit` claims of an organization, newest first, after a position.
    pub async fn claims(
        &mut self,
        owner: &OrganizationId,
        filter: &ClaimFilter,
        after: Option<&ClaimPosition>,
        limit: i64,
    ) -> Result<Vec<RewardClaim>, StoreError> {
        let (at, id) =
            after.map_or((i64::MAX, ""), |after| (after.claimed_at.as_millis(), after.claim_id.as_str()));
        let mut values: Vec<Value<'_>> = vec![owner.into(), at.into(), id.into(), limit.into()];
        let state = filter.state.map(FulfillmentState::name);
        let sql = match (&filter.channel_id, &filter.scope, state) {
            (Some(channel), _, _) => {
                let rest = [filter.campaign_id(), filter.category_id(), state];
                values.push(channel.into());
                values.extend(rest.map(Value::from));
                CLAIMS_OF_CHANNEL
            }
            (None, None, None) => CLAIMS,
            (None, None, Some(state)) => {
                values.push(state.into());
                CLAIMS_IN_STATE
            }
            (None, Some(ClaimScope::Campaign(id)), None) => {
                values.push(id.into());
                CLAIMS_OF_CAMPAIGN
            }
            (None, Some(ClaimScope::Campaign(id)), Some(state)) => {
                values.extend([Value::from(id), state.into()]);
                CLAIMS_OF_CAMPAIGN_IN_STATE
            }
            (None, Some(ClaimScope::Category(id)), None) => {
                values.push(id.into());
                CLAIMS_OF_CATEGORY
            }
            (None, Some(ClaimScope::Category(id)), Some(state)) => {
                values.extend([Value::from(id), state.into()]);
                CLAIMS_OF_CATEGORY_IN_STATE
            }
        };
        self.fetch_all(sql, &values).await
    }

    /// Up to `limit` claims of the organization of an application, oldest first, after a position and before
    /// a time.
    pub async fn claims_since(
        &mut self,
        client_id: &ClientId,
        after: &ClaimPosition,
        before: Timestamp,
        limit: i64,
    ) -> Result<Vec<RewardClaim>, StoreError> {
        let values = params![client_id, after.claimed_at, &after.claim_id, before, limit];
        self.fetch_all(CLAIMS_SINCE, values).await
    }

    /// Of up to 100 claims, those of an organization that match the filter, newest first.
    pub async fn claims_by_id(
        &mut self,
        owner: &OrganizationId,
        ids: &[String],
        filter: &ClaimFilter,
    ) -> Result<Vec<RewardClaim>, StoreError> {
        let Some(mut values) = padded(ids) else { return Ok(Vec::new()) };
        let state = filter.state.map(FulfillmentState::name);
        values.push(owner.into());
        values.push(filter.channel_id.as_deref().into());
        values.extend([filter.campaign_id(), filter.category_id(), state].map(Value::from));
        self.fetch_all(CLAIMS_BY_ID, &values).await
    }

    /// Locks the updates of an organization's claims for the rest of the transaction, so that two updates
    /// never wait for each other in a circle.
    pub async fn lock_claims(&mut self, owner: &OrganizationId) -> Result<(), StoreError> {
        self.execute(LOCK_CLAIMS, params![owner]).await?;
        Ok(())
    }

    /// The owners of up to 100 claims. A claim that does not exist is left out.
    pub async fn claim_owners(
        &mut self,
        ids: &[ClaimId],
    ) -> Result<Vec<(ClaimId, OrganizationId)>, StoreError> {
        let Some(values) = padded(ids) else { return Ok(Vec::new()) };
        self.fetch_all(CLAIM_OWNERS, &values).await
    }

    /// Changes up to 100 claims of an organization to a state, and gives those that were in another one.
    pub async fn update_claims(
        &mut self,
        owner: &OrganizationId,
        ids: &[ClaimId],
        state: FulfillmentState,
        now: Timestamp,
    ) -> Result<Vec<ClaimId>, StoreError> {
        let Some(mut values) = padded(ids) else { return Ok(Vec::new()) };
        values.extend([state.name().into(), now.into(), owner.into()]);
        self.fetch_all(UPDATE_CLAIMS, &values).await
    }

    /// Records that an application changed up to 100 claims from a state to their present one.
    pub async fn insert_claim_changes(
        &mut self,
        ids: &[ClaimId],
        from: FulfillmentState,
        client: &ClientId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(mut values) = padded(ids) else { return Ok(()) };
        values.extend([from.name().into(), client.into(), now.into()]);
        self.execute(INSERT_CLAIM_CHANGES, &values).await?;
        Ok(())
    }
}

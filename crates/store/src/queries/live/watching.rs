//! The conditions of drops campaigns, and the minutes that viewers have watched.

use domain::drops::{Campaign, Period, Reward, RewardProgress};
use domain::{CampaignId, CategoryId, ChannelId, RewardId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::queries::sql::{HUNDRED_IDS, padded};
use crate::{StoreError, Tx, params};

const CAMPAIGN: &str = sql!("SELECT ", Campaign::COLUMNS, " FROM drops_campaigns c WHERE c.campaign_id = $1");

const CAMPAIGN_CHANNELS: &str = "
    SELECT channel_id FROM drops_campaign_channels WHERE campaign_id = $1 ORDER BY channel_id";

const DELETE_CAMPAIGN_CHANNELS: &str = "DELETE FROM drops_campaign_channels WHERE campaign_id = $1";

/// Inserts nothing if the channel does not exist.
const PUT_CAMPAIGN_CHANNEL: &str = "
    INSERT INTO drops_campaign_channels (campaign_id, channel_id)
    SELECT $1, channel_id FROM channels WHERE channel_id = $2 AND deleted_at IS NULL";

/// What a campaign offers, and which of it a viewer has claimed.
const REWARDS: &str = sql!(
    "SELECT ",
    RewardProgress::COLUMNS,
    "
    FROM drops_rewards r
    LEFT JOIN reward_claims k
        ON k.campaign_id = r.campaign_id AND k.reward_id = r.reward_id AND k.channel_id = $2
    WHERE r.campaign_id = $1 AND r.claimable
    ORDER BY r.watch_minutes, r.reward_id"
);

/// The rewards that a viewer could claim now, over all campaigns.
const CLAIMABLE: &str = "
    SELECT c.campaign_id, r.reward_id
    FROM drops_campaigns c
    JOIN drops_rewards r ON r.campaign_id = c.campaign_id AND r.claimable
    LEFT JOIN watched_minutes w ON w.campaign_id = c.campaign_id AND w.channel_id = $1
    WHERE c.disabled_at IS NULL AND r.watch_minutes <= COALESCE(w.minutes, 0)
        AND (c.starts_at IS NULL OR c.starts_at <= $2) AND (c.ends_at IS NULL OR c.ends_at > $2)
        AND NOT EXISTS (SELECT 1 FROM reward_claims k
            WHERE k.campaign_id = c.campaign_id AND k.reward_id = r.reward_id AND k.channel_id = $1)
    ORDER BY c.campaign_id, r.watch_minutes, r.reward_id LIMIT 1";

/// One row for a channel that exists: how many of the viewers do, and what it has on air.
const WATCHABLE: &str = sql!(
    "SELECT ",
    Watchable::COLUMNS,
    "
    FROM channels h LEFT JOIN lives l ON l.channel_id = h.channel_id
    WHERE h.channel_id = $101 AND h.deleted_at IS NULL"
);

/// The statement that adds minutes checks their conditions, and adds to the stored minutes, so concurrent
/// additions are not lost. It locks rows in one order, so that two of them never wait for each other in a
/// circle.
const ACCRUE: &str = sql!(
    "INSERT INTO watched_minutes (campaign_id, channel_id, minutes)
    SELECT c.campaign_id, v.channel_id, CAST($102 AS BIGINT)
    FROM lives l
    JOIN drops_campaigns c ON c.category_id = l.category_id
    JOIN channels v ON v.channel_id IN ",
    HUNDRED_IDS,
    " WHERE l.channel_id = $101 AND v.deleted_at IS NULL AND c.disabled_at IS NULL
        AND (c.starts_at IS NULL OR c.starts_at <= $103) AND (c.ends_at IS NULL OR c.ends_at > $103)
        AND (c.every_channel OR EXISTS (SELECT 1 FROM drops_campaign_channels p
            WHERE p.campaign_id = c.campaign_id AND p.channel_id = l.channel_id))
    ORDER BY v.channel_id, c.campaign_id
    ON CONFLICT (campaign_id, channel_id) DO UPDATE SET minutes = watched_minutes.minutes + excluded.minutes
    RETURNING ",
    Watched::COLUMNS
);

const WATCHED_MINUTES: &str = "
    SELECT COALESCE(w.minutes, 0)
    FROM drops_campaigns c JOIN channels v ON v.channel_id = $2 AND v.deleted_at IS NULL
    LEFT JOIN watched_minutes w ON w.campaign_id = c.campaign_id AND w.channel_id = v.channel_id
    WHERE c.campaign_id = $1";

/// A channel in a report of watched minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watchable {
    /// How many of the viewers exist.
    pub viewers: i64,
    /// Whether it is on air.
    pub on_air: bool,
    /// The category of what it has on air.
    pub category_id: Option<CategoryId>,
}

columns!(Watchable {
    viewers: sql!(
        "(SELECT COUNT(*) FROM channels WHERE channel_id IN ",
        HUNDRED_IDS,
        " AND deleted_at IS NULL)"
    ),
    on_air: "l.channel_id IS NOT NULL",
    category_id: "l.category_id",
});

/// What a viewer has watched for a campaign.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    /// The campaign.
    pub campaign_id: CampaignId,
    /// The viewer.
    pub viewer: ChannelId,
    /// Minutes in all.
    pub minutes: i64,
}

columns!(outer_join Watched { campaign_id: "campaign_id", viewer: "channel_id", minutes: "minutes" });

columns!(Campaign {
    campaign_id: "c.campaign_id",
    name: "c.campaign_name",
    organization_id: "c.organization_id",
    category_id: "c.category_id",
    period: Period::COLUMNS,
    channels: "c.every_channel" => |every: bool| (!every).then(Vec::new);
    rewards: Vec::new(),
});

columns!(RewardProgress { reward: Reward::COLUMNS, claim_id: "k.claim_id" });

columns!(Reward { reward_id: "r.reward_id", name: "r.reward_name", watch_minutes: "r.watch_minutes" });

impl Tx {
    /// A campaign without its rewards and channels.
    pub async fn campaign(&mut self, id: &CampaignId) -> Result<Option<Campaign>, StoreError> {
        self.fetch_optional(CAMPAIGN, params![id]).await
    }

    /// The channels that a campaign names.
    pub async fn campaign_channels(&mut self, id: &CampaignId) -> Result<Vec<ChannelId>, StoreError> {
        self.fetch_all(CAMPAIGN_CHANNELS, params![id]).await
    }

    /// Removes the channels of a campaign.
    pub async fn delete_campaign_channels(&mut self, id: &CampaignId) -> Result<(), StoreError> {
        self.execute(DELETE_CAMPAIGN_CHANNELS, params![id]).await?;
        Ok(())
    }

    /// Adds a channel to a campaign: `false` if there is no such channel.
    pub async fn put_campaign_channel(
        &mut self,
        id: &CampaignId,
        channel: &ChannelId,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(PUT_CAMPAIGN_CHANNEL, params![id, channel]).await? > 0)
    }

    /// The live of a channel, and how many of up to 100 viewers exist; `None` for an unknown channel.
    pub async fn watchable(
        &mut self,
        channel: &ChannelId,
        viewers: &[ChannelId],
    ) -> Result<Option<Watchable>, StoreError> {
        let Some(mut values) = padded(viewers) else { return Ok(None) };
        values.push(channel.into());
        self.fetch_optional(WATCHABLE, &values).await
    }

    /// Adds the minutes that up to 100 viewers watched a channel to every running campaign in which the
    /// channel takes part with its live's category. Gives the minutes that these viewers have now.
    pub async fn accrue(
        &mut self,
        channel: &ChannelId,
        viewers: &[ChannelId],
        minutes: i64,
        now: Timestamp,
    ) -> Result<Vec<Watched>, StoreError> {
        let Some(mut values) = padded(viewers) else { return Ok(Vec::new()) };
        values.extend([channel.into(), minutes.into(), now.into()]);
        self.fetch_all(ACCRUE, &values).await
    }

    /// Minutes that a viewer has watched for a campaign; `None` if either does not exist.
    pub async fn watched_minutes(
        &mut self,
        campaign: &CampaignId,
        viewer: &ChannelId,
    ) -> Result<Option<i64>, StoreError> {
        self.fetch_optional(WATCHED_MINUTES, params![campaign, viewer]).await
    }

    /// The rewards of a campaign that can be claimed, those with the fewest minutes first, with the claims of
    /// a viewer.
    pub async fn reward_progress(
        &mut self,
        campaign: &CampaignId,
        viewer: Option<&ChannelId>,
    ) -> Result<Vec<RewardProgress>, StoreError> {
        self.fetch_all(REWARDS, params![campaign, viewer]).await
    }

    /// The first reward that a viewer could claim now, of any campaign.
    pub async fn first_claimable(
        &mut self,
        viewer: &ChannelId,
        now: Timestamp,
    ) -> Result<Option<(CampaignId, RewardId)>, StoreError> {
        self.fetch_optional(CLAIMABLE, params![viewer, now]).await
    }
}

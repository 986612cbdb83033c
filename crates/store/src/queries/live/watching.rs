//! The conditions of drops campaigns, and the minutes that viewers have watched.

use domain::drops::{Campaign, Reward, RewardProgress};
use domain::{CampaignId, CategoryId, ChannelId, ClaimId, Timestamp};

use crate::queries::sql::{hundred_ids, padded, period_at};
use crate::{Row, StoreError, Tx, params};

const CAMPAIGN: &str = "
    SELECT campaign_name, organization_id, category_id, starts_at, ends_at, every_channel
    FROM drops_campaigns WHERE campaign_id = $1";

const CAMPAIGN_CHANNELS: &str = "
    SELECT channel_id FROM drops_campaign_channels WHERE campaign_id = $1 ORDER BY channel_id";

const DELETE_CAMPAIGN_CHANNELS: &str = "DELETE FROM drops_campaign_channels WHERE campaign_id = $1";

/// Inserts nothing if the channel does not exist.
const PUT_CAMPAIGN_CHANNEL: &str = "
    INSERT INTO drops_campaign_channels (campaign_id, channel_id)
    SELECT $1, channel_id FROM channels WHERE channel_id = $2 AND deleted_at IS NULL";

/// What a campaign offers, and which of it a viewer has claimed.
const REWARDS: &str = "
    SELECT r.reward_id, r.reward_name, r.watch_minutes, k.claim_id
    FROM drops_rewards r
    LEFT JOIN reward_claims k
        ON k.campaign_id = r.campaign_id AND k.reward_id = r.reward_id AND k.channel_id = $2
    WHERE r.campaign_id = $1 AND r.claimable
    ORDER BY r.watch_minutes, r.reward_id";

/// One row for a channel that exists: how many of the viewers do, and what it has on air.
const WATCHABLE: &str = concat!(
    "SELECT (SELECT COUNT(*) FROM channels WHERE channel_id IN ",
    hundred_ids!(),
    " AND deleted_at IS NULL), l.channel_id IS NOT NULL, l.category_id
    FROM channels h LEFT JOIN lives l ON l.channel_id = h.channel_id
    WHERE h.channel_id = $101 AND h.deleted_at IS NULL"
);

/// The statement that adds minutes checks their conditions, and adds to the stored minutes, so concurrent
/// additions are not lost. It locks rows in one order, so that two of them never wait for each other in a
/// circle.
const ACCRUE: &str = concat!(
    "INSERT INTO watched_minutes (campaign_id, channel_id, minutes)
    SELECT c.campaign_id, v.channel_id, CAST($102 AS BIGINT)
    FROM lives l
    JOIN drops_campaigns c ON c.category_id = l.category_id
    JOIN channels v ON v.channel_id IN ",
    hundred_ids!(),
    " WHERE l.channel_id = $101 AND v.deleted_at IS NULL AND c.disabled_at IS NULL
        AND (c.starts_at IS NULL OR c.starts_at <= $103) AND (c.ends_at IS NULL OR c.ends_at > $103)
        AND (c.every_channel OR EXISTS (SELECT 1 FROM drops_campaign_channels p
            WHERE p.campaign_id = c.campaign_id AND p.channel_id = l.channel_id))
    ORDER BY v.channel_id, c.campaign_id
    ON CONFLICT (campaign_id, channel_id) DO UPDATE SET minutes = watched_minutes.minutes + excluded.minutes
    RETURNING campaign_id, channel_id, minutes"
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

impl Tx {
    /// A campaign without its rewards and channels.
    pub async fn campaign(&mut self, id: &CampaignId) -> Result<Option<Campaign>, StoreError> {
        let campaign = |row: Row| {
            let every_channel: bool = row.get(5)?;
            Ok(Campaign {
                campaign_id: id.clone(),
                name: row.get(0)?,
                organization_id: row.get(1)?,
                category_id: row.get(2)?,
                period: period_at(&row, 3)?,
                channels: (!every_channel).then(Vec::new),
                rewards: Vec::new(),
            })
        };
        self.query_opt(CAMPAIGN, params![id]).await?.map(campaign).transpose()
    }

    /// The channels that a campaign names.
    pub async fn campaign_channels(&mut self, id: &CampaignId) -> Result<Vec<ChannelId>, StoreError> {
        let rows = self.query(CAMPAIGN_CHANNELS, params![id]).await?;
        rows.iter().map(|row| row.get(0)).collect()
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
        let watchable = |row: Row| {
            let category: Option<String> = row.get(2)?;
            let category_id = category.map(CategoryId::stored);
            Ok(Watchable { viewers: row.get(0)?, on_air: row.get(1)?, category_id })
        };
        self.query_opt(WATCHABLE, &values).await?.map(watchable).transpose()
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
        let watched =
            |row: &Row| Ok(Watched { campaign_id: row.get(0)?, viewer: row.get(1)?, minutes: row.get(2)? });
        self.query(ACCRUE, &values).await?.iter().map(watched).collect()
    }

    /// Minutes that a viewer has watched for a campaign; `None` if either does not exist.
    pub async fn watched_minutes(
        &mut self,
        campaign: &CampaignId,
        viewer: &ChannelId,
    ) -> Result<Option<i64>, StoreError> {
        self.query_opt(WATCHED_MINUTES, params![campaign, viewer]).await?.map(|row| row.get(0)).transpose()
    }

    /// The rewards of a campaign that can be claimed, those with the fewest minutes first, with the claims of
    /// a viewer.
    pub async fn reward_progress(
        &mut self,
        campaign: &CampaignId,
        viewer: Option<&ChannelId>,
    ) -> Result<Vec<RewardProgress>, StoreError> {
        let progress = |row: &Row| {
            let claim_id: Option<String> = row.get(3)?;
            let reward_id = row.get(0)?;
            let reward = Reward { reward_id, name: row.get(1)?, watch_minutes: row.get(2)? };
            Ok(RewardProgress { reward, claim_id: claim_id.map(ClaimId::stored) })
        };
        self.query(REWARDS, params![campaign, viewer]).await?.iter().map(progress).collect()
    }
}

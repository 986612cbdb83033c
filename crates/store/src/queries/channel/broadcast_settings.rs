//! Broadcast settings: the title, category and tags of a channel's lives without their own.

use domain::live::Category;
use domain::{CategoryId, ChannelId};

use crate::queries::columns::{Select, columns, sql};
use crate::queries::lives::{joined_tags, stored_tags};
use crate::{StoreError, Tx, params};

const OF_CHANNEL: &str = sql!(
    "SELECT ",
    BroadcastSetting::COLUMNS,
    "
    FROM channels c
    LEFT JOIN broadcast_settings s ON s.channel_id = c.channel_id
    LEFT JOIN categories k ON k.category_id = s.category_id
    WHERE c.channel_id = $1 AND c.deleted_at IS NULL"
);

const LOCK: &str = "
    INSERT INTO broadcast_settings (channel_id, default_live_title, tags) VALUES ($1, '', '')
    ON CONFLICT (channel_id) DO UPDATE SET tags = broadcast_settings.tags";

const CHANGE: &str = "
    UPDATE broadcast_settings SET default_live_title = $2, category_id = $3, tags = $4 WHERE channel_id = $1";

/// Broadcast setting (`docs/spec/lives.md#broadcast-setting`). A channel that never set anything has an empty
/// title, no category, no tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadcastSetting {
    /// The channel's name, the title of a live without a title.
    pub channel_name: String,
    /// The title of its lives; empty when it never set one.
    pub default_live_title: String,
    /// Their category.
    pub category: Option<Category>,
    /// Their tags.
    pub tags: Vec<String>,
}

columns!(BroadcastSetting {
    channel_name: "c.channel_name",
    default_live_title: "COALESCE(s.default_live_title, '')",
    category: Category::COLUMNS,
    tags: "COALESCE(s.tags, '')" => stored_tags,
});

impl BroadcastSetting {
    /// The category's id.
    pub fn category_id(&self) -> Option<&CategoryId> {
        self.category.as_ref().map(|category| &category.category_id)
    }
}

impl Tx {
    /// The setting of a channel; `None` when there is no such channel.
    pub async fn broadcast_setting(
        &mut self,
        channel: &ChannelId,
    ) -> Result<Option<BroadcastSetting>, StoreError> {
        self.fetch_optional(OF_CHANNEL, params![channel]).await
    }

    /// Locks a channel's setting and live for the rest of the transaction. Values that were read before may
    /// have changed.
    pub async fn lock_broadcast_setting(&mut self, channel: &ChannelId) -> Result<(), StoreError> {
        self.execute(LOCK, params![channel]).await?;
        Ok(())
    }

    /// Replaces the setting of a channel that has a row; [`Tx::lock_broadcast_setting`] makes one.
    pub async fn change_broadcast_setting(
        &mut self,
        channel: &ChannelId,
        setting: &BroadcastSetting,
    ) -> Result<(), StoreError> {
        let tags = joined_tags(&setting.tags);
        let params = params![channel, &setting.default_live_title, setting.category_id(), tags];
        self.execute(CHANGE, params).await?;
        Ok(())
    }
}

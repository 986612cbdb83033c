//! Categories and lives: what the platform tells about itself.

use domain::{ChannelId, Timestamp};

use crate::{StoreError, Tx, params};

const PUT_CATEGORY: &str = "
    INSERT INTO categories (category_id, category_type, category_value, poster_image_url) VALUES ($1, $2, $3, $4)
    ON CONFLICT (category_id) DO UPDATE SET
        category_type = excluded.category_type, category_value = excluded.category_value,
        poster_image_url = excluded.poster_image_url";

const PUT_LIVE: &str = "
    INSERT INTO lives
        (channel_id, live_id, live_title, thumbnail_image_url, concurrent_user_count, adult, category_id, opened_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (channel_id) DO UPDATE SET
        live_title = excluded.live_title, thumbnail_image_url = excluded.thumbnail_image_url,
        concurrent_user_count = excluded.concurrent_user_count, adult = excluded.adult,
        category_id = excluded.category_id";

/// A category of lives.
#[derive(Clone, Debug)]
pub struct CategoryRecord {
    /// Its id.
    pub category_id: String,
    /// GAME, SPORTS or ETC.
    pub category_type: String,
    /// Its name.
    pub category_value: String,
    /// Its picture.
    pub poster_image_url: Option<String>,
}

/// A channel that is on air.
#[derive(Clone, Debug)]
pub struct LiveRecord {
    /// The channel.
    pub channel_id: ChannelId,
    /// The broadcast's number.
    pub live_id: i64,
    /// Its title.
    pub title: String,
    /// Its picture.
    pub thumbnail_image_url: Option<String>,
    /// Viewers right now.
    pub concurrent_user_count: i64,
    /// Whether it is for adults.
    pub adult: bool,
    /// Its category.
    pub category_id: Option<String>,
}

impl Tx {
    /// Makes or replaces a category.
    pub async fn put_category(&mut self, category: &CategoryRecord) -> Result<(), StoreError> {
        self.execute(
            PUT_CATEGORY,
            params![
                &category.category_id,
                &category.category_type,
                &category.category_value,
                &category.poster_image_url
            ],
        )
        .await?;
        Ok(())
    }

    /// Puts a channel on air, or changes what is on.
    pub async fn put_live(&mut self, live: &LiveRecord, now: Timestamp) -> Result<(), StoreError> {
        self.execute(
            PUT_LIVE,
            params![
                &live.channel_id,
                live.live_id,
                &live.title,
                &live.thumbnail_image_url,
                live.concurrent_user_count,
                live.adult,
                &live.category_id,
                now
            ],
        )
        .await?;
        Ok(())
    }
}

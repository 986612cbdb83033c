//! Lives, and the history of their viewer counts, so that the pages of a list keep the order of the first
//! page (`docs/adr/0006-live-list.md`).

use domain::live::Category;
use domain::{CategoryId, ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const NEXT_VERSION: &str = "UPDATE live_clock SET version = version + 1 WHERE clock_id = 1 RETURNING version";

const NEXT_LIVE_ID: &str =
    "UPDATE live_clock SET last_live_id = last_live_id + 1 WHERE clock_id = 1 RETURNING last_live_id";

const ON_AIR: &str = sql!("SELECT ", LiveOnAir::COLUMNS, " FROM lives WHERE channel_id = $1");

const BEGIN: &str = "
    INSERT INTO lives (channel_id, live_id, counted_since, live_title, thumbnail_image_url, concurrent_user_count,
        adult, category_id, tags, opened_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

const CHANGE: &str = "
    UPDATE lives SET counted_since = $2, live_title = $3, thumbnail_image_url = $4, concurrent_user_count = $5,
        adult = $6, category_id = $7, tags = $8
    WHERE channel_id = $1";

const CHANGE_DETAILS: &str =
    "UPDATE lives SET live_title = $2, category_id = $3, tags = $4 WHERE channel_id = $1";

const END: &str = "DELETE FROM lives WHERE channel_id = $1";

const OPEN_SPAN: &str = "
    INSERT INTO live_spans (live_id, viewer_rank, since_version, until_version)
    VALUES ($1, -CAST($2 AS BIGINT), $3, 9223372036854775807)";

const CLOSE_SPAN: &str = "
    UPDATE live_spans SET until_version = $3, closed_at = $4 WHERE live_id = $1 AND since_version = $2";

/// The current list with the number of its last change. One statement, so that the list and the number match.
const FIRST_PAGE: &str = sql!(
    "SELECT ",
    LiveListing::COLUMNS,
    "
    FROM (SELECT *, concurrent_user_count AS viewers FROM lives
          ORDER BY concurrent_user_count DESC, live_id LIMIT $1) l
    JOIN channels c ON c.channel_id = l.channel_id
    JOIN (SELECT version AS list_version FROM live_clock WHERE clock_id = 1) clock ON TRUE
    LEFT JOIN categories k ON k.category_id = l.category_id
    ORDER BY l.concurrent_user_count DESC, l.live_id"
);

/// The list as it was after change `$1`, after a position in it, without the lives that have ended since.
const NEXT_PAGE: &str = sql!(
    "SELECT ",
    LiveListing::COLUMNS,
    "
    FROM (SELECT live_id, viewer_rank, -viewer_rank AS viewers, CAST($1 AS BIGINT) AS list_version FROM live_spans
          WHERE (viewer_rank, live_id) > ($2, $3) AND since_version <= $1 AND until_version > $1
          ORDER BY viewer_rank, live_id LIMIT $4) s
    JOIN lives l ON l.live_id = s.live_id
    JOIN channels c ON c.channel_id = l.channel_id
    LEFT JOIN categories k ON k.category_id = l.category_id
    ORDER BY s.viewer_rank, s.live_id"
);

/// The data of a live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveShow {
    /// Its title.
    pub title: String,
    /// The address of its picture.
    pub thumbnail_image_url: Option<String>,
    /// Viewers right now.
    pub concurrent_user_count: i64,
    /// Whether it is for adults.
    pub adult: bool,
    /// Its category.
    pub category_id: Option<CategoryId>,
    /// Its tags.
    pub tags: Vec<String>,
}

columns!(LiveShow {
    title: "live_title",
    thumbnail_image_url: "thumbnail_image_url",
    concurrent_user_count: "concurrent_user_count",
    adult: "adult",
    category_id: "category_id",
    tags: "tags" => stored_tags,
});

/// A live under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveOnAir {
    /// Its number.
    pub live_id: i64,
    /// The change of the list that gave it its present viewer count.
    pub counted_since: i64,
    /// Its data.
    pub show: LiveShow,
}

columns!(LiveOnAir { live_id: "live_id", counted_since: "counted_since", show: LiveShow::COLUMNS });

/// An item of the live list.
#[derive(Clone, Debug)]
pub struct LiveListing {
    /// Its number.
    pub live_id: i64,
    /// Its title.
    pub title: String,
    /// The address of its picture.
    pub thumbnail_image_url: Option<String>,
    /// Its viewers after the change whose order the list has.
    pub concurrent_user_count: i64,
    /// When it went on air.
    pub opened_at: Timestamp,
    /// Whether it is for adults.
    pub adult: bool,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its category.
    pub category: Option<Category>,
    /// Its channel.
    pub channel_id: ChannelId,
    /// The channel's name.
    pub channel_name: String,
    /// The address of the channel's picture.
    pub channel_image_url: Option<String>,
    /// The change of the list whose order this is.
    pub version: i64,
}

columns!(LiveListing {
    live_id: "l.live_id",
    title: "l.live_title",
    thumbnail_image_url: "l.thumbnail_image_url",
    concurrent_user_count: "viewers",
    opened_at: "l.opened_at",
    adult: "l.adult",
    tags: "l.tags" => stored_tags,
    category: Category::COLUMNS,
    channel_id: "c.channel_id",
    channel_name: "c.channel_name",
    channel_image_url: "c.channel_image_url",
    version: "list_version",
});

/// A place in the list as it was after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePlace {
    /// That change.
    pub version: i64,
    /// The viewers of the live at this place.
    pub concurrent_user_count: i64,
    /// Its number.
    pub live_id: i64,
}

impl Tx {
    /// Takes the number of the next change of the list, and locks the list's changes for the rest of the
    /// transaction. So changes are committed in the order of their numbers.
    pub async fn next_live_version(&mut self) -> Result<i64, StoreError> {
        self.fetch_one(NEXT_VERSION, &[]).await
    }

    /// Takes the number of the next live.
    pub async fn next_live_id(&mut self) -> Result<i64, StoreError> {
        self.fetch_one(NEXT_LIVE_ID, &[]).await
    }

    /// The live of a channel.
    pub async fn live_on_air(&mut self, channel: &ChannelId) -> Result<Option<LiveOnAir>, StoreError> {
        self.fetch_optional(ON_AIR, params![channel]).await
    }

    /// Starts a channel's live. Its viewer count needs a span from the same change on.
    pub async fn begin_live(
        &mut self,
        channel: &ChannelId,
        live: &LiveOnAir,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let LiveOnAir { live_id, counted_since, show } = live;
        self.execute(
            BEGIN,
            params![
                channel,
                *live_id,
                *counted_since,
                &show.title,
                &show.thumbnail_image_url,
                show.concurrent_user_count,
                show.adult,
                show.category_id.as_ref(),
                joined_tags(&show.tags),
                now
            ],
        )
        .await?;
        Ok(())
    }

    /// Changes a channel's live.
    pub async fn change_live(&mut self, channel: &ChannelId, live: &LiveOnAir) -> Result<(), StoreError> {
        let LiveOnAir { counted_since, show, .. } = live;
        self.execute(
            CHANGE,
            params![
                channel,
                *counted_since,
                &show.title,
                &show.thumbnail_image_url,
                show.concurrent_user_count,
                show.adult,
                show.category_id.as_ref(),
                joined_tags(&show.tags)
            ],
        )
        .await?;
        Ok(())
    }

    /// Changes the title, category and tags of a channel's live.
    pub async fn change_live_details(
        &mut self,
        channel: &ChannelId,
        title: &str,
        category: Option<&CategoryId>,
        tags: &[String],
    ) -> Result<(), StoreError> {
        self.execute(CHANGE_DETAILS, params![channel, title, category, joined_tags(tags)]).await?;
        Ok(())
    }

    /// Ends a channel's live and deletes its spans: `false` if there is no live.
    pub async fn end_live(&mut self, channel: &ChannelId) -> Result<bool, StoreError> {
        Ok(self.execute(END, params![channel]).await? > 0)
    }

    /// Begins a span: from change `since` on, a live has this viewer count.
    pub async fn open_live_span(&mut self, live_id: i64, count: i64, since: i64) -> Result<(), StoreError> {
        self.execute(OPEN_SPAN, params![live_id, count, since]).await?;
        Ok(())
    }

    /// Ends a span: the viewer count that a live has had since change `since` changes at `until`.
    pub async fn close_live_span(
        &mut self,
        live_id: i64,
        since: i64,
        until: i64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(CLOSE_SPAN, params![live_id, since, until, now]).await?;
        Ok(())
    }

    /// The first `limit` lives of the current list.
    pub async fn first_lives(&mut self, limit: i64) -> Result<Vec<LiveListing>, StoreError> {
        self.fetch_all(FIRST_PAGE, params![limit]).await
    }

    /// The next `limit` lives after a position in the list of that time, without those that have ended.
    pub async fn next_lives(&mut self, after: LivePlace, limit: i64) -> Result<Vec<LiveListing>, StoreError> {
        let rank = -after.concurrent_user_count;
        self.fetch_all(NEXT_PAGE, params![after.version, rank, after.live_id, limit]).await
    }
}

/// Joins tags. No tag contains a space (`domain::live::distinct_tags`).
pub(crate) fn joined_tags(tags: &[String]) -> String {
    tags.join(" ")
}

pub(crate) fn stored_tags(joined: &str) -> Vec<String> {
    joined.split(' ').filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

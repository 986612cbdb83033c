//! Lives, and the history of their viewer counts, so that the pages of a list keep the order of the first
//! page (`docs/adr/0006-live-list.md`).

use std::fmt;

use domain::live::Category;
use domain::{CategoryId, ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// The number of clocks. The numbers of clock `n` are those with the remainder `n`, as in the statements
/// below.
const CLOCKS: i64 = 32;

/// The digits of a number in the text of [`LiveVersions::padded`].
const DIGITS: usize = 19;

/// The first clock, which is the only one that SQLite's one writer needs.
const NEXT_VERSION: &str =
    "UPDATE live_clocks SET version = version + 32 WHERE clock_id = 0 RETURNING version";

/// A clock that no other transaction has, with the lowest numbers; first the one `$1` that this transaction
/// has already. When others have all clocks, the transaction waits for one of them.
const NEXT_VERSION_OF_FREE_CLOCK: &str = "
    UPDATE live_clocks SET version = version + 32
    WHERE clock_id = COALESCE(
        (SELECT clock_id FROM live_clocks ORDER BY clock_id = $1 DESC, version LIMIT 1 FOR UPDATE SKIP LOCKED),
        pg_backend_pid() % 32)
    RETURNING version";

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

/// The current list with the last number of each clock. One statement, so that the list and the numbers
/// match.
const FIRST_PAGE: &str = sql!(
    "SELECT ",
    LiveListing::COLUMNS,
    ", list_versions
    FROM (SELECT *, concurrent_user_count AS viewers FROM lives
          ORDER BY concurrent_user_count DESC, live_id LIMIT $1) l
    JOIN channels c ON c.channel_id = l.channel_id
    JOIN (SELECT string_agg(CAST(version AS TEXT), ',' ORDER BY clock_id) AS list_versions FROM live_clocks) clocks
        ON TRUE
    LEFT JOIN categories k ON k.category_id = l.category_id
    ORDER BY l.concurrent_user_count DESC, l.live_id"
);

/// The list as it was when the clocks had the numbers `$1`, after a position in it, without the lives that
/// have ended since. A number is compared with the one of its own clock.
const NEXT_PAGE: &str = sql!(
    "SELECT ",
    LiveListing::COLUMNS,
    "
    FROM (SELECT live_id, viewer_rank, -viewer_rank AS viewers FROM live_spans
          WHERE (viewer_rank, live_id) > ($2, $3)
            AND since_version
                <= CAST(substr(CAST($1 AS TEXT), CAST(since_version % 32 AS INTEGER) * 19 + 1, 19) AS BIGINT)
            AND until_version
                > CAST(substr(CAST($1 AS TEXT), CAST(until_version % 32 AS INTEGER) * 19 + 1, 19) AS BIGINT)
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
});

/// The numbers of the last changes of the list: one of each clock, or one number for all clocks. A reader who
/// sees them sees all changes up to them and none after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveVersions(Vec<i64>);

impl LiveVersions {
    /// Reads what [`Display`](fmt::Display) writes, or one number.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<i64> = text.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        let is_complete = numbers.len() == 1 || numbers.len() == CLOCKS as usize;
        (is_complete && numbers.iter().all(|number| *number >= 0)).then_some(Self(numbers))
    }

    /// The numbers of all clocks, each with the same count of digits.
    fn padded(&self) -> String {
        let numbers = self.0.iter().cycle().take(CLOCKS as usize);
        numbers.map(|number| format!("{number:0DIGITS$}")).collect()
    }
}

impl fmt::Display for LiveVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(i64::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

/// The first page of the list.
#[derive(Clone, Debug)]
pub struct FirstLives {
    /// The numbers of the changes that it shows. `None` when it is empty.
    pub versions: Option<LiveVersions>,
    /// Its lives.
    pub lives: Vec<LiveListing>,
}

/// The clock of a transaction that has changed the list.
#[derive(Default)]
struct TakenClock(Option<i64>);

/// A place in the list as it was after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePlace {
    /// The last changes that it shows.
    pub versions: LiveVersions,
    /// The viewers of the live at this place.
    pub concurrent_user_count: i64,
    /// Its number.
    pub live_id: i64,
}

impl Tx {
    /// Takes the number of the next change of the list, and locks its clock for the rest of the transaction.
    /// So the changes of a clock are committed in the order of their numbers.
    pub async fn next_live_version(&mut self) -> Result<i64, StoreError> {
        if self.writes_alone() {
            return self.fetch_one(NEXT_VERSION, &[]).await;
        }
        let taken = self.notes::<TakenClock>().0.unwrap_or(-1);
        let version: i64 = self.fetch_one(NEXT_VERSION_OF_FREE_CLOCK, params![taken]).await?;
        self.notes::<TakenClock>().0 = Some(version % CLOCKS);
        Ok(version)
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
    pub async fn first_lives(&mut self, limit: i64) -> Result<FirstLives, StoreError> {
        let rows: Vec<(LiveListing, String)> = self.fetch_all(FIRST_PAGE, params![limit]).await?;
        let (lives, versions): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let versions = versions.first().and_then(|text| LiveVersions::parse(text));
        Ok(FirstLives { versions, lives })
    }

    /// The next `limit` lives after a position in the list of that time, without those that have ended.
    pub async fn next_lives(
        &mut self,
        after: &LivePlace,
        limit: i64,
    ) -> Result<Vec<LiveListing>, StoreError> {
        let rank = -after.concurrent_user_count;
        self.fetch_all(NEXT_PAGE, params![after.versions.padded(), rank, after.live_id, limit]).await
    }
}

/// Joins tags. No tag contains a space (`domain::live::distinct_tags`).
pub(crate) fn joined_tags(tags: &[String]) -> String {
    tags.join(" ")
}

pub(crate) fn stored_tags(joined: &str) -> Vec<String> {
    joined.split(' ').filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

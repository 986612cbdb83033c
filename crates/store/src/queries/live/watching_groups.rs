//! Many reports of watched minutes in one statement that is a transaction of its own, on PostgreSQL
//! (`docs/adr/0030-requests-of-a-kind-share-a-commit.md`). SQLite's writer commits waiting
//! requests together by itself.

use domain::{CategoryId, ChannelId, Timestamp};

use crate::queries::columns::{Select, sql};
use crate::queries::locks::Shared;
use crate::queries::watching::Watched;
use crate::{StoreError, Tx, Value};

/// Adds the minutes of the reports whose channel and viewers all exist, under the shared lock of watched
/// minutes. The conditions are those of a single report. Minutes of one viewer in several reports are added
/// up, and each report gets the sum up to itself. Rows are locked in the order of a single report.
const ADD: &str = sql!(
    "
    WITH lock AS MATERIALIZED (
        SELECT pg_advisory_xact_lock_shared(
            CAST($1 AS BIGINT) # hashtextextended(current_schema(), 0)) IS NOT NULL AS is_held
    ), reports AS MATERIALIZED (
        SELECT * FROM unnest(CAST($2 AS TEXT[]), CAST($3 AS BIGINT[]), CAST($4 AS BIGINT[]))
            WITH ORDINALITY AS rows (host_id, reported, viewers, place)
    ), viewers AS MATERIALIZED (
        SELECT DISTINCT v.place, c.channel_id AS viewer_id
        FROM unnest(CAST($5 AS BIGINT[]), CAST($6 AS TEXT[])) AS v (place, viewer_id)
        JOIN channels c ON c.channel_id = v.viewer_id AND c.deleted_at IS NULL
    ), known AS MATERIALIZED (
        SELECT r.place, r.host_id, r.reported, l.channel_id IS NOT NULL AS on_air, l.category_id
        FROM lock
        JOIN reports r ON lock.is_held
        JOIN (SELECT place, COUNT(*) AS viewers FROM viewers GROUP BY place) v
            ON v.place = r.place AND v.viewers = r.viewers
        JOIN channels h ON h.channel_id = r.host_id AND h.deleted_at IS NULL
        LEFT JOIN lives l ON l.channel_id = r.host_id
    ), counted AS MATERIALIZED (
        SELECT k.place, c.campaign_id, v.viewer_id, k.reported
        FROM known k
        JOIN viewers v ON v.place = k.place
        JOIN drops_campaigns c ON c.category_id = k.category_id
        WHERE c.disabled_at IS NULL
            AND (c.starts_at IS NULL OR c.starts_at <= $7) AND (c.ends_at IS NULL OR c.ends_at > $7)
            AND (c.every_channel OR EXISTS (SELECT 1 FROM drops_campaign_channels p
                WHERE p.campaign_id = c.campaign_id AND p.channel_id = k.host_id))
    ), added AS (
        INSERT INTO watched_minutes (campaign_id, channel_id, minutes)
        SELECT campaign_id, viewer_id, CAST(SUM(reported) AS BIGINT) FROM counted
        GROUP BY campaign_id, viewer_id ORDER BY viewer_id, campaign_id
        ON CONFLICT (campaign_id, channel_id)
            DO UPDATE SET minutes = watched_minutes.minutes + excluded.minutes
        RETURNING campaign_id, channel_id, minutes
    )
    SELECT k.place - 1, k.on_air, k.category_id, ",
    Watched::COLUMNS,
    " FROM known k LEFT JOIN (
        SELECT c.place, c.campaign_id, c.viewer_id AS channel_id, a.minutes - CAST(COALESCE(
            SUM(c.reported) OVER (PARTITION BY c.campaign_id, c.viewer_id ORDER BY c.place
                ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), 0) AS BIGINT) AS minutes
        FROM counted c JOIN added a ON a.campaign_id = c.campaign_id AND a.channel_id = c.viewer_id
    ) w ON w.place = k.place"
);

/// A report of watched minutes.
#[derive(Clone, Copy, Debug)]
pub struct MinutesReport<'a> {
    /// The channel of the watched live.
    pub channel: &'a ChannelId,
    /// The viewers.
    pub viewers: &'a [ChannelId],
    /// The minutes.
    pub minutes: i64,
}

/// What became of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedMinutes {
    /// Whether the channel is on air.
    pub on_air: bool,
    /// The category of what it has on air.
    pub category_id: Option<CategoryId>,
    /// The minutes that the viewers have now, in the order of campaigns and viewers.
    pub watched: Vec<Watched>,
}

impl Tx {
    /// Adds the minutes of many reports, and commits. `None` for a report whose channel does not exist, or
    /// one of whose viewers does not exist or is named twice: nothing is added then. It is the only statement
    /// of its transaction.
    pub async fn add_reported_minutes(
        &mut self,
        reports: &[MinutesReport<'_>],
        now: Timestamp,
    ) -> Result<Vec<Option<AddedMinutes>>, StoreError> {
        let count = |report: &MinutesReport<'_>| i64::try_from(report.viewers.len()).ok();
        let viewers = (1..).zip(reports).flat_map(|(place, report)| {
            report.viewers.iter().map(move |viewer| (Some(place), viewer.as_str().into()))
        });
        let (places, viewers) = viewers.unzip();
        let params = [
            Shared::WatchedMinutes.number().into(),
            Value::Texts(reports.iter().map(|report| report.channel.as_str().into()).collect()),
            Value::Ints(reports.iter().map(|report| Some(report.minutes)).collect()),
            Value::Ints(reports.iter().map(count).collect()),
            Value::Ints(places),
            Value::Texts(viewers),
            now.into(),
        ];
        let mut added: Vec<Option<AddedMinutes>> = vec![None; reports.len()];
        type Row = (i64, bool, Option<CategoryId>, Option<Watched>);
        for (place, on_air, category_id, watched) in self.fetch_with_commit::<Row>(ADD, &params).await? {
            let of_place = usize::try_from(place).ok().and_then(|place| added.get_mut(place));
            let of_place = of_place.ok_or(StoreError::Misuse("a row's place is not in its list"))?;
            let report = AddedMinutes { on_air, category_id, watched: Vec::new() };
            of_place.get_or_insert(report).watched.extend(watched);
        }
        added.iter_mut().flatten().for_each(|report| report.watched.sort());
        Ok(added)
    }
}

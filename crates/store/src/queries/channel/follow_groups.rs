//! Many follows and unfollows of several channels in one transaction, on PostgreSQL
//! (`docs/adr/0030-requests-of-a-kind-share-a-commit.md`). SQLite's writer commits waiting
//! requests together by itself.

use std::collections::{BTreeMap, BTreeSet};

use domain::{ChannelId, Timestamp};

use crate::queries::columns::{Select, sql};
use crate::queries::list_blocks::{BEFORE_ALL, Block, List};
use crate::{StoreError, Tx, Value};

/// Rows are locked in the order of the ids, as an UPDATE of their lists' counts does.
const LOCK: &str = "
    SELECT channel_id FROM channels WHERE channel_id = ANY(CAST($1 AS TEXT[])) AND deleted_at IS NULL
    ORDER BY channel_id FOR NO KEY UPDATE";
const LOCK_FREE: &str = sql!(LOCK, " SKIP LOCKED");

/// Writes the changes whose followers exist, counts them, and counts them in the blocks of the lists. Gives a
/// row for each of these changes, with the date of a follow that existed before, and a row for each block
/// whose count was written.
const CHANGE: &str = sql!(
    "
    WITH asked AS MATERIALIZED (
        SELECT a.* FROM unnest(
            CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[]), CAST($4 AS BOOLEAN[])
        ) WITH ORDINALITY AS a (channel_id, follower_id, at, follows, place)
        JOIN channels f ON f.channel_id = a.follower_id AND f.deleted_at IS NULL
    ), inserted AS (
        INSERT INTO followers (channel_id, follower_channel_id, created_at, newest_rank)
        SELECT channel_id, follower_id, at, -at FROM asked WHERE follows
        ON CONFLICT (channel_id, follower_channel_id) DO NOTHING
        RETURNING channel_id, follower_channel_id, newest_rank
    ), deleted AS (
        DELETE FROM followers e USING asked a
        WHERE NOT a.follows AND e.channel_id = a.channel_id AND e.follower_channel_id = a.follower_id
        RETURNING e.channel_id, e.follower_channel_id, e.newest_rank
    ), changed AS MATERIALIZED (
        SELECT *, 1 AS change FROM inserted UNION ALL SELECT *, -1 FROM deleted
    ), counted AS (
        UPDATE channels c SET follower_count = follower_count + n.change
        FROM (SELECT channel_id, SUM(change) AS change FROM changed GROUP BY channel_id) n
        WHERE c.channel_id = n.channel_id
    ), levels AS (
        SELECT CAST(level AS BIGINT) AS level FROM generate_series(1, 3) AS level
    ), touched AS MATERIALIZED (
        SELECT c.channel_id, l.level, b.first_rank, b.first_id, SUM(c.change) AS change
        FROM changed c CROSS JOIN levels l CROSS JOIN LATERAL (
            SELECT first_rank, first_id FROM list_blocks
            WHERE channel_id = c.channel_id AND list = $5 AND level = l.level
                AND (first_rank, first_id) <= (c.newest_rank, c.follower_channel_id)
            ORDER BY first_rank DESC, first_id DESC LIMIT 1) b
        GROUP BY c.channel_id, l.level, b.first_rank, b.first_id
    ), blocks AS (
        UPDATE list_blocks b SET items = b.items + t.change FROM touched t
        WHERE b.channel_id = t.channel_id AND b.list = $5 AND b.level = t.level
            AND b.first_rank = t.first_rank AND b.first_id = t.first_id
        RETURNING b.channel_id, b.level, b.first_rank, b.first_id, b.items
    ), first_blocks AS (
        INSERT INTO list_blocks (channel_id, list, level, first_rank, first_id, items)
        SELECT c.channel_id, $5, l.level, $6, '', SUM(c.change)
        FROM changed c CROSS JOIN levels l
        WHERE NOT EXISTS (SELECT 1 FROM list_blocks b WHERE b.channel_id = c.channel_id AND b.list = $5)
        GROUP BY c.channel_id, l.level
        RETURNING channel_id, level, first_rank, first_id, items
    )
    SELECT CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), channel_id, ",
    Block::COLUMNS,
    " FROM (SELECT * FROM blocks UNION ALL SELECT * FROM first_blocks) b
    UNION ALL
    SELECT a.place - 1, e.created_at, a.channel_id, 0, 0, '', 0
    FROM asked a LEFT JOIN followers e ON e.channel_id = a.channel_id AND e.follower_channel_id = a.follower_id"
);

/// A follow or an unfollow.
#[derive(Clone, Copy, Debug)]
pub struct FollowRow<'a> {
    /// The channel.
    pub channel: &'a ChannelId,
    /// The follower.
    pub follower: &'a ChannelId,
    /// The date of a follow; `None` for an unfollow.
    pub follows_at: Option<Timestamp>,
}

/// What became of a follow or an unfollow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowWritten {
    /// The follower does not exist. Nothing was written.
    UnknownFollower,
    /// It was written. A follow that existed since that time stays as it was.
    Written {
        /// Since when the follow existed before the change.
        followed_since: Option<Timestamp>,
    },
}

impl Tx {
    /// [Locks](Self::lock_channel) the channels that exist, and gives them. It leaves out those that another
    /// transaction has locked, unless it `waits`.
    pub async fn lock_channels(
        &mut self,
        channels: &BTreeSet<&ChannelId>,
        waits: bool,
    ) -> Result<BTreeSet<ChannelId>, StoreError> {
        let ids = channels.iter().map(|channel| channel.as_str().into()).collect();
        let sql = if waits { LOCK } else { LOCK_FREE };
        Ok(self.fetch_all(sql, &[Value::Texts(ids)]).await?.into_iter().collect())
    }

    /// Writes follows and unfollows of [locked](Self::lock_channels) channels, each pair of channels once,
    /// and counts them.
    pub async fn change_follows(
        &mut self,
        changes: &[FollowRow<'_>],
    ) -> Result<Vec<FollowWritten>, StoreError> {
        let params = [
            Value::Texts(changes.iter().map(|change| change.channel.as_str().into()).collect()),
            Value::Texts(changes.iter().map(|change| change.follower.as_str().into()).collect()),
            Value::Ints(changes.iter().map(|it| it.follows_at.map(Timestamp::as_millis)).collect()),
            Value::Bools(changes.iter().map(|it| it.follows_at.is_some()).collect()),
            List::Followers.name().into(),
            BEFORE_ALL.into(),
        ];
        let mut written = vec![FollowWritten::UnknownFollower; changes.len()];
        let mut blocks = BTreeMap::<ChannelId, Vec<Block>>::new();
        for (place, followed_since, channel, block) in self.fetch_all::<ChangedRow>(CHANGE, &params).await? {
            let Some(place) = place else {
                blocks.entry(channel).or_default().push(block);
                continue;
            };
            let of_place = usize::try_from(place).ok().and_then(|place| written.get_mut(place));
            let of_place = of_place.ok_or(StoreError::Misuse("a row's place is not in its list"))?;
            *of_place = FollowWritten::Written { followed_since };
        }
        for (channel, blocks) in blocks {
            self.mend_blocks(List::Followers, &channel, blocks).await?;
        }
        Ok(written)
    }
}

/// The place of a change and the date of its follow, or a block.
type ChangedRow = (Option<i64>, Option<Timestamp>, ChannelId, Block);

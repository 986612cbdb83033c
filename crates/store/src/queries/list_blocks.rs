//! Pages of long lists (`docs/adr/0004-deep-pages.md`). The cost of a page must not depend on the number of
//! rows before it. So each list counts its rows in blocks (table `list_blocks`), like a B-tree with counts.
//!
//! There are three levels: blocks of rows, blocks of blocks, and blocks of those. An inserted or deleted row
//! changes one count on each level. A block that is too full is split in two. An empty block is merged into
//! the one before it. A position is found by adding up counts from the top level, over some dozens of index
//! entries. All changes happen under the channel's lock ([`Tx::lock_channel`]).

use std::collections::HashSet;

use domain::ChannelId;
#[cfg(test)]
use domain::limits::FOLLOWER_LIST_SIZE_MAX;

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// The most items of a block, by level from the bottom. Each level has 32 times the one below.
const BLOCK_ITEMS_MAX: [i64; 3] = [128, 4_096, 131_072];

/// The rank where the first block of a list begins: before every row. The migration has the same. It is the
/// smallest number plus one, because PostgreSQL has no literal for the smallest.
pub(super) const BEFORE_ALL: i64 = -9_223_372_036_854_775_807;

/// Blocks that one statement reads: as many as a half full block of half full blocks has.
const BLOCKS_AT_ONCE: i64 = 32;

/// The next blocks of a level from a position on.
const BLOCKS_FROM: &str = sql!(
    "SELECT ",
    Block::COLUMNS,
    " FROM list_blocks
    WHERE channel_id = $1 AND list = $2 AND level = $3 AND (first_rank, first_id) >= ($4, $5)
    ORDER BY first_rank, first_id LIMIT $6"
);

/// A statement that selects from the page (`p`: `rank`, `id`) of `$4` rows, `$5` rows after position `($2,
/// $3)` of a list of channel `$1`. The inner limit is the size of a block and a page. It is a constant, so
/// that PostgreSQL chooses an index scan.
macro_rules! page_sql {
    ($table:literal, $rank:literal, $id:literal, $columns:expr, $joined:literal) => {
        sql!(
            "SELECT ",
            $columns,
            " FROM (
                SELECT rank, id FROM (
                    SELECT ",
            $rank,
            " AS rank, ",
            $id,
            " AS id FROM ",
            $table,
            "
                    WHERE channel_id = $1 AND (",
            $rank,
            ", ",
            $id,
            ") >= ($2, $3)
                    ORDER BY ",
            $rank,
            ", ",
            $id,
            " LIMIT 178
                ) block ORDER BY rank, id LIMIT $4 OFFSET $5
            ) p ",
            $joined,
            " ORDER BY p.rank, p.id"
        )
    };
}
pub(super) use page_sql;

/// The first position of a block that begins `$4` rows after `($2, $3)`.
macro_rules! row_at_sql {
    ($table:literal, $rank:literal, $id:literal) => {
        sql!(
            "SELECT ",
            $rank,
            ", ",
            $id,
            " FROM ",
            $table,
            " WHERE channel_id = $1 AND (",
            $rank,
            ", ",
            $id,
            ") >= ($2, $3) ORDER BY ",
            $rank,
            ", ",
            $id,
            " LIMIT 1 OFFSET $4"
        )
    };
}
const FOLLOWER_AT: &str = row_at_sql!("followers", "newest_rank", "follower_channel_id");
const NEWEST_SUBSCRIBER_AT: &str = row_at_sql!("subscribers", "newest_rank", "subscriber_channel_id");
const LONGEST_SUBSCRIBER_AT: &str = row_at_sql!("subscribers", "longest_rank", "subscriber_channel_id");

/// The block of a level that contains a position is the last one that does not begin after it. One statement
/// for each level: for several levels at once SQLite reads every block of the list.
const COUNT: &str = sql!(
    "
    UPDATE list_blocks SET items = items + $6
    WHERE channel_id = $1 AND list = $2 AND level = $3 AND (first_rank, first_id) = (
        SELECT first_rank, first_id FROM list_blocks
        WHERE channel_id = $1 AND list = $2 AND level = $3 AND (first_rank, first_id) <= ($4, $5)
        ORDER BY first_rank DESC, first_id DESC LIMIT 1)
    RETURNING ",
    Block::COLUMNS
);

const INSERT_FIRST: &str = "
    INSERT INTO list_blocks (channel_id, list, level, first_rank, first_id, items)
    VALUES ($1, $2, 1, $3, '', 1), ($1, $2, 2, $3, '', 1), ($1, $2, 3, $3, '', 1)";

/// The split is at a block of the level below that begins in the second half of `$7` items. The first one is
/// the nearest to the middle.
const LOWER_BLOCK_AT: &str = "
    SELECT first_rank, first_id, before FROM (
        SELECT first_rank, first_id, CAST(SUM(items) OVER (
            ORDER BY first_rank, first_id ROWS UNBOUNDED PRECEDING) AS BIGINT) - items AS before
        FROM list_blocks
        WHERE channel_id = $1 AND list = $2 AND level = $3 AND (first_rank, first_id) >= ($4, $5)
    ) b WHERE before >= $6 AND before < $7 LIMIT 1";

const INSERT_BLOCK: &str = "
    INSERT INTO list_blocks (channel_id, list, level, first_rank, first_id, items) VALUES ($1, $2, $3, $4, $5, $6)";

const SHRINK_BLOCK: &str = "
    UPDATE list_blocks SET items = $6
    WHERE channel_id = $1 AND list = $2 AND level = $3 AND first_rank = $4 AND first_id = $5";

/// The block, and all blocks below that begin at the same position.
const DELETE_BLOCK: &str = "
    DELETE FROM list_blocks
    WHERE channel_id = $1 AND list = $2 AND level IN (1, 2, 3) AND level <= $3 AND first_rank = $4 AND first_id = $5";

const COUNT_LISTED: &str = "
    SELECT CAST(COALESCE(SUM(items), 0) AS BIGINT) FROM list_blocks
    WHERE channel_id = $1 AND list = $2 AND level = 3";

/// A list of a channel, in one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// Followers, the newest first.
    Followers,
    /// Subscribers, the newest first.
    NewestSubscribers,
    /// Subscribers, those of the most months first.
    LongestSubscribers,
}

impl List {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Followers => "FOLLOWERS",
            Self::NewestSubscribers => "SUBSCRIBERS_NEWEST",
            Self::LongestSubscribers => "SUBSCRIBERS_LONGEST",
        }
    }

    fn row_at(self) -> &'static str {
        match self {
            Self::Followers => FOLLOWER_AT,
            Self::NewestSubscribers => NEWEST_SUBSCRIBER_AT,
            Self::LongestSubscribers => LONGEST_SUBSCRIBER_AT,
        }
    }
}

/// A row's position, and the number of rows from there to the page, which is less than a block.
#[derive(Debug)]
pub(crate) struct Start {
    pub rank: i64,
    pub id: String,
    pub behind: i64,
}

/// A block of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    level: i64,
    first: (i64, String),
    items: i64,
}

columns!(Block { level: "level", first: "first_rank, first_id", items: "items" });

impl Block {
    fn is_too_full(&self) -> bool {
        let max = usize::try_from(self.level - 1).ok().and_then(|level| BLOCK_ITEMS_MAX.get(level));
        max.is_some_and(|max| self.items > *max)
    }

    fn begins_its_list(&self) -> bool {
        self.first.0 == BEFORE_ALL
    }
}

impl Tx {
    /// Counts a row that was inserted into its list at `(rank, id)`.
    pub(super) async fn enter_list(
        &mut self,
        list: List,
        channel: &ChannelId,
        rank: i64,
        id: &ChannelId,
    ) -> Result<(), StoreError> {
        let blocks = self.count_at(list, channel, rank, id, 1).await?;
        if blocks.is_empty() {
            self.execute(INSERT_FIRST, params![channel, list.name(), BEFORE_ALL]).await?;
        }
        self.mend_blocks(list, channel, blocks).await
    }

    /// Counts a row that was deleted from its list at `(rank, id)`.
    pub(super) async fn leave_list(
        &mut self,
        list: List,
        channel: &ChannelId,
        rank: i64,
        id: &ChannelId,
    ) -> Result<(), StoreError> {
        let blocks = self.count_at(list, channel, rank, id, -1).await?;
        self.mend_blocks(list, channel, blocks).await
    }

    /// Splits blocks that are too full, and merges empty ones into those before them. The blocks are those of
    /// all levels that contain the positions of inserted or deleted rows.
    pub(super) async fn mend_blocks(
        &mut self,
        list: List,
        channel: &ChannelId,
        mut blocks: Vec<Block>,
    ) -> Result<(), StoreError> {
        // From the bottom up, because a block is split where a block below it begins.
        blocks.sort_by_key(|block| block.level);
        let starts: HashSet<_> = blocks.iter().map(|block| (block.level, block.first.clone())).collect();
        for block in blocks {
            // The first block of a higher block stays as long as the higher one.
            let begins_higher = starts.contains(&(block.level + 1, block.first.clone()));
            if block.items == 0 && !block.begins_its_list() && !begins_higher {
                let (rank, id) = &block.first;
                self.execute(DELETE_BLOCK, params![channel, list.name(), block.level, *rank, id]).await?;
            }
            // Of many rows that were inserted at once, a half may be too full again.
            let mut halves = vec![block];
            while let Some(block) = halves.pop() {
                if block.is_too_full() {
                    halves.extend(self.split(list, channel, block).await?);
                }
            }
        }
        Ok(())
    }

    /// The position of the row with `before` rows before it; `None` beyond the end. From the top level down
    /// it adds up blocks until the next one would be too much, and goes on inside that one.
    ///
    /// Each level is a statement of its own. If a list changes in between, the page may begin some rows too
    /// early or too late.
    pub(super) async fn find_in_list(
        &mut self,
        list: List,
        channel: &ChannelId,
        before: i64,
    ) -> Result<Option<Start>, StoreError> {
        let mut start = Start { rank: BEFORE_ALL, id: String::new(), behind: before };
        for level in (1..=BLOCK_ITEMS_MAX.len() as i64).rev() {
            let Some(block) = self.block_with(list, channel, level, start).await? else { return Ok(None) };
            start = block;
        }
        Ok(Some(start))
    }

    /// The block of a level that contains the row `behind` the start, and the number of rows from its
    /// beginning to that row.
    async fn block_with(
        &mut self,
        list: List,
        channel: &ChannelId,
        level: i64,
        mut start: Start,
    ) -> Result<Option<Start>, StoreError> {
        let mut passed = 0;
        loop {
            let from = params![channel, list.name(), level, start.rank, &start.id, BLOCKS_AT_ONCE + passed];
            let blocks: Vec<Block> = self.fetch_all(BLOCKS_FROM, from).await?;
            let is_last = (blocks.len() as i64) < BLOCKS_AT_ONCE + passed;
            // The first of these blocks was counted as the last of those before.
            for Block { first: (rank, id), items, .. } in blocks.into_iter().skip(passed as usize) {
                if start.behind < items {
                    return Ok(Some(Start { rank, id, behind: start.behind }));
                }
                start = Start { rank, id, behind: start.behind - items };
            }
            if is_last {
                return Ok(None);
            }
            passed = 1;
        }
    }

    /// The number of rows of a list.
    pub(super) async fn count_listed(&mut self, list: List, channel: &ChannelId) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_LISTED, params![channel, list.name()]).await
    }

    /// Adds `change` to the blocks that contain a position, and gives them from the bottom up.
    async fn count_at(
        &mut self,
        list: List,
        channel: &ChannelId,
        rank: i64,
        id: &ChannelId,
        change: i64,
    ) -> Result<Vec<Block>, StoreError> {
        let mut blocks = Vec::with_capacity(BLOCK_ITEMS_MAX.len());
        for level in 1..=BLOCK_ITEMS_MAX.len() as i64 {
            let values = params![channel, list.name(), level, rank, id, change];
            blocks.extend(self.fetch_optional::<Block>(COUNT, values).await?);
        }
        Ok(blocks)
    }

    /// Splits a block into two halves, as equal as the blocks below it allow.
    async fn split(
        &mut self,
        list: List,
        channel: &ChannelId,
        block: Block,
    ) -> Result<[Block; 2], StoreError> {
        let Block { level, first: (rank, id), items } = &block;
        let half = items / 2;
        let (new_rank, new_id, left): (i64, String, i64) = if *level == 1 {
            let (rank, id) = self.fetch_one(list.row_at(), params![channel, *rank, id, half]).await?;
            (rank, id, half)
        } else {
            let place = params![channel, list.name(), level - 1, *rank, id, half, *items];
            self.fetch_one(LOWER_BLOCK_AT, place).await?
        };
        self.execute(SHRINK_BLOCK, params![channel, list.name(), *level, *rank, id, left]).await?;
        let new = Block { level: *level, first: (new_rank, new_id), items: items - left };
        let values = params![channel, list.name(), new.level, new.first.0, &new.first.1, new.items];
        self.execute(INSERT_BLOCK, values).await?;
        Ok([new, Block { items: left, ..block }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn a_pages_statement_reads_no_more_than_a_block_and_a_page() {
        let page = page_sql!("followers", "newest_rank", "follower_channel_id", "id", "");
        let limit = format!("LIMIT {}\n", BLOCK_ITEMS_MAX[0] + FOLLOWER_LIST_SIZE_MAX);
        assert!(page.contains(&limit), "{limit}: {page}");
    }

    #[test]
    fn sqlite_finds_the_counted_block_by_its_key() {
        let plan = sqlite_plan(COUNT);
        let by_key = "(channel_id=? AND list=? AND level=? AND first_rank=? AND first_id=?)";
        assert!(plan[0].ends_with(by_key), "{plan:#?}");
        let place = "(channel_id=? AND list=? AND level=? AND (first_rank,first_id)<(?,?))";
        assert!(plan.len() == 3 && plan[2].ends_with(place), "{plan:#?}");
    }

    #[test]
    fn sqlite_adds_up_blocks_from_their_position_on() {
        let plan = sqlite_plan(BLOCKS_FROM);
        let place = "(channel_id=? AND list=? AND level=? AND (first_rank,first_id)>(?,?))";
        assert!(plan.len() == 1 && plan[0].ends_with(place), "{plan:#?}");
    }

    #[test]
    fn the_migration_begins_lists_as_the_program_does_and_makes_half_full_blocks() {
        let migration = include_str!("../../migrations/0002_lists.sql");
        assert!(migration.contains(&format!("{BEFORE_ALL} ELSE")));
        for (level, max) in (1..).zip(BLOCK_ITEMS_MAX) {
            assert!(migration.contains(&format!("SELECT {level}, {}", max / 2)) || level == 1);
        }
        assert!(migration.contains(&format!("SELECT 1 AS level, {} AS size", BLOCK_ITEMS_MAX[0] / 2)));
    }
}

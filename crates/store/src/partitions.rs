//! The partitions of a table by time, on PostgreSQL: which ones there are, which ones are needed, and which
//! ones are old. Ids begin with their time, so a range of times is a range of ids.
//!
//! Together the partitions take every id: `past` is before all others, and `next` behind them. So an insert
//! never fails because a partition is missing. Ids that no clock has given, and those of a clock that is far
//! ahead, are in `next`.

use domain::limits::DAY_MS;
use domain::{MessageId, Timestamp};

/// A table that is partitioned on PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionedTable {
    /// `chat_messages`.
    ChatMessages,
    /// `donations`.
    Donations,
}

/// What an upkeep of partitions has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionUpkeep {
    /// Partitions that were made.
    pub made: usize,
    /// Partitions that were dropped.
    pub dropped: usize,
}

/// Between the name of a table and that of its partition. No other name of the schema has it.
const INFIX: &str = "__";
const PAST: &str = "__past";
const NEXT: &str = "__next";

/// Partitions are there this long before they are needed, in milliseconds.
const AHEAD_MS: i64 = 3 * DAY_MS;
/// The time for which rows are kept is divided into about this many partitions. A statement that names no
/// time looks into each.
const PARTITIONS: i64 = 10;

impl PartitionedTable {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::ChatMessages, Self::Donations];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ChatMessages => "chat_messages",
            Self::Donations => "donations",
        }
    }

    /// Its id.
    const fn key(self) -> &'static str {
        match self {
            Self::ChatMessages => "message_id",
            Self::Donations => "donation_id",
        }
    }

    fn past(self) -> String {
        format!("{}{PAST}", self.name())
    }

    fn next(self) -> String {
        format!("{}{NEXT}", self.name())
    }

    /// Selects the newest id behind all other partitions.
    pub(crate) fn newest_of_next(self) -> String {
        format!("SELECT MAX({}) FROM {}", self.key(), self.next())
    }

    /// Selects a row with an id before `$1`, which reads the partitions before it.
    pub(crate) const fn row_before(self) -> &'static str {
        match self {
            Self::ChatMessages => "SELECT 1 FROM chat_messages WHERE message_id < $1 LIMIT 1",
            Self::Donations => "SELECT 1 FROM donations WHERE donation_id < $1 LIMIT 1",
        }
    }
}

/// The table to which a partition belongs; another table's own name.
pub(crate) fn parent_of(table: &str) -> &str {
    table.split(INFIX).next().unwrap_or(table)
}

/// A partition: ids from `from` on and before `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub name: String,
    /// `None` on the first one.
    pub from: Option<String>,
    /// `None` on the last one.
    pub to: Option<String>,
}

impl Partition {
    /// Reads `FOR VALUES FROM ('…') TO ('…')`; no id has a quotation mark.
    pub fn parse(name: String, bounds: &str) -> Option<Self> {
        let (from, to) = bounds.strip_prefix("FOR VALUES FROM (")?.strip_suffix(')')?.split_once(") TO (")?;
        let bound = |text: &str| text.strip_prefix('\'')?.strip_suffix('\'').map(str::to_owned);
        Some(Self { name, from: bound(from), to: bound(to) })
    }
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The ends of the partitions that are to be made, with their names. The first one begins where `next`
    /// begins.
    ends: Vec<(String, String)>,
    /// The beginning of `next`.
    next_from: String,
    /// The partitions whose rows are all too old, and the end of the last one.
    old: Vec<String>,
    old_end: String,
}

impl Plan {
    /// The plan for these partitions. Rows of `oldest` or before are too old.
    pub fn of(table: PartitionedTable, partitions: &[Partition], now: Timestamp, kept_ms: i64) -> Self {
        let mut plan = Self::default();
        let next = partitions.iter().find(|partition| partition.to.is_none());
        if let Some(from) = next.and_then(|next| next.from.clone()) {
            plan.ends = ends(now, kept_ms).into_iter().filter(|(bound, _)| *bound > from).collect();
            for (_, name) in &mut plan.ends {
                *name = format!("{}{INFIX}until_{name}", table.name());
            }
            plan.next_from = from;
        }
        let bound = id_bound(now.plus_ms(1 - kept_ms));
        let is_old = |partition: &&Partition| partition.to.as_ref().is_some_and(|to| *to <= bound);
        let old: Vec<_> = partitions.iter().filter(is_old).collect();
        plan.old_end = old.iter().filter_map(|partition| partition.to.clone()).max().unwrap_or_default();
        plan.old = old.into_iter().map(|partition| partition.name.clone()).collect();
        plan
    }

    /// Whether there is nothing to do. `past` stays while it is empty and the only one that is old.
    pub fn is_empty(&self, has_old_rows: bool) -> bool {
        self.ends.is_empty() && !self.drops(has_old_rows)
    }

    /// The end of the partitions whose rows are all too old. Empty if there are none.
    pub fn old_end(&self) -> &str {
        &self.old_end
    }

    /// The partitions whose rows are all too old.
    pub fn old(&self) -> &[String] {
        &self.old
    }

    fn drops(&self, has_old_rows: bool) -> bool {
        match self.old.as_slice() {
            [] => false,
            [only] => has_old_rows || !only.ends_with(PAST),
            _ => true,
        }
    }

    /// The statements, for a table that is locked. `newest` is the newest id in `next`.
    pub fn statements(
        &self,
        table: PartitionedTable,
        newest: Option<&str>,
        has_old_rows: bool,
    ) -> (Vec<String>, PartitionUpkeep) {
        let (mut statements, mut upkeep) = (Vec::new(), PartitionUpkeep::default());
        let (name, next, past) = (table.name(), table.next(), table.past());
        let taken = match newest {
            None => Some(0),
            Some(id) => self.ends.iter().position(|(bound, _)| bound.as_str() > id),
        };
        if let (Some(taken), false) = (taken, self.ends.is_empty()) {
            let mut from = &self.next_from;
            if newest.is_some() {
                // The rows in `next` stay in their table, which becomes a partition with an end.
                let (to, partition) = &self.ends[taken];
                statements.extend([
                    format!("ALTER TABLE {name} DETACH PARTITION {next}"),
                    format!("ALTER TABLE {next} RENAME TO {partition}"),
                    format!(
                        "ALTER TABLE {name} ATTACH PARTITION {partition} {}",
                        range(Some(from.as_str()), Some(to.as_str()))
                    ),
                ]);
                from = to;
                upkeep.made += 1;
            } else {
                statements.push(format!("DROP TABLE {next}"));
            }
            for (to, partition) in self.ends.iter().skip(upkeep.made + taken) {
                let range = range(Some(from.as_str()), Some(to.as_str()));
                statements.push(format!("CREATE TABLE {partition} PARTITION OF {name} {range}"));
                from = to;
                upkeep.made += 1;
            }
            let range = range(Some(from.as_str()), None);
            statements.push(format!("CREATE TABLE {next} PARTITION OF {name} {range}"));
        }
        if self.drops(has_old_rows) {
            statements.extend(self.old.iter().map(|partition| format!("DROP TABLE {partition}")));
            let range = range(None, Some(&self.old_end));
            statements.push(format!("CREATE TABLE {past} PARTITION OF {name} {range}"));
            upkeep.dropped = self.old.len();
        }
        (statements, upkeep)
    }
}

fn range(from: Option<&str>, to: Option<&str>) -> String {
    let bound = |bound: Option<&str>, open: &str| bound.map_or(open.to_owned(), |id| format!("'{id}'"));
    format!("FOR VALUES FROM ({}) TO ({})", bound(from, "MINVALUE"), bound(to, "MAXVALUE"))
}

/// The ends of the partitions that are needed from `now` on: bounds of ids, and the days.
fn ends(now: Timestamp, kept_ms: i64) -> Vec<(String, String)> {
    let period_ms = (kept_ms / PARTITIONS / DAY_MS).max(1) * DAY_MS;
    let (mut ends, mut ms) = (Vec::new(), now.as_millis());
    let last_ms = ms + AHEAD_MS;
    while ms <= last_ms {
        ms = (ms.div_euclid(period_ms) + 1) * period_ms;
        let end = Timestamp::from_millis(ms);
        let day: String = end.rfc3339().chars().take(10).filter(|character| *character != '-').collect();
        ends.push((id_bound(end), day));
    }
    ends
}

fn id_bound(at: Timestamp) -> String {
    MessageId::bound_at(at).as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: PartitionedTable = PartitionedTable::ChatMessages;

    /// 2026-11-26T04:00:00Z
    fn now() -> Timestamp {
        Timestamp::from_millis(1_795_665_600_000)
    }

    fn bound(days: i64) -> String {
        id_bound(Timestamp::from_millis((now().as_millis().div_euclid(DAY_MS) + days) * DAY_MS))
    }

    fn partition(name: &str, from: Option<String>, to: Option<String>) -> Partition {
        Partition { name: format!("chat_messages__{name}"), from, to }
    }

    #[test]
    fn bounds_are_read() {
        let parsed = |bounds| Partition::parse("p".to_owned(), bounds);
        let read = parsed("FOR VALUES FROM (MINVALUE) TO ('019a')").unwrap();
        assert_eq!((read.from, read.to), (None, Some("019a".to_owned())));
        let read = parsed("FOR VALUES FROM ('0') TO (MAXVALUE)").unwrap();
        assert_eq!((read.from, read.to), (Some("0".to_owned()), None));
        assert_eq!(parsed("DEFAULT"), None);
        assert_eq!(parent_of("chat_messages__until_20261127"), "chat_messages");
        assert_eq!(parent_of("chat_messages"), "chat_messages");
    }

    #[test]
    fn a_new_table_gets_the_days_ahead() {
        let partitions =
            [partition("past", None, Some("0".into())), partition("next", Some("0".into()), None)];
        let plan = Plan::of(TABLE, &partitions, now(), 7 * DAY_MS);
        assert!(!plan.is_empty(false));
        let (statements, upkeep) = plan.statements(TABLE, None, false);
        assert_eq!(upkeep, PartitionUpkeep { made: 4, dropped: 0 });
        assert_eq!(statements[0], "DROP TABLE chat_messages__next");
        assert_eq!(
            statements[1],
            format!(
                "CREATE TABLE chat_messages__until_20261127 PARTITION OF chat_messages FOR VALUES FROM ('0') TO ('{}')",
                bound(1)
            )
        );
        assert_eq!(
            statements[5],
            format!(
                "CREATE TABLE chat_messages__next PARTITION OF chat_messages FOR VALUES FROM ('{}') TO (MAXVALUE)",
                bound(4)
            )
        );
    }

    #[test]
    fn rows_behind_all_partitions_get_an_end() {
        let partitions = [partition("next", Some("0".into()), None)];
        let plan = Plan::of(TABLE, &partitions, now(), 7 * DAY_MS);
        let newest = format!("{}7abc", bound(1));
        let (statements, upkeep) = plan.statements(TABLE, Some(&newest), false);
        // The days until the newest row are one partition.
        assert_eq!(upkeep.made, 3, "{statements:#?}");
        assert_eq!(statements[1], "ALTER TABLE chat_messages__next RENAME TO chat_messages__until_20261128");
        assert!(statements[2].ends_with(&format!("FROM ('0') TO ('{}')", bound(2))), "{statements:#?}");
        // An id that is in the time of no partition stays where it is.
        let (statements, upkeep) = plan.statements(TABLE, Some("m1"), false);
        assert_eq!((statements, upkeep), (Vec::new(), PartitionUpkeep::default()));
    }

    #[test]
    fn what_is_old_is_dropped_and_nothing_is_left_out() {
        let partitions = [
            partition("past", None, Some(bound(-9))),
            partition("until_a", Some(bound(-9)), Some(bound(-8))),
            partition("until_b", Some(bound(-8)), Some(bound(-7))),
            partition("until_c", Some(bound(-7)), Some(bound(-6))),
            partition("next", Some(bound(4)), None),
        ];
        let plan = Plan::of(TABLE, &partitions, now(), 7 * DAY_MS);
        assert_eq!(plan.ends, []);
        let (statements, upkeep) = plan.statements(TABLE, None, false);
        assert_eq!(upkeep, PartitionUpkeep { made: 0, dropped: 3 });
        assert_eq!(
            statements[3],
            format!(
                "CREATE TABLE chat_messages__past PARTITION OF chat_messages FOR VALUES FROM (MINVALUE) TO ('{}')",
                bound(-7)
            )
        );
        let after = [partition("past", None, Some(bound(-7))), partitions[3].clone(), partitions[4].clone()];
        let plan = Plan::of(TABLE, &after, now(), 7 * DAY_MS);
        assert!(plan.is_empty(false), "it is empty now");
        assert!(!plan.is_empty(true), "a copy has put rows into it");
    }

    #[test]
    fn a_long_time_has_few_partitions() {
        let ends = ends(now(), 400 * DAY_MS);
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert_eq!(super::ends(now(), DAY_MS).len(), 4);
    }
}

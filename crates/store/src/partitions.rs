//! The partitions of a table by time, on PostgreSQL: which ones there are, which ones are needed, and which
//! ones are old. A key is a time or an id that begins with its time, so a range of times is a range of keys.
//!
//! Together the partitions take every key: `past` is before all others, and `next` behind them. So an insert
//! never fails because a partition is missing. Ids that no clock has given, and those of a clock that is far
//! ahead, are in `next`.

use domain::limits::DAY_MS;
use domain::retention::Retained;
use domain::{DeliveryId, MessageId, SessionKey, Timestamp};

use self::storage::storage_of;

pub(crate) mod storage;

/// A table that is partitioned on PostgreSQL, with the tables whose rows hang on its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionedTable {
    /// `chat_messages`.
    ChatMessages,
    /// `donations`.
    Donations,
    /// `sessions`, with `session_subscriptions`.
    Sessions,
    /// `webhook_deliveries`, with `webhook_attempts`.
    WebhookDeliveries,
    /// `claim_changes`.
    ClaimChanges,
    /// `application_usage`.
    ApplicationUsage,
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
/// The table of rows that are moved to `past`, during the upkeep.
const MOVED: &str = "__moved";

/// Partitions are there this long before they are needed, in milliseconds.
const AHEAD_MS: i64 = 3 * DAY_MS;
/// The time for which rows are kept is divided into about this many partitions. A statement that names no
/// time looks into each.
const PARTITIONS: i64 = 10;
/// The most rows that are moved out of old partitions under the lock of the table. With more, the partitions
/// stay until there are fewer.
pub(crate) const MOVED_ROWS_MAX: i64 = 10_000;

/// Each statement has both parameters.
macro_rules! expired_sql {
    ($table:literal, $condition:literal) => {
        concat!(
            "SELECT 1 FROM ",
            $table,
            " WHERE CAST($2 AS BIGINT) IS NOT NULL AND ",
            $condition,
            " LIMIT 1"
        )
    };
}

impl PartitionedTable {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::ChatMessages,
        Self::Donations,
        Self::Sessions,
        Self::WebhookDeliveries,
        Self::ClaimChanges,
        Self::ApplicationUsage,
    ];

    /// The kind of its rows, which says how long they are kept.
    pub const fn retained(self) -> Retained {
        match self {
            Self::ChatMessages => Retained::ChatMessages,
            Self::Donations => Retained::Donations,
            Self::Sessions => Retained::EndedSessions,
            Self::WebhookDeliveries => Retained::WebhookMessages,
            Self::ClaimChanges => Retained::ClaimChanges,
            Self::ApplicationUsage => Retained::ApplicationRequests,
        }
    }

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Its name, and those of the tables whose rows hang on its rows. All of them have its key and its
    /// bounds.
    pub(crate) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::ChatMessages => &["chat_messages"],
            Self::Donations => &["donations"],
            Self::Sessions => &["sessions", "session_subscriptions"],
            Self::WebhookDeliveries => &["webhook_deliveries", "webhook_attempts"],
            Self::ClaimChanges => &["claim_changes"],
            Self::ApplicationUsage => &["application_usage"],
        }
    }

    /// The column of the partitions.
    const fn key(self) -> &'static str {
        match self {
            Self::ChatMessages | Self::WebhookDeliveries => "message_id",
            Self::Donations => "donation_id",
            Self::Sessions => "session_key",
            Self::ClaimChanges => "changed_at",
            Self::ApplicationUsage => "day",
        }
    }

    /// The bound below every key of that time and above every one before it.
    fn bound(self, at: Timestamp) -> String {
        match self {
            Self::ChatMessages | Self::Donations => MessageId::bound_at(at).as_str().to_owned(),
            Self::Sessions => SessionKey::bound_at(at).as_str().to_owned(),
            Self::WebhookDeliveries => DeliveryId::bound_at(at).as_str().to_owned(),
            Self::ClaimChanges | Self::ApplicationUsage => at.as_millis().to_string(),
        }
    }

    /// Whether a key is above a bound.
    fn is_above(self, key: &str, bound: &str) -> bool {
        match self {
            Self::ClaimChanges | Self::ApplicationUsage => {
                key.parse::<i64>().ok() > bound.parse::<i64>().ok()
            }
            _ => key > bound,
        }
    }

    /// The condition of rows that are needed longer than the time in their key says. `None` if there are no
    /// such rows. Both halves are in an index of each partition.
    const fn needed_longer(self) -> Option<&'static str> {
        match self {
            Self::Sessions => Some("disconnected_at IS NULL OR disconnected_at >"),
            Self::WebhookDeliveries => Some("changed_at >"),
            _ => None,
        }
    }

    /// Whether requests read the partitions that are old, because they do not know the time of their rows.
    pub(crate) const fn old_ones_are_read(self) -> bool {
        self.needed_longer().is_some()
    }

    /// Selects the newest key behind all other partitions, as a text.
    pub(crate) fn newest_of_next(self) -> String {
        let key = self.key();
        let of = |name: &&str| format!("SELECT MAX({key}) AS newest FROM {name}{NEXT}");
        let all: Vec<String> = self.names().iter().map(of).collect();
        format!("SELECT CAST(MAX(newest) AS TEXT) FROM ({}) n", all.join(" UNION ALL "))
    }

    /// Selects a row before the bound `$1` that is too old. `$2` is the newest time that is too old.
    pub(crate) const fn expired(self) -> &'static str {
        match self {
            Self::ChatMessages => expired_sql!("chat_messages", "message_id < $1"),
            Self::Donations => expired_sql!("donations", "donation_id < $1"),
            Self::Sessions => expired_sql!("sessions", "session_key < $1 AND disconnected_at <= $2"),
            Self::WebhookDeliveries => {
                expired_sql!("webhook_deliveries", "message_id < $1 AND changed_at <= $2")
            }
            Self::ClaimChanges => {
                expired_sql!("claim_changes", "changed_at < CAST(CAST($1 AS TEXT) AS BIGINT)")
            }
            Self::ApplicationUsage => {
                expired_sql!("application_usage", "day < CAST(CAST($1 AS TEXT) AS BIGINT)")
            }
        }
    }

    /// Counts the rows before a bound that are needed longer, up to one more than are moved.
    pub(crate) fn count_needed_before(self, bound: &str, oldest: Timestamp) -> Option<String> {
        let (name, key, needed) = (self.name(), self.key(), self.needed_longer()?);
        let oldest = oldest.as_millis();
        Some(format!(
            "SELECT COUNT(*) FROM (
                 SELECT 1 FROM {name} WHERE {key} < '{bound}' AND ({needed} {oldest}) LIMIT {}
             ) n",
            MOVED_ROWS_MAX + 1
        ))
    }
}

/// The table to which a partition belongs; another table's own name.
pub(crate) fn parent_of(table: &str) -> &str {
    table.split(INFIX).next().unwrap_or(table)
}

/// A partition: keys from `from` on and before `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub name: String,
    /// `None` on the first one.
    pub from: Option<String>,
    /// `None` on the last one.
    pub to: Option<String>,
}

impl Partition {
    /// Reads `FOR VALUES FROM ('…') TO ('…')`; no key has a quotation mark.
    pub fn parse(name: String, bounds: &str) -> Option<Self> {
        let (from, to) = bounds.strip_prefix("FOR VALUES FROM (")?.strip_suffix(')')?.split_once(") TO (")?;
        let bound = |text: &str| text.strip_prefix('\'')?.strip_suffix('\'').map(str::to_owned);
        Some(Self { name, from: bound(from), to: bound(to) })
    }
}

/// What the partitions hold.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The newest key in `next`.
    pub newest: Option<String>,
    /// Whether old partitions have rows that are too old.
    pub has_expired: bool,
    /// Whether the old partitions have so few rows that are needed longer that these can be moved.
    pub is_movable: bool,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Plan {
    table: PartitionedTable,
    /// The ends of the partitions that are to be made, with the endings of their names. The first one begins
    /// where `next` begins.
    ends: Vec<(String, String)>,
    /// The beginning of `next`.
    next_from: String,
    /// The endings of the names of the partitions that are too old by their keys, and the end of the last
    /// one.
    old: Vec<String>,
    old_end: String,
    oldest: Timestamp,
}

impl Plan {
    /// The plan for these partitions of the table, for rows that are kept for so long.
    pub fn of(table: PartitionedTable, partitions: &[Partition], now: Timestamp, kept_ms: i64) -> Self {
        let (mut ends, mut next_from) = (Vec::new(), String::new());
        let next = partitions.iter().find(|partition| partition.to.is_none());
        if let Some(from) = next.and_then(|next| next.from.clone()) {
            ends = needed_ends(table, now, kept_ms);
            ends.retain(|(bound, _)| table.is_above(bound, &from));
            next_from = from;
        }
        let oldest = now.plus_ms(-kept_ms);
        let bound = table.bound(oldest.plus_ms(1));
        let (mut old, mut old_end) = (Vec::new(), String::new());
        for Partition { name, to, .. } in partitions {
            let Some(to) = to.as_ref().filter(|to| !table.is_above(to, &bound)) else { continue };
            old.extend(name.strip_prefix(table.name()).map(str::to_owned));
            if old_end.is_empty() || table.is_above(to, &old_end) {
                old_end.clone_from(to);
            }
        }
        Self { table, ends, next_from, old, old_end, oldest }
    }

    /// Whether there is nothing to do. `past` stays while no row in it is too old and it is the only one that
    /// is old.
    pub fn is_empty(&self, contents: &Contents) -> bool {
        self.ends.is_empty() && !self.drops(contents)
    }

    /// Whether there are partitions that are too old by their keys.
    pub fn has_old(&self) -> bool {
        !self.old.is_empty()
    }

    /// The end of the old partitions. Empty if there are none.
    pub fn old_end(&self) -> &str {
        &self.old_end
    }

    /// Rows of this time or before are too old.
    pub fn oldest(&self) -> Timestamp {
        self.oldest
    }

    /// Counts the rows of the old partitions that are needed longer.
    pub fn count_needed(&self) -> Option<String> {
        (!self.old.is_empty()).then(|| self.table.count_needed_before(&self.old_end, self.oldest)).flatten()
    }

    /// The names of the old partitions.
    pub fn old(&self) -> impl Iterator<Item = String> {
        let endings = &self.old;
        // What hangs on rows comes before them.
        let names = self.table.names().iter().rev();
        names.flat_map(move |name| endings.iter().map(move |ending| format!("{name}{ending}")))
    }

    fn drops(&self, contents: &Contents) -> bool {
        contents.is_movable
            && match self.old.as_slice() {
                [] => false,
                [only] => contents.has_expired || only != PAST,
                _ => true,
            }
    }

    /// The statements, for a table that is locked.
    pub fn statements(&self, contents: &Contents) -> (Vec<String>, PartitionUpkeep) {
        let (mut statements, mut upkeep) = (Vec::new(), PartitionUpkeep::default());
        for name in self.table.names() {
            upkeep.made = self.make(name, contents.newest.as_deref(), &mut statements);
        }
        if self.drops(contents) {
            self.drop_old(&mut statements);
            upkeep.dropped = self.old.len();
        }
        (statements, upkeep)
    }

    /// Makes the partitions that are needed, and gives their number.
    fn make(&self, name: &str, newest: Option<&str>, statements: &mut Vec<String>) -> usize {
        let is_above =
            |(bound, _): &(String, String)| newest.is_some_and(|key| self.table.is_above(bound, key));
        let taken = match newest {
            None => Some(0),
            Some(_) => self.ends.iter().position(is_above),
        };
        let (Some(taken), false) = (taken, self.ends.is_empty()) else { return 0 };
        let (mut from, mut made) = (&self.next_from, 0);
        if newest.is_some() {
            // The rows in `next` stay in their table, which becomes a partition with an end.
            let (to, ending) = &self.ends[taken];
            let range = range(Some(from), Some(to));
            statements.extend([
                format!("ALTER TABLE {name} DETACH PARTITION {name}{NEXT}"),
                format!("ALTER TABLE {name}{NEXT} RENAME TO {name}{ending}"),
                format!("ALTER TABLE {name} ATTACH PARTITION {name}{ending} {range}"),
            ]);
            from = to;
            made += 1;
        } else {
            statements.push(format!("DROP TABLE {name}{NEXT}"));
        }
        for (to, ending) in self.ends.iter().skip(made + taken) {
            statements.push(create(name, ending, &range(Some(from), Some(to))));
            from = to;
            made += 1;
        }
        statements.push(create(name, NEXT, &range(Some(from), None)));
        made
    }

    /// Drops the old partitions. Rows that are needed longer are moved to `past`.
    fn drop_old(&self, statements: &mut Vec<String>) {
        let (table, end) = (self.table, &self.old_end);
        let range = range(None, Some(end));
        let dropped = self.old().map(|partition| format!("DROP TABLE {partition}"));
        let Some(needed) = table.needed_longer() else {
            statements.extend(dropped);
            statements.push(create(table.name(), PAST, &range));
            return;
        };
        let (owner, key, oldest) = (table.name(), table.key(), self.oldest.as_millis());
        for name in table.names() {
            let moved = if *name == owner {
                format!("({needed} {oldest})")
            } else {
                format!("{key} IN (SELECT {key} FROM {owner}{MOVED})")
            };
            statements.extend([
                format!(
                    "CREATE TABLE {name}{MOVED} (LIKE {name} INCLUDING DEFAULTS) WITH ({})",
                    storage_of(name)
                ),
                format!("INSERT INTO {name}{MOVED} SELECT * FROM {name} WHERE {key} < '{end}' AND {moved}"),
            ]);
        }
        statements.extend(dropped);
        for name in table.names() {
            statements.extend([
                format!("ALTER TABLE {name}{MOVED} RENAME TO {name}{PAST}"),
                format!("ALTER TABLE {name} ATTACH PARTITION {name}{PAST} {range}"),
            ]);
        }
        if table == PartitionedTable::Sessions {
            // The changes of sessions are few, and have no partitions.
            statements.push(format!(
                "DELETE FROM session_changes WHERE session_key < '{end}'
                 AND session_key NOT IN (SELECT session_key FROM sessions{PAST})"
            ));
        }
    }
}

fn create(name: &str, ending: &str, range: &str) -> String {
    format!("CREATE TABLE {name}{ending} PARTITION OF {name} {range} WITH ({})", storage_of(name))
}

fn range(from: Option<&str>, to: Option<&str>) -> String {
    let bound = |bound: Option<&str>, open: &str| bound.map_or(open.to_owned(), |id| format!("'{id}'"));
    format!("FOR VALUES FROM ({}) TO ({})", bound(from, "MINVALUE"), bound(to, "MAXVALUE"))
}

/// The ends of the partitions that are needed from `now` on: bounds of keys, and endings of names with the
/// day.
fn needed_ends(table: PartitionedTable, now: Timestamp, kept_ms: i64) -> Vec<(String, String)> {
    let period_ms = (kept_ms / PARTITIONS / DAY_MS).max(1) * DAY_MS;
    let (mut ends, mut ms) = (Vec::new(), now.as_millis());
    let last_ms = ms + AHEAD_MS;
    while ms <= last_ms {
        ms = (ms.div_euclid(period_ms) + 1) * period_ms;
        let end = Timestamp::from_millis(ms);
        let day: String = end.rfc3339().chars().take(10).filter(|character| *character != '-').collect();
        ends.push((table.bound(end), format!("{INFIX}until_{day}")));
    }
    ends
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
        TABLE.bound(Timestamp::from_millis((now().as_millis().div_euclid(DAY_MS) + days) * DAY_MS))
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

    fn contents(newest: Option<&str>, has_expired: bool) -> Contents {
        Contents { newest: newest.map(str::to_owned), has_expired, is_movable: true }
    }

    #[test]
    fn a_new_table_gets_the_days_ahead() {
        let partitions =
            [partition("past", None, Some("0".into())), partition("next", Some("0".into()), None)];
        let plan = Plan::of(TABLE, &partitions, now(), 7 * DAY_MS);
        assert!(!plan.is_empty(&contents(None, false)));
        let (statements, upkeep) = plan.statements(&contents(None, false));
        assert_eq!(upkeep, PartitionUpkeep { made: 4, dropped: 0 });
        assert_eq!(statements[0], "DROP TABLE chat_messages__next");
        assert_eq!(
            statements[1],
            format!(
                "CREATE TABLE chat_messages__until_20261127 PARTITION OF chat_messages FOR VALUES FROM ('0') TO ('{}') \
                 WITH ({})",
                bound(1),
                storage_of("chat_messages")
            )
        );
        assert_eq!(
            statements[5],
            format!(
                "CREATE TABLE chat_messages__next PARTITION OF chat_messages FOR VALUES FROM ('{}') TO (MAXVALUE) WITH ({})",
                bound(4),
                storage_of("chat_messages")
            )
        );
    }

    #[test]
    fn rows_behind_all_partitions_get_an_end() {
        let partitions = [partition("next", Some("0".into()), None)];
        let plan = Plan::of(TABLE, &partitions, now(), 7 * DAY_MS);
        let newest = format!("{}7abc", bound(1));
        let (statements, upkeep) = plan.statements(&contents(Some(&newest), false));
        // The days until the newest row are one partition.
        assert_eq!(upkeep.made, 3, "{statements:#?}");
        assert_eq!(statements[1], "ALTER TABLE chat_messages__next RENAME TO chat_messages__until_20261128");
        assert!(statements[2].ends_with(&format!("FROM ('0') TO ('{}')", bound(2))), "{statements:#?}");
        // An id that is in the time of no partition stays where it is.
        let (statements, upkeep) = plan.statements(&contents(Some("m1"), false));
        assert_eq!((statements, upkeep), (Vec::new(), PartitionUpkeep::default()));
    }

    fn of_nine_days() -> [Partition; 5] {
        [
            partition("past", None, Some(bound(-9))),
            partition("until_a", Some(bound(-9)), Some(bound(-8))),
            partition("until_b", Some(bound(-8)), Some(bound(-7))),
            partition("until_c", Some(bound(-7)), Some(bound(-6))),
            partition("next", Some(bound(4)), None),
        ]
    }

    #[test]
    fn what_is_old_is_dropped_and_nothing_is_left_out() {
        let partitions = of_nine_days();
        let plan = Plan::of(TABLE, &partitions, now(), 7 * DAY_MS);
        assert_eq!(plan.ends, []);
        let (statements, upkeep) = plan.statements(&contents(None, false));
        assert_eq!(upkeep, PartitionUpkeep { made: 0, dropped: 3 });
        assert_eq!(
            statements[3],
            format!(
                "CREATE TABLE chat_messages__past PARTITION OF chat_messages FOR VALUES FROM (MINVALUE) TO ('{}') WITH ({})",
                bound(-7),
                storage_of("chat_messages")
            )
        );
        let after = [partition("past", None, Some(bound(-7))), partitions[3].clone(), partitions[4].clone()];
        let plan = Plan::of(TABLE, &after, now(), 7 * DAY_MS);
        assert!(plan.is_empty(&contents(None, false)), "it is empty now");
        assert!(!plan.is_empty(&contents(None, true)), "a copy has put rows into it");
    }

    #[test]
    fn sessions_that_are_needed_longer_are_moved_with_their_subscriptions_unless_they_are_many() {
        let sessions = PartitionedTable::Sessions;
        let partitions = of_nine_days().map(|partition| Partition {
            name: partition.name.replace("chat_messages", "sessions"),
            ..partition
        });
        let plan = Plan::of(sessions, &partitions, now(), 7 * DAY_MS);
        let (statements, upkeep) = plan.statements(&contents(None, true));
        assert_eq!(upkeep.dropped, 3);
        let begins = |text: &str| statements.iter().position(|sql| sql.starts_with(text));
        let moved = begins("INSERT INTO sessions__moved SELECT * FROM sessions WHERE session_key < '");
        let with_them = begins("INSERT INTO session_subscriptions__moved ");
        let dropped = begins("DROP TABLE session_subscriptions__until_a");
        let after = begins("DROP TABLE sessions__until_a");
        let attached =
            begins("ALTER TABLE sessions ATTACH PARTITION sessions__past FOR VALUES FROM (MINVALUE)");
        let order = [moved, with_them, dropped, after, attached];
        assert!(order.is_sorted() && order.iter().all(Option::is_some), "{order:?} {statements:#?}");
        let many = Contents { is_movable: false, ..contents(None, true) };
        assert_eq!(plan.statements(&many), (Vec::new(), PartitionUpkeep::default()));
    }

    #[test]
    fn times_are_ordered_as_numbers() {
        let partitions = [
            partition("past", None, Some("1".into())),
            partition("until_a", Some("1".into()), Some("900".into())),
            partition("next", Some("900".into()), None),
        ];
        let plan = Plan::of(PartitionedTable::ClaimChanges, &partitions, now(), 7 * DAY_MS);
        assert_eq!((plan.old_end(), plan.ends.len()), ("900", 4));
    }

    #[test]
    fn a_long_time_has_few_partitions() {
        let ends = needed_ends(TABLE, now(), 400 * DAY_MS);
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert_eq!(needed_ends(TABLE, now(), DAY_MS).len(), 4);
    }
}

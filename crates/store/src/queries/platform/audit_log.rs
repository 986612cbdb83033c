//! The audit log: who changed what.

use domain::audit::{AuditAction, AuditEntry};
use domain::{AuditEntryId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, Value, params};

/// Sorts behind every id.
const BEHIND_ALL: &str = "~";

const INSERT: &str = "
    INSERT INTO audit_log
        (entry_id, created_at, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, details, request_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// The newest entries under a condition, before `$1` and from `$2` on. People, applications and
/// organizations have the names of today, and none after their removal.
macro_rules! entries_sql {
    ($condition:literal) => {
        entries_sql!($condition, "a.entry_id >= $2")
    };
    ($condition:literal, $since:literal) => {
        sql!(
            "SELECT ",
            AuditEntry::COLUMNS,
            " FROM audit_log a LEFT JOIN channels c
                 ON a.actor_kind = 'person' AND c.channel_id = a.actor_id AND c.deleted_at IS NULL
             LEFT JOIN channels sc
                 ON a.subject_kind = 'channel' AND sc.channel_id = a.subject_id AND sc.deleted_at IS NULL
             LEFT JOIN applications sa ON a.subject_kind = 'application' AND sa.client_id = a.subject_id
             LEFT JOIN organizations so ON a.subject_kind = 'organization' AND so.organization_id = a.subject_id
             WHERE ",
            $condition,
            " a.entry_id < $1 AND ",
            $since,
            " ORDER BY a.entry_id DESC LIMIT $3"
        )
    };
}

/// The pages, by the filters that are given: subject, actor, action. With two bounds SQLite would rather
/// read the index of the action alone than that of actor and action.
const ENTRIES: [[[&str; 2]; 2]; 2] = [
    [
        [entries_sql!(""), entries_sql!("a.action = $4 AND")],
        [
            entries_sql!("a.actor_id = $4 AND"),
            entries_sql!("a.actor_id = $4 AND a.action = $5 AND", "NOT a.entry_id < $2"),
        ],
    ],
    [
        [entries_sql!("a.subject_id = $4 AND"), entries_sql!("a.subject_id = $4 AND a.action = $5 AND")],
        [
            entries_sql!("a.subject_id = $4 AND a.actor_id = $5 AND"),
            entries_sql!("a.subject_id = $4 AND a.actor_id = $5 AND a.action = $6 AND"),
        ],
    ],
];

/// Which entries a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Those about the thing with this id, of any kind.
    pub subject: Option<String>,
    /// Those of the actor with this id.
    pub actor: Option<String>,
    /// Those of this action.
    pub action: Option<AuditAction>,
    /// Those of this time and later.
    pub since: Option<Timestamp>,
    /// Those before this time.
    pub until: Option<Timestamp>,
}

columns!(AuditEntry {
    entry_id: "a.entry_id",
    created_at: "a.created_at",
    actor_kind: "a.actor_kind",
    actor_id: "a.actor_id",
    actor_name: "COALESCE(c.channel_name, a.actor_name)",
    action: "a.action",
    subject_kind: "a.subject_kind",
    subject_id: "a.subject_id",
    subject_name: "COALESCE(sc.channel_name, sa.name, so.organization_name, '')",
    details: "a.details",
    request_id: "a.request_id",
});

impl AuditFilter {
    /// The statement, and its parameters from `$4` on.
    fn statement(&self) -> (&'static str, Vec<Value<'_>>) {
        let Self { subject, actor, action, .. } = self;
        let sql = ENTRIES[usize::from(subject.is_some())][usize::from(actor.is_some())]
            [usize::from(action.is_some())];
        let ids = [subject.as_ref(), actor.as_ref()].into_iter().flatten().map(Value::from);
        (sql, ids.chain(action.map(|action| action.name().into())).collect())
    }
}

impl Tx {
    /// Writes an entry. Of a person the name is not written.
    pub async fn insert_audit_entry(&mut self, entry: &AuditEntry) -> Result<(), StoreError> {
        let AuditEntry { entry_id, created_at, actor_kind, actor_id, actor_name, action, .. } = entry;
        let values = params![
            entry_id,
            *created_at,
            actor_kind.name(),
            actor_id,
            actor_name,
            action.name(),
            entry.subject_kind.name(),
            &entry.subject_id,
            &entry.details,
            &entry.request_id
        ];
        self.execute(INSERT, values).await?;
        Ok(())
    }

    /// Up to `size` entries before `before`, newest first. Every page costs the same.
    pub async fn audit_entries(
        &mut self,
        filter: &AuditFilter,
        before: Option<&AuditEntryId>,
        size: i64,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let (sql, ids) = filter.statement();
        let until = filter.until.map(AuditEntryId::bound_at);
        let since = filter.since.map(AuditEntryId::bound_at);
        let ends = [before, until.as_ref()].into_iter().flatten().map(AuditEntryId::as_str);
        let (end, start) =
            (ends.min().unwrap_or(BEHIND_ALL), since.as_ref().map_or("", AuditEntryId::as_str));
        let mut values = vec![end.into(), start.into(), size.into()];
        values.extend(ids);
        self.fetch_all(sql, &values).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn sqlite_reads_a_page_from_its_position_on() {
        for (sql, place) in [
            (ENTRIES[0][0][0], "sqlite_autoindex_audit_log_1 (entry_id>? AND entry_id<?)"),
            (ENTRIES[1][0][0], "audit_log_of_subject (subject_id=? AND entry_id>? AND entry_id<?)"),
            (ENTRIES[0][1][0], "audit_log_of_actor (actor_id=? AND entry_id>? AND entry_id<?)"),
            (ENTRIES[0][0][1], "audit_log_of_action (action=? AND entry_id>? AND entry_id<?)"),
            (ENTRIES[0][1][1], "audit_log_of_actor_and_action (actor_id=? AND action=? AND entry_id<?)"),
        ] {
            let plan = sqlite_plan(sql);
            assert!(plan.iter().any(|step| step.ends_with(place)), "{place}: {plan:#?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
        }
    }
}

//! Applications as an operator searches them: by the beginning of an id or a name, or by their state.

use domain::{ClientId, Timestamp};

use super::application_life::ApplicationLife;
use crate::queries::columns::{Select, sql};
use crate::{StoreError, Tx, params};

/// Sorts behind every character of an id.
const BEHIND_IDS: char = '~';
/// Sorts behind every character of a name.
const BEHIND_NAMES: char = '\u{10FFFF}';
/// Sorts before every character of an id.
const BEFORE_IDS: char = ' ';

macro_rules! found_sql {
    ($condition:literal) => {
        sql!(
            "SELECT ",
            ApplicationLife::COLUMNS,
            "
            FROM applications a LEFT JOIN organizations o ON o.organization_id = a.organization_id
            WHERE a.purging = FALSE AND (a.deleted_at IS NULL OR a.deleted_at > $1) AND ",
            $condition
        )
    };
}

const BY_ID: &str = found_sql!("a.client_id >= $2 AND a.client_id < $3 ORDER BY a.client_id LIMIT $4");

const BY_NAME: &str =
    found_sql!("(a.name, a.client_id) > ($2, $3) AND a.name < $4 ORDER BY a.name, a.client_id LIMIT $5");

const DISABLED: &str =
    found_sql!("a.disabled_at IS NOT NULL AND a.client_id >= $2 ORDER BY a.client_id LIMIT $3");

const RESTORABLE: &str =
    found_sql!("a.deleted_at IS NOT NULL AND a.client_id >= $2 ORDER BY a.client_id LIMIT $3");

/// Which applications a search finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplicationSearch {
    /// Those whose id begins with this; with the empty text all of them.
    Id(String),
    /// Those whose name begins with this.
    Name(String),
    /// Disabled ones.
    Disabled,
    /// Those that were deleted for want of use and can be restored.
    Restorable,
}

impl Tx {
    /// Up to `size` applications that a search finds behind `after`, a name and an id. Those of a name are in
    /// the order of the names, others in that of the ids. Without those that were deleted at
    /// `irrecoverable_since` or before.
    pub async fn search_applications(
        &mut self,
        search: &ApplicationSearch,
        after: Option<&(String, ClientId)>,
        irrecoverable_since: Timestamp,
        size: i64,
    ) -> Result<Vec<ApplicationLife>, StoreError> {
        let since = irrecoverable_since;
        let next_id = after.map(|(_, id)| format!("{id}{BEFORE_IDS}"));
        match search {
            ApplicationSearch::Id(prefix) => {
                let (from, until) =
                    (next_id.unwrap_or_else(|| prefix.clone()), format!("{prefix}{BEHIND_IDS}"));
                self.fetch_all(BY_ID, params![since, from, until, size]).await
            }
            ApplicationSearch::Name(prefix) => {
                let until = format!("{prefix}{BEHIND_NAMES}");
                let (name, id) = after.map_or((prefix.as_str(), ""), |(name, id)| (name, id.as_str()));
                self.fetch_all(BY_NAME, params![since, name, id, until, size]).await
            }
            ApplicationSearch::Disabled => {
                self.fetch_all(DISABLED, params![since, next_id.unwrap_or_default(), size]).await
            }
            ApplicationSearch::Restorable => {
                self.fetch_all(RESTORABLE, params![since, next_id.unwrap_or_default(), size]).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn sqlite_searches_in_the_order_of_an_index() {
        for (sql, index) in [
            (BY_ID, "sqlite_autoindex_applications_1 (client_id>? AND client_id<?)"),
            (BY_NAME, "applications_name ((name,client_id)>(?,?) AND name<?)"),
            (DISABLED, "applications_disabled (client_id>?)"),
            (RESTORABLE, "applications_restorable (client_id>?)"),
        ] {
            let plan = sqlite_plan(sql);
            assert!(plan.iter().any(|step| step.contains(index)), "{index}: {plan:#?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
        }
    }
}

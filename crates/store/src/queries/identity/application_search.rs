//! Applications as an operator lists them: all, or by their state.

use domain::{ClientId, Timestamp};

use super::application_life::ApplicationLife;
use crate::queries::columns::{Select, sql};
use crate::{StoreError, Tx, params};

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

const ALL: &str = found_sql!("a.client_id >= $2 ORDER BY a.client_id LIMIT $3");

const DISABLED: &str =
    found_sql!("a.disabled_at IS NOT NULL AND a.client_id >= $2 ORDER BY a.client_id LIMIT $3");

const RESTORABLE: &str =
    found_sql!("a.deleted_at IS NOT NULL AND a.client_id >= $2 ORDER BY a.client_id LIMIT $3");

/// Which applications a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationSearch {
    /// All of them.
    All,
    /// Disabled ones.
    Disabled,
    /// Those that were deleted for want of use and can be restored.
    Restorable,
}

impl Tx {
    /// Up to `size` applications behind the id `after`, in the order of the ids. Without those that were
    /// deleted at `irrecoverable_since` or before.
    pub async fn search_applications(
        &mut self,
        search: ApplicationSearch,
        after: Option<&ClientId>,
        irrecoverable_since: Timestamp,
        size: i64,
    ) -> Result<Vec<ApplicationLife>, StoreError> {
        let next_id = after.map(|id| format!("{id}{BEFORE_IDS}")).unwrap_or_default();
        let sql = match search {
            ApplicationSearch::All => ALL,
            ApplicationSearch::Disabled => DISABLED,
            ApplicationSearch::Restorable => RESTORABLE,
        };
        self.fetch_all(sql, params![irrecoverable_since, next_id, size]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn sqlite_searches_in_the_order_of_an_index() {
        for (sql, index) in [
            (ALL, "sqlite_autoindex_applications_1 (client_id>?)"),
            (DISABLED, "applications_disabled (client_id>?)"),
            (RESTORABLE, "applications_restorable (client_id>?)"),
        ] {
            let plan = sqlite_plan(sql);
            assert!(plan.iter().any(|step| step.contains(index)), "{index}: {plan:#?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
        }
    }
}

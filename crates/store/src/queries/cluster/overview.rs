//! What an operator sees at a glance: the nodes, and how much waits. No count reads more rows than it is
//! allowed.

use domain::{NodeId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const NODES: &str = sql!("SELECT ", NodeListing::COLUMNS, " FROM nodes ORDER BY node_id LIMIT $1");

/// Counts up to `$1` rows.
macro_rules! count_sql {
    ($rows:literal) => {
        sql!("SELECT COUNT(*) FROM (SELECT 1 FROM ", $rows, " LIMIT $1) b")
    };
}

/// A node in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeListing {
    /// Its name.
    pub node_id: NodeId,
    /// Its roles, separated by a space.
    pub roles: String,
    /// The version of its program.
    pub version: String,
    /// When it started.
    pub started_at: Timestamp,
    /// Its last heartbeat.
    pub seen_at: Timestamp,
    /// The address of its sockets; `None` on a node that accepts no sessions.
    pub session_base: Option<String>,
}

columns!(NodeListing {
    node_id: "node_id",
    roles: "roles",
    version: "version",
    started_at: "started_at",
    seen_at: "seen_at",
    session_base: "session_base",
});

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// Lost events of the last hour.
    LostEvents,
    /// Batches of events whose publication is not confirmed.
    UnpublishedEvents,
    /// Messages that wait for their webhook.
    WaitingDeliveries,
    /// Webhooks that fail, or are disabled.
    WebhooksInTrouble,
    /// Messages that wait for the mail hook.
    Mails,
    /// Disabled applications.
    DisabledApplications,
    /// Applications that were deleted for want of use and can be restored.
    RestorableApplications,
    /// Barred people, with those whose channel is being deleted.
    BarredChannels,
}

impl Backlog {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::LostEvents,
        Self::UnpublishedEvents,
        Self::WaitingDeliveries,
        Self::WebhooksInTrouble,
        Self::Mails,
        Self::DisabledApplications,
        Self::RestorableApplications,
        Self::BarredChannels,
    ];

    const fn sql(self) -> &'static str {
        match self {
            Self::LostEvents => count_sql!("lost_events"),
            Self::UnpublishedEvents => count_sql!("event_outbox WHERE taken_over_at IS NULL"),
            Self::WaitingDeliveries => count_sql!("webhook_deliveries WHERE state = 'WAITING'"),
            Self::WebhooksInTrouble => {
                count_sql!(
                    "webhooks WHERE client_id IS NOT NULL AND (failing_since IS NOT NULL OR enabled = FALSE)"
                )
            }
            Self::Mails => count_sql!("mail_outbox"),
            Self::DisabledApplications => {
                count_sql!("applications WHERE disabled_at IS NOT NULL AND purging = FALSE")
            }
            Self::RestorableApplications => {
                count_sql!("applications WHERE deleted_at IS NOT NULL AND purging = FALSE")
            }
            Self::BarredChannels => count_sql!("channels WHERE barred_at IS NOT NULL"),
        }
    }
}

impl Tx {
    /// The first `limit` nodes.
    pub async fn nodes(&mut self, limit: i64) -> Result<Vec<NodeListing>, StoreError> {
        self.fetch_all(NODES, params![limit]).await
    }

    /// How many of these there are, counted up to `max`.
    pub async fn count_up_to(&mut self, what: Backlog, max: i64) -> Result<i64, StoreError> {
        self.fetch_one(what.sql(), params![max]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn sqlite_counts_in_an_index_of_what_is_counted() {
        for (what, index) in [
            (Backlog::WaitingDeliveries, "webhook_deliveries_due"),
            (Backlog::WebhooksInTrouble, "webhooks_in_trouble"),
            (Backlog::DisabledApplications, "applications_disabled"),
            (Backlog::RestorableApplications, "applications_"),
            (Backlog::BarredChannels, "channels_barred"),
        ] {
            let plan = sqlite_plan(what.sql());
            assert!(plan.iter().any(|step| step.contains(index)), "{what:?}: {plan:#?}");
        }
    }
}

//! The audit log (`docs/audit-log.md`).

use domain::audit::AuditEntry;
use domain::{AuditEntryId, Timestamp};
use store::Tx;
pub use store::queries::audit_log::AuditFilter;

use crate::identity::organizations::ListPage;
use crate::{Error, Service};

impl Service {
    /// The entries of the audit log that match a filter, newest first.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list or filter.
    pub async fn audit_log(
        &self,
        filter: AuditFilter,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<AuditEntry>, Error> {
        let context = context(&filter);
        let before = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let before = before.map(AuditEntryId::stored);
        let entries = self
            .read(async move |tx: &mut Tx| Ok(tx.audit_entries(&filter, before.as_ref(), size + 1).await?))
            .await?;
        let (items, next) = self.page(&context, entries, size, |entry| entry.entry_id.to_string());
        Ok(ListPage { items, next })
    }
}

/// The context that a cursor is bound to: the list and its filter, but not the size of a page.
fn context(filter: &AuditFilter) -> String {
    let AuditFilter { subject, actor, action, since, until } = filter;
    let times = [since, until].map(|at| at.map(Timestamp::as_millis));
    serde_json::json!(["audit-log", subject, actor, action.map(|action| action.name()), times]).to_string()
}

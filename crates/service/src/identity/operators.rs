//! The people who may use the operator pages, and their roles.

use domain::ChannelId;
use domain::audit::AuditAction;
use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use serde_json::json;
use store::Tx;
pub use store::queries::operators::StaffMember;

use crate::channel::channels::not_found;
use crate::identity::organizations::ListPage;
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Gives the person of a channel an operator role, with effect on the next request.
    ///
    /// # Errors
    /// `NotFound` when the channel does not exist, or has no person who signs in.
    pub async fn put_operator_role(&self, channel: &ChannelId, role: OperatorRole) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            work.lock_account_of_lower_rank(&channel).await?;
            let now = work.now();
            let put = work.put_operator_role(&channel, role, now).await;
            if put.map_err(not_found(Resource::Channel))? {
                let details = json!({ "role": role.name() });
                work.audit_with(AuditAction::OperatorRolePut, &channel, details).await?;
            }
            Ok::<_, Error>(())
        })
        .await
    }

    /// Takes the operator role of the person of a channel, with effect on the next request. A missing role is
    /// no error.
    ///
    /// # Errors
    /// `NotFound` when the channel does not exist.
    pub async fn delete_operator_role(&self, channel: &ChannelId) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            work.lock_account_of_lower_rank(&channel).await?;
            if work.delete_operator_role(&channel).await? {
                work.audit(AuditAction::OperatorRoleDelete, &channel).await?;
            }
            Ok::<_, Error>(())
        })
        .await
    }

    /// The people with an operator role, ordered by id.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list.
    pub async fn operators(&self, size: i64, next: Option<&str>) -> Result<ListPage<StaffMember>, Error> {
        const CONTEXT: &str = "operators";
        let after = next.map(|cursor| self.cursors().open("next", CONTEXT, cursor)).transpose()?;
        let after = after.unwrap_or_default();
        let items = self.read(async move |tx: &mut Tx| Ok(tx.operators(&after, size + 1).await?)).await?;
        let (items, next) = self.page(CONTEXT, items, size, |item| item.channel_id.to_string());
        Ok(ListPage { items, next })
    }
}

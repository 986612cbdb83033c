//! The operator's view of sessions.

use bus::Message;
use domain::audit::AuditAction;
use domain::refusal::Resource;
use domain::session::SessionDetails;
use domain::{Refusal, SessionKey};
use serde_json::json;
use store::Tx;
use store::queries::session_details::SessionFilter;

use crate::work::Work;
use crate::{Error, Service};

/// The close reason of sessions that the operator ends, as named in the sockets' table of reasons.
const EVICTED: &str = "evicted";

/// One page of a list of sessions.
#[derive(Clone, Debug)]
pub struct SessionDetailsPage {
    /// Newest first.
    pub sessions: Vec<SessionDetails>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

impl Service {
    /// Returns a session of any owner, connected or ended within 90 days.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no session with this key.
    pub async fn session_details(&self, key: &SessionKey) -> Result<SessionDetails, Error> {
        let key = key.clone();
        let details = self.read(async move |tx: &mut Tx| Ok(tx.session_details(&key).await?)).await?;
        Ok(details.ok_or(Refusal::NotFound(Resource::Session))?)
    }

    /// Returns sessions that match a filter, newest first. A walk from cursor to cursor returns each
    /// session once that existed at the beginning of the walk and still matches, also while new sessions
    /// connect. Every page costs the same.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list or filter.
    pub async fn list_sessions(
        &self,
        filter: SessionFilter,
        size: i64,
        next: Option<&str>,
    ) -> Result<SessionDetailsPage, Error> {
        let context = context(&filter);
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let after = after.map(SessionKey::stored);
        let sessions = self
            .read(async move |tx: &mut Tx| {
                Ok(tx.list_session_details(&filter, after.as_ref(), size + 1).await?)
            })
            .await?;
        let (sessions, next) = self.page(&context, sessions, size, |session| session.session_key.to_string());
        Ok(SessionDetailsPage { sessions, next })
    }

    /// Ends a session on any node. Nothing happens when the session does not exist or has ended.
    pub async fn evict_session(&self, key: &SessionKey) -> Result<(), Error> {
        let key = key.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            if let Some(node) = work.end_session(&key, now, EVICTED).await? {
                let owner = work.session_details(&key).await?.map(|session| session.owner);
                let details = json!({
                    "clientId": owner.as_ref().map(|owner| owner.client_id()),
                    "channelId": owner.as_ref().and_then(|owner| owner.channel_id()),
                });
                work.audit_with(AuditAction::SessionEnd, &key, details).await?;
                work.publish(Message::SessionEvicted { node, session_key: key });
            }
            Ok(())
        })
        .await
    }
}

/// Returns the context that a cursor is bound to: the list and every filter, but not the size of a page.
fn context(filter: &SessionFilter) -> String {
    let SessionFilter { client_id, channel_id, connected } = filter;
    serde_json::json!([
        "platform-sessions",
        client_id.as_ref().map(|id| id.as_str()),
        channel_id.as_ref().map(|id| id.as_str()),
        connected
    ])
    .to_string()
}

//! The operator's view of sessions.

use bus::Message;
use domain::refusal::Resource;
use domain::session::SessionDetails;
use domain::{Refusal, SessionKey};
use store::Tx;
use store::queries::session_details::SessionFilter;

use crate::work::Work;
use crate::{Error, Service};

/// Why sessions end that the operator ends, as the sockets' own table of reasons calls it.
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
    /// A session, connected or ended within 90 days, whosever it is.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is none of that key.
    pub async fn session_details(&self, key: &SessionKey) -> Result<SessionDetails, Error> {
        let key = key.clone();
        let details = self.read(async move |tx: &mut Tx| Ok(tx.session_details(&key).await?)).await?;
        Ok(details.ok_or(Refusal::NotFound(Resource::Session))?)
    }

    /// Sessions under a filter, newest first. A walk from cursor to cursor gives each session that there was
    /// at its beginning and still fits once, also when sessions connect meanwhile; any page costs the same.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor that is not of this list and filter.
    pub async fn list_sessions(
        &self,
        filter: SessionFilter,
        size: i64,
        next: Option<&str>,
    ) -> Result<SessionDetailsPage, Error> {
        let context = context(&filter);
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let after = after.map(SessionKey::stored);
        let mut sessions = self
            .read(async move |tx: &mut Tx| {
                // One more than the page shows whether there is a next one.
                Ok(tx.list_session_details(&filter, after.as_ref(), size + 1).await?)
            })
            .await?;
        let more = sessions.len() > usize::try_from(size).unwrap_or(usize::MAX);
        if more {
            sessions.pop();
        }
        let last = sessions.last().filter(|_| more);
        let next = last.map(|session| self.cursors().seal(&context, session.session_key.as_str()));
        Ok(SessionDetailsPage { sessions, next })
    }

    /// Ends a session, on whatever node it is. Nothing happens when it is not there or has ended.
    pub async fn evict_session(&self, key: &SessionKey) -> Result<(), Error> {
        let key = key.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            if let Some(node) = work.end_session(&key, now, EVICTED).await? {
                work.publish(Message::SessionEvicted { node, session_key: key });
            }
            Ok(())
        })
        .await
    }
}

/// What a cursor is bound to: the list and every filter, but not the size of a page.
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

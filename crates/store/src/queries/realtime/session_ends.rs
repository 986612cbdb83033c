//! The end of session URLs and sessions whose application, user or client secret is revoked.
//!
//! The revocation is committed in an earlier transaction. From then on
//! [`take_session_url`](Tx::take_session_url) gives no such URL. An earlier handshake locks the URL's row
//! until its session is committed. So [`delete_session_urls`](Tx::delete_session_urls) waits for the
//! handshake, and [`end_sessions`](Tx::end_sessions) finds its session.

use domain::session::SessionOwner;
use domain::{ApplicationSecretId, ChannelId, ClientId, SessionKey, Timestamp};

use crate::queries::columns::sql;
use crate::{StoreError, Tx, Value, params};

/// The most sessions that one statement ends. A small statement can share a commit with the requests of
/// users.
pub const SESSION_ENDS_MAX: i64 = 500;

const DELETE_URLS_OF_APPLICATION: &str = "DELETE FROM session_urls WHERE client_id = $1";
const DELETE_URLS_OF_CHANNEL: &str = "DELETE FROM session_urls WHERE channel_id = $1";
const DELETE_URLS_OF_SECRET: &str = "DELETE FROM session_urls WHERE secret_id = $1";

/// Their nodes find the sessions by [`Tx::sessions_closing`].
macro_rules! end_sql {
    ($whose:literal) => {
        sql!(
            "UPDATE sessions SET disconnected_at = $2, close_reason = $3, closing_node = node_id
             WHERE disconnected_at IS NULL AND session_key IN (
                 SELECT session_key FROM sessions WHERE ",
            $whose,
            " AND disconnected_at IS NULL AND session_key > $4 ORDER BY session_key LIMIT $5)
             RETURNING session_key"
        )
    };
}
const END_OF_APPLICATION: &str = end_sql!("client_id = $1");
const END_OF_CHANNEL: &str = end_sql!("channel_id = $1");
/// An application has few connected sessions of its own, which are found by their common owner.
const END_OF_SECRET: &str = end_sql!("counted_as = $1 AND secret_id = $6");

/// What session URLs and sessions were admitted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmittedBy {
    /// An application: its own sessions, and those of its users.
    Application(ClientId),
    /// A user, by the user's channel.
    Channel(ChannelId),
    /// A client secret.
    Secret(ClientId, ApplicationSecretId),
}

impl Tx {
    /// Deletes the session URLs that were admitted by it.
    pub async fn delete_session_urls(&mut self, admitted: &AdmittedBy) -> Result<u64, StoreError> {
        match admitted {
            AdmittedBy::Application(id) => self.execute(DELETE_URLS_OF_APPLICATION, params![id]).await,
            AdmittedBy::Channel(id) => self.execute(DELETE_URLS_OF_CHANNEL, params![id]).await,
            AdmittedBy::Secret(_, id) => self.execute(DELETE_URLS_OF_SECRET, params![id]).await,
        }
    }

    /// Ends up to [`SESSION_ENDS_MAX`] connected sessions that were admitted by it, after `after` in the
    /// order of their keys. Gives the last one; `None` if there was none.
    pub async fn end_sessions(
        &mut self,
        admitted: &AdmittedBy,
        after: &SessionKey,
        now: Timestamp,
        reason: &str,
    ) -> Result<Option<SessionKey>, StoreError> {
        let owner;
        let (sql, whose, secret): (_, Value<'_>, Option<Value<'_>>) = match admitted {
            AdmittedBy::Application(id) => (END_OF_APPLICATION, id.into(), None),
            AdmittedBy::Channel(id) => (END_OF_CHANNEL, id.into(), None),
            AdmittedBy::Secret(client_id, id) => {
                owner = SessionOwner::Client { client_id: client_id.clone() }.counted_as();
                (END_OF_SECRET, Value::from(&owner), Some(id.into()))
            }
        };
        let mut values = vec![whose, now.into(), reason.into(), after.into(), SESSION_ENDS_MAX.into()];
        values.extend(secret);
        Ok(self.fetch_all(sql, &values).await?.into_iter().max())
    }
}

//! Browsers that are signed in on the consent pages.

use domain::limits::BROWSER_SESSIONS_MAX;
use domain::operator_key::OperatorRole;
use domain::secret::SecretHash;
use domain::{BrowserSessionId, ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const INSERT: &str = "
    INSERT INTO browser_sessions (token_hash, channel_id, expires_at, session_id) VALUES ($1, $2, $3, $4)";

/// The oldest sign-ins of a person, beyond the latest `$2`. Those that have ended come last.
const DELETE_OLDEST: &str = "
    DELETE FROM browser_sessions WHERE token_hash IN (
        SELECT token_hash FROM browser_sessions WHERE channel_id = $1
        ORDER BY expires_at DESC, session_id DESC LIMIT 1000 OFFSET $2)";

const FIND: &str = sql!(
    "SELECT ",
    SignedIn::COLUMNS,
    "
    FROM browser_sessions b JOIN channels c ON c.channel_id = b.channel_id
    LEFT JOIN operators o ON o.channel_id = b.channel_id
    WHERE b.token_hash = $1 AND b.expires_at > $2"
);

const DELETE: &str = "DELETE FROM browser_sessions WHERE token_hash = $1";

const DELETE_OF_CHANNEL: &str = "DELETE FROM browser_sessions WHERE channel_id = $1";

/// The other rows of a channel are few: signing in needs the password.
const DELETE_ONE_OF_CHANNEL: &str = "DELETE FROM browser_sessions WHERE channel_id = $1 AND session_id = $2";

/// Of concurrent uses one is recorded.
const RECORD_USE: &str = "
    UPDATE browser_sessions SET last_used_at = $2, user_agent = $3, address = $4
    WHERE token_hash = $1 AND last_used_at <= $5";

const CONFIRM: &str = "
    UPDATE browser_sessions SET confirmed_at = $3, token_hash = $4, session_id = $5
    WHERE token_hash = $1 AND channel_id = $2 AND expires_at > $3";

const RENEW: &str = "
    UPDATE browser_sessions SET token_hash = $3, session_id = $4 WHERE token_hash = $1 AND channel_id = $2";

/// A sign-in ends a fixed time after it began, so `$4` tells its age.
const IS_CONFIRMED: &str = "
    SELECT 1 FROM browser_sessions
    WHERE token_hash = $1 AND channel_id = $2 AND (confirmed_at > $3 OR expires_at > $4) AND expires_at > $5";

const LIST: &str = sql!(
    "SELECT ",
    BrowserSession::COLUMNS,
    "
    FROM browser_sessions WHERE channel_id = $1 AND expires_at > $2 AND (expires_at, session_id) < ($3, $4)
    ORDER BY expires_at DESC, session_id DESC LIMIT $5"
);

/// A signed-in person.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
    /// What the person may do on the operator pages.
    pub operator_role: Option<OperatorRole>,
    /// The last recorded use of the browser.
    pub last_used_at: Timestamp,
}

columns!(SignedIn {
    channel_id: "b.channel_id",
    channel_name: "c.channel_name",
    operator_role: "o.role",
    last_used_at: "b.last_used_at",
});

/// A browser in the list of its person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserSession {
    /// Its name in the list.
    pub session_id: BrowserSessionId,
    /// When the sign-in ends.
    pub expires_at: Timestamp,
    /// The last recorded use; 0 before the first.
    pub last_used_at: Timestamp,
    /// The `User-Agent` of that use. Untrusted.
    pub user_agent: String,
    /// The address block of that use.
    pub address: String,
}

columns!(BrowserSession {
    session_id: "session_id",
    expires_at: "expires_at",
    last_used_at: "last_used_at",
    user_agent: "user_agent",
    address: "address",
});

/// A use of a browser to record.
#[derive(Clone, Debug)]
pub struct BrowserUse {
    /// The `User-Agent`.
    pub user_agent: String,
    /// The address block.
    pub address: String,
}

impl Tx {
    /// Signs a browser in. Of more than [`BROWSER_SESSIONS_MAX`] the oldest sign-in ends. The channel is
    /// locked.
    pub async fn insert_browser_session(
        &mut self,
        token: &SecretHash,
        channel: &ChannelId,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let session_id = BrowserSessionId::of(token);
        self.execute(DELETE_OLDEST, params![channel, BROWSER_SESSIONS_MAX - 1]).await?;
        self.execute(INSERT, params![token, channel, expires_at, &session_id]).await?;
        Ok(())
    }

    /// Records that the person at a browser proved to own the account, and gives the browser another token:
    /// `false` if the person is not signed in there.
    pub async fn confirm_browser(
        &mut self,
        token: &SecretHash,
        channel: &ChannelId,
        now: Timestamp,
        new: &SecretHash,
    ) -> Result<bool, StoreError> {
        let session_id = BrowserSessionId::of(new);
        Ok(self.execute(CONFIRM, params![token, channel, now, new, &session_id]).await? > 0)
    }

    /// Gives a browser another token: `false` if the person is not signed in there.
    pub async fn renew_browser(
        &mut self,
        token: &SecretHash,
        channel: &ChannelId,
        new: &SecretHash,
    ) -> Result<bool, StoreError> {
        let session_id = BrowserSessionId::of(new);
        Ok(self.execute(RENEW, params![token, channel, new, &session_id]).await? > 0)
    }

    /// Whether the person at a browser that is signed in at `now` proved after `since` to own the account, or
    /// signed in there. A sign-in that began then ends after `ends_after`.
    pub async fn is_browser_confirmed(
        &mut self,
        token: &SecretHash,
        channel: &ChannelId,
        (since, ends_after): (Timestamp, Timestamp),
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let values = params![token, channel, since, ends_after, now];
        Ok(self.query_opt(IS_CONFIRMED, values).await?.is_some())
    }

    /// Records a use at `now`, unless one later than `recorded_before` is recorded.
    pub async fn record_browser_use(
        &mut self,
        token: &SecretHash,
        used: &BrowserUse,
        now: Timestamp,
        recorded_before: Timestamp,
    ) -> Result<bool, StoreError> {
        let BrowserUse { user_agent, address } = used;
        let recorded = params![token, now, user_agent, address, recorded_before];
        Ok(self.execute(RECORD_USE, recorded).await? > 0)
    }

    /// Up to `limit` browsers of a person that are signed in at `now`, the latest sign-in first, after a
    /// place in that list.
    pub async fn browser_sessions(
        &mut self,
        channel: &ChannelId,
        now: Timestamp,
        (expires_at, session_id): (Timestamp, &str),
        limit: i64,
    ) -> Result<Vec<BrowserSession>, StoreError> {
        self.fetch_all(LIST, params![channel, now, expires_at, session_id, limit]).await
    }

    /// Signs one browser of a person out: `false` if the person has no such browser.
    pub async fn delete_browser_session_of(
        &mut self,
        channel: &ChannelId,
        session_id: &BrowserSessionId,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(DELETE_ONE_OF_CHANNEL, params![channel, session_id]).await? > 0)
    }

    /// The person who is signed in with that cookie at `now`.
    pub async fn browser_session(
        &mut self,
        token: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<SignedIn>, StoreError> {
        self.fetch_optional(FIND, params![token, now]).await
    }

    /// Signs every browser of a person out. Gives their number.
    pub async fn delete_browser_sessions(&mut self, channel: &ChannelId) -> Result<u64, StoreError> {
        self.execute(DELETE_OF_CHANNEL, params![channel]).await
    }

    /// Signs a browser out.
    pub async fn delete_browser_session(&mut self, token: &SecretHash) -> Result<(), StoreError> {
        self.execute(DELETE, params![token]).await?;
        Ok(())
    }
}

//! Browsers that are signed in on the consent pages.

use domain::operator_key::OperatorRole;
use domain::secret::SecretHash;
use domain::{ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const INSERT: &str = "INSERT INTO browser_sessions (token_hash, channel_id, expires_at) VALUES ($1, $2, $3)";

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

/// A signed-in person.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
    /// What the person may do on the operator pages.
    pub operator_role: Option<OperatorRole>,
}

columns!(SignedIn { channel_id: "b.channel_id", channel_name: "c.channel_name", operator_role: "o.role" });

impl Tx {
    /// Signs a browser in.
    pub async fn insert_browser_session(
        &mut self,
        token: &SecretHash,
        channel: &ChannelId,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(INSERT, params![token, channel, expires_at]).await?;
        Ok(())
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

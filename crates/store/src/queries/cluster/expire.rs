//! Ends credentials before their time, for sandboxes. Some of these statements have no index.

use domain::secret::SecretHash;
use domain::{ChannelId, ClientId, Timestamp};

use crate::queries::columns::sql;
use crate::queries::credential_changes::Dependency;
use crate::{StoreError, Tx, params};

/// Ends every row that is still valid, and fits the hash, the client and the channel that are given.
macro_rules! expire_sql {
    ($table:literal, $hash:literal, $usable:literal) => {
        sql!(
            "UPDATE ",
            $table,
            " SET expires_at = $1 WHERE expires_at > $1 AND ",
            $usable,
            " AND (CAST($2 AS TEXT) IS NULL OR ",
            $hash,
            " = $2) AND (CAST($3 AS TEXT) IS NULL OR client_id = $3)
            AND (CAST($4 AS TEXT) IS NULL OR channel_id = $4) RETURNING client_id, channel_id"
        )
    };
}
const CODES: &str = expire_sql!("authorization_codes", "code_hash", "used_at IS NULL");
const ACCESS_TOKENS: &str = expire_sql!("access_tokens", "token_hash", "TRUE");
const REFRESH_TOKENS: &str = expire_sql!("refresh_tokens", "token_hash", "used_at IS NULL");
const SESSION_URLS: &str = expire_sql!("session_urls", "token_hash", "TRUE");

/// What can end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiring {
    /// An authorization code that was not used.
    Code,
    /// An access token.
    AccessToken,
    /// A refresh token that was not used.
    RefreshToken,
    /// A session URL that was not used.
    SessionUrl,
}

/// Which of them are meant: all that fit what is given.
#[derive(Clone, Debug, Default)]
pub struct ExpireFilter {
    /// The hash of the credential itself.
    pub hash: Option<SecretHash>,
    /// The application.
    pub client_id: Option<ClientId>,
    /// The user.
    pub channel_id: Option<ChannelId>,
}

/// The application and the user of a credential. A session URL of an application has no user.
pub type Expired = (ClientId, Option<ChannelId>);

impl Tx {
    /// Ends credentials now, and returns whose they were.
    pub async fn expire(
        &mut self,
        what: Expiring,
        filter: &ExpireFilter,
        now: Timestamp,
    ) -> Result<Vec<Expired>, StoreError> {
        let ExpireFilter { hash, client_id, channel_id } = filter;
        let statement = match what {
            Expiring::Code => CODES,
            Expiring::AccessToken => ACCESS_TOKENS,
            Expiring::RefreshToken => REFRESH_TOKENS,
            Expiring::SessionUrl => SESSION_URLS,
        };
        let hash = hash.as_ref().map(SecretHash::as_str);
        let (client, channel) =
            (client_id.as_ref().map(ClientId::as_str), channel_id.as_ref().map(ChannelId::as_str));
        let expired: Vec<Expired> = self.fetch_all(statement, params![now, hash, client, channel]).await?;
        for (client_id, channel_id) in &expired {
            if let Some(channel_id) = channel_id {
                self.credentials_changed(Dependency::Consent(client_id, channel_id));
            }
        }
        Ok(expired)
    }
}

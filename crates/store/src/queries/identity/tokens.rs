//! Codes, access tokens and refresh tokens, all as hashes.

use std::ops::Deref;

use domain::secret::SecretHash;
use domain::token::{Caller, SingleUse, TokenFamily};
use domain::{ChannelId, ClientId, Profile, ScopeSet, Timestamp};

use super::applications::stored_share;
use super::credential_changes::{ChangeSlot, Dependency};
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const INSERT_CODE: &str = "
    INSERT INTO authorization_codes
        (code_hash, family, client_id, channel_id, state_hash, redirect_uri, expires_at, began_at, generation)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8,
        COALESCE((SELECT token_generation FROM applications WHERE client_id = $3), 0))";

/// One of an earlier generation of its application is left out, as if it were deleted.
const FIND_CODE: &str = sql!(
    "SELECT ",
    StoredCredential::COLUMNS,
    ", state_hash FROM authorization_codes WHERE code_hash = $1
     AND generation = (SELECT token_generation FROM applications a WHERE a.client_id = authorization_codes.client_id)"
);

const USE_CODE: &str = "
    UPDATE authorization_codes SET used_at = $2
    WHERE code_hash = $1 AND used_at IS NULL AND expires_at > $2
    RETURNING family";

const INSERT_ACCESS_TOKEN: &str = "
    INSERT INTO access_tokens (token_hash, family, client_id, channel_id, expires_at, generation)
    VALUES ($1, $2, $3, $4, $5, $6)";

const INSERT_REFRESH_TOKEN: &str = "
    INSERT INTO refresh_tokens (token_hash, family, client_id, channel_id, expires_at, generation, began_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

const HOLDER: &str = sql!(
    "SELECT ",
    Holder::COLUMNS,
    "
    FROM access_tokens t
    JOIN consents c ON c.client_id = t.client_id AND c.channel_id = t.channel_id
    JOIN applications a ON a.client_id = t.client_id
    JOIN channels u ON u.channel_id = t.channel_id
    WHERE t.token_hash = $1 AND t.expires_at > $2 AND t.generation = a.token_generation
        AND a.deleted_at IS NULL AND a.disabled_at IS NULL AND u.barred_at IS NULL"
);

const FAMILY_LIVES: &str = "
    SELECT 1 FROM access_tokens t JOIN applications a ON a.client_id = t.client_id
    WHERE t.client_id = $1 AND t.channel_id = $2 AND t.family = $3 AND t.generation = a.token_generation
        AND a.deleted_at IS NULL AND a.disabled_at IS NULL LIMIT 1";

/// One of an earlier generation of its application is left out, as if it were deleted.
const FIND_REFRESH_TOKEN: &str = sql!(
    "SELECT ",
    StoredCredential::COLUMNS,
    " FROM refresh_tokens WHERE token_hash = $1
     AND generation = (SELECT token_generation FROM applications a WHERE a.client_id = refresh_tokens.client_id)"
);

const USE_REFRESH_TOKEN: &str = "
    UPDATE refresh_tokens SET used_at = $2
    WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2
    RETURNING family";

/// A caller's `token_type_hint` does not narrow the search, so the statement reads both tables.
const OWNER: &str = "
    SELECT client_id, channel_id FROM access_tokens WHERE token_hash = $1
    UNION ALL
    SELECT client_id, channel_id FROM refresh_tokens WHERE token_hash = $1";

/// A token in any of its tables.
const TRACE: &str = "
    SELECT t.client_id, CASE WHEN t.generation = a.token_generation THEN 'access' ELSE 'revoked' END, t.expires_at
    FROM access_tokens t JOIN applications a ON a.client_id = t.client_id WHERE t.token_hash = $1
    UNION ALL
    SELECT t.client_id, CASE WHEN t.generation = a.token_generation THEN 'refresh' ELSE 'revoked' END, t.expires_at
    FROM refresh_tokens t JOIN applications a ON a.client_id = t.client_id WHERE t.token_hash = $1
    UNION ALL
    SELECT client_id, 'revoked', expires_at FROM ended_tokens WHERE token_hash = $1";

const REMEMBER_ACCESS_TOKENS: &str = "
    INSERT INTO ended_tokens (token_hash, client_id, expires_at)
    SELECT token_hash, client_id, expires_at FROM access_tokens
    WHERE client_id = $1 AND channel_id = $2 AND (CAST($3 AS TEXT) IS NULL OR family = $3)";

const REMEMBER_REFRESH_TOKENS: &str = "
    INSERT INTO ended_tokens (token_hash, client_id, expires_at)
    SELECT token_hash, client_id, expires_at FROM refresh_tokens
    WHERE client_id = $1 AND channel_id = $2 AND (CAST($3 AS TEXT) IS NULL OR family = $3)";

const DELETE_ACCESS_TOKENS: &str = "
    DELETE FROM access_tokens WHERE client_id = $1 AND channel_id = $2 AND (CAST($3 AS TEXT) IS NULL OR family = $3)";

const DELETE_REFRESH_TOKENS: &str = "
    DELETE FROM refresh_tokens WHERE client_id = $1 AND channel_id = $2 AND (CAST($3 AS TEXT) IS NULL OR family = $3)";

/// A used code stays, because its second use is a theft.
const DELETE_UNUSED_CODES: &str = "
    DELETE FROM authorization_codes WHERE client_id = $1 AND channel_id = $2 AND used_at IS NULL";

const END_ALL: &str = "
    UPDATE applications SET token_generation = token_generation + 1
    WHERE client_id = $1 AND purging = FALSE AND (deleted_at IS NULL OR deleted_at > $2)";

/// Users are counted up to `$3`.
const COUNT_USERS: &str = "
    SELECT COUNT(*) FROM (
        SELECT DISTINCT t.channel_id FROM refresh_tokens t JOIN applications a ON a.client_id = t.client_id
        WHERE t.client_id = $1 AND t.used_at IS NULL AND t.expires_at > $2 AND t.generation = a.token_generation
        LIMIT $3) b";

/// A new code.
pub struct NewCode<'a> {
    /// Its hash.
    pub hash: &'a SecretHash,
    /// The family of its tokens.
    pub family: &'a TokenFamily,
    /// The application.
    pub client_id: &'a ClientId,
    /// The user.
    pub channel_id: &'a ChannelId,
    /// The hash of the request's `state`.
    pub state: &'a SecretHash,
    /// The redirect address.
    pub redirect_uri: &'a str,
    /// When the sign-in ended.
    pub began_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// A stored code or refresh token.
#[derive(Clone, Debug)]
pub struct StoredCredential {
    /// The family that it belongs to.
    pub family: TokenFamily,
    /// The application that it was given to.
    pub client_id: ClientId,
    /// The user that it acts for.
    pub channel_id: ChannelId,
    /// The token generation of its application when it was issued.
    pub generation: i64,
    /// When the sign-in ended that it goes back to.
    pub began_at: Timestamp,
    /// Its expiry and its use.
    pub single_use: SingleUse,
}

columns!(StoredCredential {
    family: "family" => TokenFamily,
    client_id: "client_id",
    channel_id: "channel_id",
    generation: "generation",
    began_at: "began_at",
    single_use: "expires_at, used_at" => |(expires_at, used_at)| SingleUse { expires_at, used_at },
});

/// The kind of a token that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// An access token.
    Access,
    /// A refresh token.
    Refresh,
    /// A token of either kind that was revoked.
    Revoked,
}

/// The holder of an access token: everything that a call needs to know. It dereferences to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The caller.
    pub caller: Caller,
    /// The name of the user's channel.
    pub channel_name: String,
    /// When the token expires.
    pub expires_at: Timestamp,
}

columns!(Holder { caller: Caller::COLUMNS, channel_name: "u.channel_name", expires_at: "t.expires_at" });

columns!(Caller {
    client_id: "t.client_id",
    channel_id: "t.channel_id",
    family: "t.family" => TokenFamily,
    scopes: "c.scopes, a.scopes" => |(consented, chosen): (ScopeSet, ScopeSet)| consented.and(chosen),
    profile: "a.profile" => |name: Option<&str>| name.and_then(Profile::from_name),
    quota: "CASE WHEN a.quota THEN a.quota_percent ELSE 0 END" => stored_share,
});

impl Deref for Holder {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl Holder {
    /// The slots in which the changes of its dependencies are counted.
    pub fn slots(&self) -> Vec<ChangeSlot> {
        let Caller { client_id, channel_id, .. } = &self.caller;
        let dependencies = [
            Dependency::Consent(client_id, channel_id),
            Dependency::Application(client_id),
            Dependency::Channel(channel_id),
        ];
        dependencies.map(ChangeSlot::from).into()
    }
}

/// A new token.
pub struct NewToken<'a> {
    /// Its hash.
    pub hash: &'a SecretHash,
    /// Its family.
    pub family: &'a TokenFamily,
    /// The application.
    pub client_id: &'a ClientId,
    /// The user.
    pub channel_id: &'a ChannelId,
    /// The token generation of its application.
    pub generation: i64,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl Tx {
    /// Records a code.
    pub async fn insert_code(&mut self, code: NewCode<'_>) -> Result<(), StoreError> {
        self.execute(
            INSERT_CODE,
            params![
                code.hash,
                code.family.0.as_str(),
                code.client_id,
                code.channel_id,
                code.state,
                code.redirect_uri,
                code.expires_at,
                code.began_at
            ],
        )
        .await?;
        Ok(())
    }

    /// The code of that hash, with the hash of the `state` of its sign-in.
    pub async fn code(
        &mut self,
        hash: &SecretHash,
    ) -> Result<Option<(StoredCredential, SecretHash)>, StoreError> {
        self.fetch_optional(FIND_CODE, params![hash]).await
    }

    /// Uses a code: `true` for exactly one of any number of callers.
    pub async fn use_code(&mut self, hash: &SecretHash, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.query_opt(USE_CODE, params![hash, now]).await?.is_some())
    }

    /// Records an access token.
    pub async fn insert_access_token(&mut self, token: NewToken<'_>) -> Result<(), StoreError> {
        let NewToken { hash, family, client_id, channel_id, generation, expires_at } = token;
        let values = params![hash, family.0.as_str(), client_id, channel_id, expires_at, generation];
        self.execute(INSERT_ACCESS_TOKEN, values).await?;
        Ok(())
    }

    /// Records a refresh token of a sign-in that ended at `began_at`.
    pub async fn insert_refresh_token(
        &mut self,
        token: NewToken<'_>,
        began_at: Timestamp,
    ) -> Result<(), StoreError> {
        let NewToken { hash, family, client_id, channel_id, generation, expires_at } = token;
        let values =
            params![hash, family.0.as_str(), client_id, channel_id, expires_at, generation, began_at];
        self.execute(INSERT_REFRESH_TOKEN, values).await?;
        Ok(())
    }

    /// Ends all tokens and codes of an application: `false` if there is none, or it was deleted at
    /// `irrecoverable_since` or before.
    pub async fn end_all_tokens(
        &mut self,
        client_id: &ClientId,
        irrecoverable_since: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        Ok(self.execute(END_ALL, params![client_id, irrecoverable_since]).await? > 0)
    }

    /// The number of users with a valid refresh token of an application, counted up to `limit`.
    pub async fn count_token_users(
        &mut self,
        client_id: &ClientId,
        now: Timestamp,
        limit: i64,
    ) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_USERS, params![client_id, now, limit]).await
    }

    /// The holder of an access token at `now`: one look-up for every user-mode call.
    pub async fn holder(&mut self, hash: &SecretHash, now: Timestamp) -> Result<Option<Holder>, StoreError> {
        self.fetch_optional(HOLDER, params![hash, now]).await
    }

    /// Whether an access token of the caller's family exists. Under the consent's lock it shows that no
    /// revocation came in between.
    pub async fn family_lives(&mut self, caller: &Caller) -> Result<bool, StoreError> {
        let row = self
            .query_opt(FAMILY_LIVES, params![&caller.client_id, &caller.channel_id, caller.family.0.as_str()])
            .await?;
        Ok(row.is_some())
    }

    /// The refresh token of that hash.
    pub async fn refresh_token(&mut self, hash: &SecretHash) -> Result<Option<StoredCredential>, StoreError> {
        self.fetch_optional(FIND_REFRESH_TOKEN, params![hash]).await
    }

    /// Uses a refresh token: `true` for exactly one of any number of callers.
    pub async fn use_refresh_token(&mut self, hash: &SecretHash, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.query_opt(USE_REFRESH_TOKEN, params![hash, now]).await?.is_some())
    }

    /// The trace of a refused token: its application, its kind and its expiry.
    pub async fn token_trace(
        &mut self,
        hash: &SecretHash,
    ) -> Result<Option<(ClientId, Trace, Timestamp)>, StoreError> {
        let traces: Vec<(ClientId, String, Timestamp)> = self.fetch_all(TRACE, params![hash]).await?;
        Ok(traces.into_iter().next().map(|(client_id, kind, expires_at)| {
            let trace = match kind.as_str() {
                "access" => Trace::Access,
                "refresh" => Trace::Refresh,
                _ => Trace::Revoked,
            };
            (client_id, trace, expires_at)
        }))
    }

    /// The application and the user of a token of either kind.
    pub async fn token_holder(
        &mut self,
        hash: &SecretHash,
    ) -> Result<Option<(ClientId, ChannelId)>, StoreError> {
        Ok(self.fetch_all(OWNER, params![hash]).await?.into_iter().next())
    }

    /// Deletes the unused codes of a client and a user.
    pub async fn delete_unused_codes(
        &mut self,
        client_id: &ClientId,
        channel_id: &ChannelId,
    ) -> Result<u64, StoreError> {
        self.execute(DELETE_UNUSED_CODES, params![client_id, channel_id]).await
    }

    /// Deletes the tokens of a client and a user, all of them or those of one family, and records them as
    /// revoked.
    pub async fn delete_tokens(
        &mut self,
        client_id: &ClientId,
        channel_id: &ChannelId,
        family: Option<&TokenFamily>,
    ) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Consent(client_id, channel_id));
        let family = family.map(|family| family.0.as_str());
        for statement in
            [REMEMBER_ACCESS_TOKENS, REMEMBER_REFRESH_TOKENS, DELETE_ACCESS_TOKENS, DELETE_REFRESH_TOKENS]
        {
            self.execute(statement, params![client_id, channel_id, family]).await?;
        }
        Ok(())
    }
}

//! Sign-ins at the operator's providers: those under way, and people at a provider with their channels.

use domain::secret::SecretHash;
use domain::{ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const INSERT_FLOW: &str = "
    INSERT INTO upstream_flows (state_hash, browser_hash, provider, sealed, expires_at)
    VALUES ($1, $2, $3, $4, $5)";

/// Of two transactions with one state, one gets the row. Another browser gets nothing and changes nothing.
const TAKE_FLOW: &str = "
    DELETE FROM upstream_flows
    WHERE state_hash = $1 AND browser_hash = $2 AND provider = $3 AND expires_at > $4 RETURNING sealed";

const INSERT_IDENTITY: &str = "
    INSERT INTO upstream_identities (issuer, subject, provider, channel_id, shown_as, created_at, last_used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $6)";

const IDENTITY: &str = "SELECT channel_id FROM upstream_identities WHERE issuer = $1 AND subject = $2";

const USE_IDENTITY: &str = "
    UPDATE upstream_identities SET last_used_at = $4
    WHERE issuer = $1 AND subject = $2 AND channel_id = $3";

const IDENTITIES: &str = sql!(
    "SELECT ",
    LinkedProvider::COLUMNS,
    " FROM upstream_identities WHERE channel_id = $1 ORDER BY provider LIMIT $2"
);

const DELETE_IDENTITY: &str = "DELETE FROM upstream_identities WHERE channel_id = $1 AND provider = $2";

/// Most linked providers that are read of one account.
const LINKED_MAX: i64 = 100;

/// A sign-in that begins.
#[derive(Clone, Copy)]
pub struct NewUpstreamFlow<'a> {
    /// The hash of the state that comes back.
    pub state: &'a SecretHash,
    /// The hash of the browser's token.
    pub browser: &'a SecretHash,
    /// The name of the provider.
    pub provider: &'a str,
    /// What the node needs that finishes it.
    pub sealed: &'a str,
    /// Until when it can be finished.
    pub expires_at: Timestamp,
}

/// A person of a provider, and the account.
#[derive(Clone, Copy)]
pub struct NewUpstreamIdentity<'a> {
    /// The issuer.
    pub issuer: &'a str,
    /// The person's id at the issuer.
    pub subject: &'a str,
    /// The name of the provider.
    pub provider: &'a str,
    /// The person's channel.
    pub channel_id: &'a ChannelId,
    /// How the provider shows the person.
    pub shown_as: Option<&'a str>,
}

/// A provider that is linked to an account.
#[derive(Clone, Debug)]
pub struct LinkedProvider {
    /// Its name when it was linked.
    pub provider: String,
    /// How it shows the person.
    pub shown_as: Option<String>,
    /// Since when it is linked.
    pub created_at: Timestamp,
    /// When the person last signed in there.
    pub last_used_at: Timestamp,
}

columns!(LinkedProvider {
    provider: "provider",
    shown_as: "shown_as",
    created_at: "created_at",
    last_used_at: "last_used_at",
});

impl Tx {
    /// Begins a sign-in at a provider.
    pub async fn insert_upstream_flow(&mut self, flow: NewUpstreamFlow<'_>) -> Result<(), StoreError> {
        let NewUpstreamFlow { state, browser, provider, sealed, expires_at } = flow;
        self.execute(INSERT_FLOW, params![state, browser, provider, sealed, expires_at]).await?;
        Ok(())
    }

    /// Takes a sign-in that began in this browser at this provider. It can be taken once.
    pub async fn take_upstream_flow(
        &mut self,
        state: &SecretHash,
        browser: &SecretHash,
        provider: &str,
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        self.fetch_optional(TAKE_FLOW, params![state, browser, provider, now]).await
    }

    /// Links a person of a provider to an account. `StoreError::Unique` if the person is linked to an
    /// account, or the account to another person of the provider.
    pub async fn insert_upstream_identity(
        &mut self,
        identity: NewUpstreamIdentity<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let NewUpstreamIdentity { issuer, subject, provider, channel_id, shown_as } = identity;
        self.execute(INSERT_IDENTITY, params![issuer, subject, provider, channel_id, shown_as, now]).await?;
        Ok(())
    }

    /// The channel of a person of a provider.
    pub async fn upstream_identity(
        &mut self,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<ChannelId>, StoreError> {
        self.fetch_optional(IDENTITY, params![issuer, subject]).await
    }

    /// Notes a sign-in of a person of a provider: `false` if that is not linked to the channel any more.
    pub async fn use_upstream_identity(
        &mut self,
        issuer: &str,
        subject: &str,
        channel: &ChannelId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(USE_IDENTITY, params![issuer, subject, channel, now]).await? > 0)
    }

    /// The providers that are linked to an account, by name.
    pub async fn linked_providers(&mut self, channel: &ChannelId) -> Result<Vec<LinkedProvider>, StoreError> {
        self.fetch_all(IDENTITIES, params![channel, LINKED_MAX]).await
    }

    /// Unlinks a provider from an account: `false` if it is not linked.
    pub async fn delete_upstream_identity(
        &mut self,
        channel: &ChannelId,
        provider: &str,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(DELETE_IDENTITY, params![channel, provider]).await? > 0)
    }
}

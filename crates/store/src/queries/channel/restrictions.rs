//! Restricted channels: until they are released, or for a minute.

use domain::{ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const RESTRICT: &str = "
    INSERT INTO restricted_channels (channel_id, restricted_channel_id, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (channel_id, restricted_channel_id) DO NOTHING";

const RELEASE: &str = "DELETE FROM restricted_channels WHERE channel_id = $1 AND restricted_channel_id = $2";

/// The first page passes a value beyond every row as its bound, so that the index is read from a bound in
/// each case.
const RESTRICTED: &str = sql!(
    "SELECT ",
    RestrictedChannel::COLUMNS,
    "
    FROM restricted_channels r
    JOIN channels c ON c.channel_id = r.restricted_channel_id
    WHERE r.channel_id = $1 AND (r.created_at, r.restricted_channel_id) < ($2, $3)
    ORDER BY r.created_at DESC, r.restricted_channel_id DESC LIMIT $4"
);

/// An expired restriction has no effect, whether or not it was swept.
const RESTRICT_TEMPORARILY: &str = "
    INSERT INTO temporary_restrictions (channel_id, restricted_channel_id, ends_at) VALUES ($1, $2, $3)
    ON CONFLICT (channel_id, restricted_channel_id) DO UPDATE SET ends_at = excluded.ends_at
    WHERE temporary_restrictions.ends_at <= $4";

const RELEASE_TEMPORARILY: &str = "
    DELETE FROM temporary_restrictions WHERE channel_id = $1 AND restricted_channel_id = $2 AND ends_at > $3";

/// Each is over within a minute, so there are few.
const TEMPORARILY_RESTRICTED: &str = sql!(
    "SELECT ",
    TemporaryRestriction::COLUMNS,
    "
    FROM temporary_restrictions t JOIN channels c ON c.channel_id = t.restricted_channel_id
    WHERE t.channel_id = $1 AND t.ends_at > $2 ORDER BY t.ends_at DESC, t.restricted_channel_id LIMIT $3"
);

/// A temporary restriction that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporaryRestriction {
    /// The restricted channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
    /// Its end.
    pub ends_at: Timestamp,
}

columns!(TemporaryRestriction {
    channel_id: "t.restricted_channel_id",
    channel_name: "c.channel_name",
    ends_at: "t.ends_at",
});

/// An item of the list of restricted channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestrictedChannel {
    /// The restricted channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
    /// Since when it is restricted.
    pub created_at: Timestamp,
}

columns!(RestrictedChannel {
    channel_id: "r.restricted_channel_id",
    channel_name: "c.channel_name",
    created_at: "r.created_at",
});

/// A position in the list of restricted channels, after which a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestrictedPlace {
    /// Since when the channel there is restricted.
    pub created_at: Timestamp,
    /// The channel there.
    pub channel_id: ChannelId,
}

impl RestrictedPlace {
    /// Before the newest.
    pub fn start() -> Self {
        Self { created_at: Timestamp::LAST, channel_id: ChannelId::stored(String::new()) }
    }
}

impl Tx {
    /// Restricts a channel until it is released: `false` if it was restricted. `StoreError::ForeignKey` if
    /// either channel does not exist.
    pub async fn restrict(
        &mut self,
        channel: &ChannelId,
        target: &ChannelId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(RESTRICT, params![channel, target, now]).await? > 0)
    }

    /// Ends a restriction: `false` if there was none.
    pub async fn release(&mut self, channel: &ChannelId, target: &ChannelId) -> Result<bool, StoreError> {
        Ok(self.execute(RELEASE, params![channel, target]).await? > 0)
    }

    /// Up to `limit` channels that `channel` restricted, newest first, after a position in that list.
    pub async fn restricted_channels(
        &mut self,
        channel: &ChannelId,
        behind: &RestrictedPlace,
        limit: i64,
    ) -> Result<Vec<RestrictedChannel>, StoreError> {
        let params = params![channel, behind.created_at, &behind.channel_id, limit];
        self.fetch_all(RESTRICTED, params).await
    }

    /// Up to `limit` temporary restrictions of `channel` that run at `now`, the latest first.
    pub async fn temporarily_restricted(
        &mut self,
        channel: &ChannelId,
        now: Timestamp,
        limit: i64,
    ) -> Result<Vec<TemporaryRestriction>, StoreError> {
        self.fetch_all(TEMPORARILY_RESTRICTED, params![channel, now, limit]).await
    }

    /// Restricts a channel until `ends_at`: `false` if it is restricted.
    pub async fn restrict_temporarily(
        &mut self,
        channel: &ChannelId,
        target: &ChannelId,
        ends_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(RESTRICT_TEMPORARILY, params![channel, target, ends_at, now]).await? > 0)
    }

    /// Ends a running temporary restriction: `false` if there was none.
    pub async fn release_temporarily(
        &mut self,
        channel: &ChannelId,
        target: &ChannelId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(RELEASE_TEMPORARILY, params![channel, target, now]).await? > 0)
    }
}

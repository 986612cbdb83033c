//! Channels, listed, barred and unbarred by the operator.

use domain::operator_key::OperatorRole;
use domain::{ChannelId, ClientId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::queries::credential_changes::Dependency;
use crate::{StoreError, Tx, Value, params};

macro_rules! details_sql {
    ($condition:literal) => {
        sql!(
            "SELECT ",
            ChannelDetails::COLUMNS,
            " FROM channels c LEFT JOIN people p ON p.channel_id = c.channel_id
             LEFT JOIN operators o ON o.channel_id = c.channel_id
             WHERE c.deleted_at IS NULL AND ",
            $condition
        )
    };
}

const ONE: &str = details_sql!("c.channel_id = $1");
const ALL: &str = details_sql!("c.channel_id > $1 ORDER BY c.channel_id LIMIT $2");
const NAMED: &str = details_sql!("c.channel_id > $1 AND c.channel_name = $3 ORDER BY c.channel_id LIMIT $2");
const WITH_LOGIN: &str = details_sql!("c.channel_id > $1 AND p.login = $3 ORDER BY c.channel_id LIMIT $2");
const BARRED: &str =
    details_sql!("c.channel_id > $1 AND c.barred_at IS NOT NULL ORDER BY c.channel_id LIMIT $2");

const BAR: &str = "
    UPDATE channels SET barred_at = COALESCE(barred_at, $2) WHERE channel_id = $1 AND deleted_at IS NULL";

const UNBAR: &str = "UPDATE channels SET barred_at = NULL WHERE channel_id = $1 AND deleted_at IS NULL";

const CONSENTED_TO: &str = "SELECT client_id FROM consents WHERE channel_id = $1 ORDER BY client_id";

/// The details of a channel for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelDetails {
    /// Its id.
    pub channel_id: ChannelId,
    /// Its name.
    pub name: String,
    /// Its picture.
    pub image_url: Option<String>,
    /// Whether it has the platform's mark.
    pub verified_mark: bool,
    /// Whether its owner proved a real name.
    pub real_name_verified: bool,
    /// The number of its followers.
    pub follower_count: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// Since when its person is barred.
    pub barred_at: Option<Timestamp>,
    /// What its person signs in with.
    pub login: Option<String>,
    /// What its person may do on the operator pages.
    pub operator_role: Option<OperatorRole>,
}

columns!(ChannelDetails {
    channel_id: "c.channel_id",
    name: "c.channel_name",
    image_url: "c.channel_image_url",
    verified_mark: "c.verified_mark",
    real_name_verified: "c.real_name_verified",
    follower_count: "c.follower_count",
    created_at: "c.created_at",
    barred_at: "c.barred_at",
    login: "p.login",
    operator_role: "o.role",
});

/// The filter of a list of channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelFilter {
    /// Every channel.
    All,
    /// Channels of this name.
    Name(String),
    /// The channel whose person has this login.
    Login(String),
    /// Barred channels.
    Barred,
}

impl Tx {
    /// A channel, unless it is being deleted.
    pub async fn channel_details(
        &mut self,
        channel: &ChannelId,
    ) -> Result<Option<ChannelDetails>, StoreError> {
        self.fetch_optional(ONE, params![channel]).await
    }

    /// Up to `size` channels after `after`, in the order of their ids, without those that are being deleted.
    pub async fn list_channel_details(
        &mut self,
        filter: &ChannelFilter,
        after: &str,
        size: i64,
    ) -> Result<Vec<ChannelDetails>, StoreError> {
        let (sql, wanted) = match filter {
            ChannelFilter::All => (ALL, None),
            ChannelFilter::Name(name) => (NAMED, Some(name)),
            ChannelFilter::Login(login) => (WITH_LOGIN, Some(login)),
            ChannelFilter::Barred => (BARRED, None),
        };
        let mut values: Vec<Value<'_>> = vec![after.into(), size.into()];
        values.extend(wanted.map(Value::from));
        self.fetch_all(sql, &values).await
    }

    /// Bars the person of a channel, and locks the channel: `false` if there is none.
    pub async fn bar_channel(&mut self, channel: &ChannelId, now: Timestamp) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Channel(channel));
        Ok(self.execute(BAR, params![channel, now]).await? > 0)
    }

    /// Unbars the person of a channel: `false` if there is none.
    pub async fn unbar_channel(&mut self, channel: &ChannelId) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Channel(channel));
        Ok(self.execute(UNBAR, params![channel]).await? > 0)
    }

    /// The applications that a user has consented to.
    pub async fn consented_to(&mut self, channel: &ChannelId) -> Result<Vec<ClientId>, StoreError> {
        self.fetch_all(CONSENTED_TO, params![channel]).await
    }
}

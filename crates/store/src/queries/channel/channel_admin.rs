//! Channels, listed, barred and unbarred by the operator.

use domain::{ChannelId, ClientId, Timestamp};

use crate::queries::credential_changes::Dependency;
use crate::{Row, StoreError, Tx, Value, params};

macro_rules! details_sql {
    ($condition:literal) => {
        concat!(
            "SELECT c.channel_id, c.channel_name, c.channel_image_url, c.verified_mark, c.real_name_verified,
                 c.follower_count, c.created_at, c.barred_at, p.login
             FROM channels c LEFT JOIN people p ON p.channel_id = c.channel_id
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
}

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
        self.query_opt(ONE, params![channel]).await?.as_ref().map(details).transpose()
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
        self.query(sql, &values).await?.iter().map(details).collect()
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
        let rows = self.query(CONSENTED_TO, params![channel]).await?;
        rows.iter().map(|row| row.get(0)).collect()
    }
}

fn details(row: &Row) -> Result<ChannelDetails, StoreError> {
    Ok(ChannelDetails {
        channel_id: row.get(0)?,
        name: row.get(1)?,
        image_url: row.get(2)?,
        verified_mark: row.get(3)?,
        real_name_verified: row.get(4)?,
        follower_count: row.get(5)?,
        created_at: row.get(6)?,
        barred_at: row.get(7)?,
        login: row.get(8)?,
    })
}

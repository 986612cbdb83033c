//! Channels, the people who own them, and the roles in them.

use domain::channel::{Channel, UserRole};
use domain::limits::CHANNEL_IDS_MAX;
use domain::{ChannelId, Timestamp};

use crate::queries::credential_changes::Dependency;
use crate::{Row, StoreError, Tx, Value, params};

const PUT_CHANNEL: &str = "
    INSERT INTO channels (channel_id, channel_name, channel_image_url, verified_mark, real_name_verified, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (channel_id) DO UPDATE SET
        channel_name = excluded.channel_name, channel_image_url = excluded.channel_image_url,
        verified_mark = excluded.verified_mark, real_name_verified = excluded.real_name_verified
    WHERE channels.deleted_at IS NULL";

const PUT_PERSON: &str = "
    INSERT INTO people (channel_id, login, password_hash) VALUES ($1, $2, $3)
    ON CONFLICT (channel_id) DO UPDATE SET login = excluded.login, password_hash = excluded.password_hash";

const PERSON_BY_LOGIN: &str = "SELECT channel_id, password_hash FROM people WHERE login = $1";

const PASSWORD_HASH: &str = "SELECT password_hash FROM people WHERE channel_id = $1";

/// The row of a channel is the lock of its person's sign-ins.
const LOCK_UNBARRED: &str = "
    UPDATE channels SET follower_count = follower_count WHERE channel_id = $1 AND barred_at IS NULL";

const PEOPLE: &str = "
    SELECT p.login, c.channel_id, c.channel_name FROM people p JOIN channels c ON c.channel_id = p.channel_id
    ORDER BY c.created_at, c.channel_id LIMIT $1";

/// A list of [`CHANNEL_IDS_MAX`] parameters. A shorter list repeats its last id.
const CHANNELS_BY_ID: &str = "
    SELECT channel_id, channel_name, channel_image_url, follower_count, verified_mark FROM channels
    WHERE channel_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
        AND deleted_at IS NULL";

const SPEAKER: &str = "
    SELECT s.channel_name, s.verified_mark, m.user_role
    FROM channels s
    JOIN channels c ON c.channel_id = $1 AND c.deleted_at IS NULL
    LEFT JOIN managers m ON m.channel_id = c.channel_id AND m.manager_channel_id = s.channel_id
    WHERE s.channel_id = $2 AND s.deleted_at IS NULL";

/// The owner of a channel has no role in it.
const STREAMER: &str = "SELECT channel_name, verified_mark, CAST(NULL AS TEXT) FROM channels WHERE channel_id = $1 AND deleted_at IS NULL";

/// A person who can sign in.
pub struct Person {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// Argon2id, in PHC form.
    pub password_hash: String,
}

/// An item of the sandbox's list of people.
#[derive(Clone, Debug)]
pub struct PersonListing {
    /// The person's login.
    pub login: String,
    /// The person's channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
}

/// The sender of a message or donation in a channel.
#[derive(Clone, Debug)]
pub struct Speaker {
    /// The speaker's name.
    pub name: String,
    /// Whether the speaker has the platform's mark.
    pub verified_mark: bool,
    /// The speaker's role in the channel.
    pub role: Option<UserRole>,
}

/// The data of a channel.
#[derive(Clone, Debug)]
pub struct ChannelRecord {
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
}

impl Tx {
    /// Creates or replaces a channel: `false` if a channel of that id is being deleted.
    pub async fn put_channel(&mut self, channel: &ChannelRecord, now: Timestamp) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Channel(&channel.channel_id));
        let values = params![
            &channel.channel_id,
            &channel.name,
            &channel.image_url,
            channel.verified_mark,
            channel.real_name_verified,
            now
        ];
        Ok(self.execute(PUT_CHANNEL, values).await? > 0)
    }

    /// Lets the owner of a channel sign in. `StoreError::Unique` if another person has the login.
    pub async fn put_person(
        &mut self,
        channel: &ChannelId,
        login: &str,
        hash: &str,
    ) -> Result<(), StoreError> {
        self.execute(PUT_PERSON, params![channel, login, hash]).await?;
        Ok(())
    }

    /// The person with that login.
    pub async fn person_by_login(&mut self, login: &str) -> Result<Option<Person>, StoreError> {
        let row = self.query_opt(PERSON_BY_LOGIN, params![login]).await?;
        row.map(|row| Ok(Person { channel_id: row.get(0)?, password_hash: row.get(1)? })).transpose()
    }

    /// The hash of the password of a channel's person, if the person can sign in.
    pub async fn password_hash(&mut self, channel: &ChannelId) -> Result<Option<String>, StoreError> {
        let row = self.query_opt(PASSWORD_HASH, params![channel]).await?;
        row.map(|row| row.get(0)).transpose()
    }

    /// Locks a channel for the rest of the transaction: `false` if there is none, or it is barred. A sign-in,
    /// a consent, a bar and a change of the password lock the channel first.
    pub async fn lock_unbarred_channel(&mut self, channel: &ChannelId) -> Result<bool, StoreError> {
        Ok(self.execute(LOCK_UNBARRED, params![channel]).await? > 0)
    }

    /// The first `limit` people who can sign in.
    pub async fn people(&mut self, limit: i64) -> Result<Vec<PersonListing>, StoreError> {
        let rows = self.query(PEOPLE, params![limit]).await?;
        let person = |row: &Row| {
            Ok(PersonListing { login: row.get(0)?, channel_id: row.get(1)?, channel_name: row.get(2)? })
        };
        rows.iter().map(person).collect()
    }

    /// The channels of up to 20 ids, in any order. An id without a channel is left out.
    pub async fn channels_by_id(&mut self, ids: &[ChannelId]) -> Result<Vec<Channel>, StoreError> {
        let Some(last) = ids.last() else { return Ok(Vec::new()) };
        let padded = ids.iter().chain(std::iter::repeat(last)).take(CHANNEL_IDS_MAX);
        let params: Vec<Value<'_>> = padded.map(Value::from).collect();
        self.query(CHANNELS_BY_ID, &params).await?.iter().map(channel).collect()
    }

    /// The name and role of `speaker` in `channel`; `None` if either does not exist.
    pub async fn speaker(
        &mut self,
        channel: &ChannelId,
        speaker: &ChannelId,
    ) -> Result<Option<Speaker>, StoreError> {
        // Most messages are of the owner.
        let row = if channel == speaker {
            self.query_opt(STREAMER, params![channel]).await?
        } else {
            self.query_opt(SPEAKER, params![channel, speaker]).await?
        };
        row.map(|row| {
            let role = row.get::<Option<&str>>(2)?.and_then(UserRole::from_name);
            Ok(Speaker { name: row.get(0)?, verified_mark: row.get(1)?, role })
        })
        .transpose()
    }
}

fn channel(row: &Row) -> Result<Channel, StoreError> {
    Ok(Channel {
        channel_id: row.get(0)?,
        name: row.get(1)?,
        image_url: row.get(2)?,
        follower_count: row.get(3)?,
        verified_mark: row.get(4)?,
    })
}

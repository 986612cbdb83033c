//! Channels, the people who own them, and the roles in them.

use domain::channel::{Channel, UserRole};
use domain::limits::CHANNEL_IDS_MAX;
use domain::{ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::queries::credential_changes::Dependency;
use crate::{StoreError, Tx, Value, params};

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

const PERSON_BY_LOGIN: &str = sql!("SELECT ", Person::COLUMNS, " FROM people WHERE login = $1");

const PASSWORD_HASH: &str = "SELECT password_hash FROM people WHERE channel_id = $1";

/// The row of a channel is the lock of its person's sign-ins.
const LOCK_UNBARRED: &str = "
    UPDATE channels SET follower_count = follower_count WHERE channel_id = $1 AND barred_at IS NULL";

const PEOPLE: &str = sql!(
    "SELECT ",
    PersonListing::COLUMNS,
    "
    FROM people p JOIN channels c ON c.channel_id = p.channel_id
    ORDER BY c.created_at, c.channel_id LIMIT $1"
);

/// A list of [`CHANNEL_IDS_MAX`] parameters. A shorter list repeats its last id.
const CHANNELS_BY_ID: &str = sql!(
    "SELECT ",
    Channel::COLUMNS,
    "
    FROM channels
    WHERE channel_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
        AND deleted_at IS NULL"
);

const SPEAKER: &str = sql!(
    "SELECT ",
    Speaker::COLUMNS,
    "
    FROM channels s
    JOIN channels c ON c.channel_id = $1 AND c.deleted_at IS NULL
    LEFT JOIN managers m ON m.channel_id = c.channel_id AND m.manager_channel_id = s.channel_id
    WHERE s.channel_id = $2 AND s.deleted_at IS NULL"
);

const STREAMER: &str =
    "SELECT channel_name, verified_mark FROM channels WHERE channel_id = $1 AND deleted_at IS NULL";

/// A person who can sign in.
pub struct Person {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// Argon2id, in PHC form.
    pub password_hash: String,
}

columns!(Person { channel_id: "channel_id", password_hash: "password_hash" });

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

columns!(PersonListing { login: "p.login", channel_id: "c.channel_id", channel_name: "c.channel_name" });

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

columns!(Speaker {
    name: "s.channel_name",
    verified_mark: "s.verified_mark",
    role: "m.user_role" => |name: Option<&str>| name.and_then(UserRole::from_name),
});

columns!(Channel {
    channel_id: "channel_id",
    name: "channel_name",
    image_url: "channel_image_url",
    follower_count: "follower_count",
    verified_mark: "verified_mark",
});

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
        self.fetch_optional(PERSON_BY_LOGIN, params![login]).await
    }

    /// The hash of the password of a channel's person, if the person can sign in.
    pub async fn password_hash(&mut self, channel: &ChannelId) -> Result<Option<String>, StoreError> {
        self.fetch_optional(PASSWORD_HASH, params![channel]).await
    }

    /// Locks a channel for the rest of the transaction: `false` if there is none, or it is barred. A sign-in,
    /// a consent, a bar and a change of the password lock the channel first.
    pub async fn lock_unbarred_channel(&mut self, channel: &ChannelId) -> Result<bool, StoreError> {
        Ok(self.execute(LOCK_UNBARRED, params![channel]).await? > 0)
    }

    /// The first `limit` people who can sign in.
    pub async fn people(&mut self, limit: i64) -> Result<Vec<PersonListing>, StoreError> {
        self.fetch_all(PEOPLE, params![limit]).await
    }

    /// The channels of up to 20 ids, in any order. An id without a channel is left out.
    pub async fn channels_by_id(&mut self, ids: &[ChannelId]) -> Result<Vec<Channel>, StoreError> {
        let Some(last) = ids.last() else { return Ok(Vec::new()) };
        let padded = ids.iter().chain(std::iter::repeat(last)).take(CHANNEL_IDS_MAX);
        let params: Vec<Value<'_>> = padded.map(Value::from).collect();
        self.fetch_all(CHANNELS_BY_ID, &params).await
    }

    /// The name and role of `speaker` in `channel`; `None` if either does not exist.
    pub async fn speaker(
        &mut self,
        channel: &ChannelId,
        speaker: &ChannelId,
    ) -> Result<Option<Speaker>, StoreError> {
        if channel != speaker {
            return self.fetch_optional(SPEAKER, params![channel, speaker]).await;
        }
        // Most messages are of the owner, who has no role in the own channel.
        let streamer = self.fetch_optional(STREAMER, params![channel]).await?;
        Ok(streamer.map(|(name, verified_mark)| Speaker { name, verified_mark, role: None }))
    }
}

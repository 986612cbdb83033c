//! The accounts of people: login, e-mail address and password.

use domain::account::Email;
use domain::secret::SecretHash;
use domain::{ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const ACCOUNT: &str = sql!(
    "SELECT ",
    Account::COLUMNS,
    " FROM people p JOIN channels c ON c.channel_id = p.channel_id
    LEFT JOIN two_factors t ON t.channel_id = p.channel_id AND t.confirmed_at IS NOT NULL
    WHERE p.channel_id = $1 AND c.deleted_at IS NULL"
);

/// Accounts of barred people are left out: they cannot sign in.
const BY_LOGIN: &str = sql!(
    "SELECT ",
    Contact::COLUMNS,
    " FROM people p JOIN channels c ON c.channel_id = p.channel_id
    WHERE p.login = $1 AND c.barred_at IS NULL"
);

const BY_EMAIL: &str = sql!(
    "SELECT ",
    Contact::COLUMNS,
    " FROM people p JOIN channels c ON c.channel_id = p.channel_id
    WHERE p.email = $1 AND c.barred_at IS NULL
    ORDER BY CASE WHEN p.email_verified_at IS NULL THEN 1 ELSE 0 END, c.created_at, p.channel_id LIMIT $2"
);

const INSERT_PERSON: &str = "
    INSERT INTO people (channel_id, login, password_hash, email) VALUES ($1, $2, $3, $4)";

const SET_PASSWORD: &str = "UPDATE people SET password_hash = $2 WHERE channel_id = $1";

/// Another address is unproven.
const PUT_EMAIL: &str = "
    UPDATE people SET email_verified_at = CASE WHEN email = $2 THEN email_verified_at END, email = $2
    WHERE channel_id = $1";

const VERIFY_EMAIL: &str = "
    UPDATE people SET email_verified_at = COALESCE(email_verified_at, $3) WHERE channel_id = $1 AND email = $2";

const DELETE_OTHER_BROWSER_SESSIONS: &str =
    "DELETE FROM browser_sessions WHERE channel_id = $1 AND token_hash <> $2";

/// The account of a person. `Debug` leaves out its secrets.
#[derive(Clone)]
pub struct Account {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
    /// The login.
    pub login: String,
    /// The e-mail address.
    pub email: Option<String>,
    /// Since when the address is proven.
    pub email_verified_at: Option<Timestamp>,
    /// Argon2id, in PHC form.
    pub password_hash: String,
    /// Since when the sign-in has a second step.
    pub two_factor_since: Option<Timestamp>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({})", self.channel_id)
    }
}

columns!(Account {
    channel_id: "p.channel_id",
    channel_name: "c.channel_name",
    login: "p.login",
    email: "p.email",
    email_verified_at: "p.email_verified_at",
    password_hash: "p.password_hash",
    two_factor_since: "t.confirmed_at",
});

/// How a person is reached.
#[derive(Clone)]
pub struct Contact {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
    /// The login.
    pub login: String,
    /// The e-mail address.
    pub email: Option<String>,
    /// Since when the address is proven.
    pub email_verified_at: Option<Timestamp>,
}

impl std::fmt::Debug for Contact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Contact({})", self.channel_id)
    }
}

columns!(Contact {
    channel_id: "p.channel_id",
    channel_name: "c.channel_name",
    login: "p.login",
    email: "p.email",
    email_verified_at: "p.email_verified_at",
});

impl Tx {
    /// The account of a channel's person.
    pub async fn account(&mut self, channel: &ChannelId) -> Result<Option<Account>, StoreError> {
        self.fetch_optional(ACCOUNT, params![channel]).await
    }

    /// The person with that login, unless barred.
    pub async fn contact_by_login(&mut self, login: &str) -> Result<Option<Contact>, StoreError> {
        self.fetch_optional(BY_LOGIN, params![login]).await
    }

    /// The first `limit` people with that address, without barred ones: first those for whom it is proven.
    pub async fn contacts_by_email(&mut self, email: &Email, limit: i64) -> Result<Vec<Contact>, StoreError> {
        self.fetch_all(BY_EMAIL, params![email.as_str(), limit]).await
    }

    /// Lets the owner of a new channel sign in. `StoreError::Unique` if another person has the login.
    pub async fn insert_person(
        &mut self,
        channel: &ChannelId,
        login: &str,
        password_hash: &str,
        email: Option<&Email>,
    ) -> Result<(), StoreError> {
        let email = email.map(Email::as_str);
        self.execute(INSERT_PERSON, params![channel, login, password_hash, email]).await?;
        Ok(())
    }

    /// Replaces the password of a person: `false` if there is no such person.
    pub async fn set_password(&mut self, channel: &ChannelId, hash: &str) -> Result<bool, StoreError> {
        Ok(self.execute(SET_PASSWORD, params![channel, hash]).await? > 0)
    }

    /// Replaces or removes the address of a person: `false` if there is no such person.
    pub async fn put_email(
        &mut self,
        channel: &ChannelId,
        email: Option<&Email>,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(PUT_EMAIL, params![channel, email.map(Email::as_str)]).await? > 0)
    }

    /// Records that this address of a person is proven: `false` if the person has another one.
    pub async fn verify_email(
        &mut self,
        channel: &ChannelId,
        email: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(VERIFY_EMAIL, params![channel, email, now]).await? > 0)
    }

    /// Signs every browser of a person out but this one. Gives their number.
    pub async fn delete_other_browser_sessions(
        &mut self,
        channel: &ChannelId,
        kept: &SecretHash,
    ) -> Result<u64, StoreError> {
        self.execute(DELETE_OTHER_BROWSER_SESSIONS, params![channel, kept]).await
    }
}

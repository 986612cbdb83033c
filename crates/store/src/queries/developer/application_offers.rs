//! Offers of applications to other people. An offer belongs to the account that had its login when it was
//! made. One that was made at `expired_since` or before has expired.

use domain::{ChannelId, ClientId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// The most offers that a list shows.
pub const OFFERS_LISTED: i64 = 100;

const PUT: &str = "
    INSERT INTO application_offers (client_id, login, created_at, channel_id)
    VALUES ($1, $2, $3, (SELECT channel_id FROM people WHERE login = $2))
    ON CONFLICT (client_id) DO UPDATE SET
        login = excluded.login, created_at = excluded.created_at, channel_id = excluded.channel_id";

const DELETE: &str = "DELETE FROM application_offers WHERE client_id = $1";

const TAKE: &str =
    "DELETE FROM application_offers WHERE client_id = $1 AND channel_id = $2 AND created_at > $3";

const OF_APPLICATION: &str =
    sql!("SELECT ", SentOffer::COLUMNS, " FROM application_offers WHERE client_id = $1 AND created_at > $2");

const OF_PERSON: &str = sql!(
    "SELECT ",
    ReceivedOffer::COLUMNS,
    "
    FROM application_offers f JOIN applications a ON a.client_id = f.client_id AND a.deleted_at IS NULL
    LEFT JOIN organizations o ON o.organization_id = a.organization_id
    LEFT JOIN channels w ON w.channel_id = a.owner_channel_id
    WHERE f.channel_id = $1 AND f.created_at > $2 ORDER BY f.client_id LIMIT $3"
);

/// An offer as the application's admins see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentOffer {
    /// The login that it names.
    pub login: String,
    /// When it was made.
    pub created_at: Timestamp,
}

columns!(SentOffer { login: "login", created_at: "created_at" });

/// An offer as the person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedOffer {
    /// The application.
    pub client_id: ClientId,
    /// Its name.
    pub application_name: String,
    /// The name of the organization that owns it.
    pub organization_name: Option<String>,
    /// The name of the channel of the person who owns it.
    pub owner_name: Option<String>,
}

columns!(ReceivedOffer {
    client_id: "f.client_id",
    application_name: "a.name",
    organization_name: "o.organization_name",
    owner_name: "w.channel_name",
});

impl Tx {
    /// Offers an application to the account with a login. The offer before ends. Without such an account
    /// nobody can accept.
    pub async fn put_application_offer(
        &mut self,
        client_id: &ClientId,
        login: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(PUT, params![client_id, login, now]).await?;
        Ok(())
    }

    /// Ends the offer of an application. A missing one is no error.
    pub async fn delete_application_offer(&mut self, client_id: &ClientId) -> Result<(), StoreError> {
        self.execute(DELETE, params![client_id]).await?;
        Ok(())
    }

    /// Uses the offer of an application to a person up: `false` if there is none.
    pub async fn take_application_offer(
        &mut self,
        client_id: &ClientId,
        person: &ChannelId,
        expired_since: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(TAKE, params![client_id, person, expired_since]).await? > 0)
    }

    /// The offer of an application.
    pub async fn application_offer(
        &mut self,
        client_id: &ClientId,
        expired_since: Timestamp,
    ) -> Result<Option<SentOffer>, StoreError> {
        self.fetch_optional(OF_APPLICATION, params![client_id, expired_since]).await
    }

    /// The offers to a person.
    pub async fn application_offers_of_person(
        &mut self,
        person: &ChannelId,
        expired_since: Timestamp,
    ) -> Result<Vec<ReceivedOffer>, StoreError> {
        self.fetch_all(OF_PERSON, params![person, expired_since, OFFERS_LISTED]).await
    }
}

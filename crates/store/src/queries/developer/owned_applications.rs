//! The applications of people and of their organizations.

use domain::application::Presentation;
use domain::https_url::HttpsUrl;
use domain::member::MemberRole;
use domain::{ChannelId, ClientId, DeliveryId, OrganizationId, Profile, ScopeSet, Timestamp};

use crate::queries::application_life::ApplicationLife;
use crate::queries::columns::{Select, sql};
use crate::queries::credential_changes::Dependency;
use crate::{StoreError, Tx, params};

/// The most applications whose purge one statement begins.
pub const ORPHANED_MAX: i64 = 100;

const ACCESS: &str = sql!(
    "SELECT ",
    ApplicationLife::COLUMNS,
    ", m.role
    FROM applications a LEFT JOIN organizations o ON o.organization_id = a.organization_id
    LEFT JOIN organization_members m ON m.organization_id = a.organization_id AND m.channel_id = $2
    WHERE a.client_id = $1 AND a.purging = FALSE AND (a.deleted_at IS NULL OR a.deleted_at > $3)"
);

const OF_OWNER: &str = sql!(
    "SELECT ",
    ApplicationLife::COLUMNS,
    "
    FROM applications a LEFT JOIN organizations o ON o.organization_id = a.organization_id
    WHERE a.owner_channel_id = $1 AND a.client_id > $2
        AND a.purging = FALSE AND (a.deleted_at IS NULL OR a.deleted_at > $3)
    ORDER BY a.client_id LIMIT $4"
);

const OF_ORGANIZATION: &str = sql!(
    "SELECT ",
    ApplicationLife::COLUMNS,
    "
    FROM applications a LEFT JOIN organizations o ON o.organization_id = a.organization_id
    WHERE a.organization_id = $1 AND a.client_id > $2
        AND a.purging = FALSE AND (a.deleted_at IS NULL OR a.deleted_at > $3)
    ORDER BY a.client_id LIMIT $4"
);

const COUNT_OF_PERSON: &str = "
    SELECT COUNT(*) FROM (
        SELECT client_id FROM applications WHERE owner_channel_id = $1 AND purging = FALSE LIMIT $2) c";

const COUNT_OF_ORGANIZATION: &str = "
    SELECT COUNT(*) FROM (
        SELECT client_id FROM applications WHERE organization_id = $1 AND purging = FALSE LIMIT $2) c";

// The webhooks of few applications are searched, because no index leads from a message to its webhook.
const WITH_DELIVERY: &str = "
    SELECT a.client_id
    FROM applications a JOIN webhooks w ON w.client_id = a.client_id
    JOIN webhook_deliveries d ON d.webhook_id = w.webhook_id AND d.message_id = $2
    WHERE a.owner_channel_id = $1 AND a.purging = FALSE
    UNION ALL
    SELECT a.client_id
    FROM organization_members m JOIN applications a ON a.organization_id = m.organization_id
    JOIN webhooks w ON w.client_id = a.client_id
    JOIN webhook_deliveries d ON d.webhook_id = w.webhook_id AND d.message_id = $2
    WHERE m.channel_id = $1 AND a.purging = FALSE
    LIMIT 1";

const CHANGE: &str = "
    UPDATE applications SET name = $2, profile = $3, homepage_url = $4, terms_url = $5, privacy_url = $6
    WHERE client_id = $1";

const SET_SCOPES: &str = "UPDATE applications SET scopes = $2 WHERE client_id = $1";

const GRANT_SCOPES: &str = "
    UPDATE applications SET scopes = scopes | $2 WHERE client_id = $1 AND purging = FALSE";

const SET_OWNER: &str = "
    UPDATE applications SET owner_channel_id = $2, organization_id = $3 WHERE client_id = $1";

const DISABLE: &str = "
    UPDATE applications SET disabled_at = COALESCE(disabled_at, $2), disabled_by_owner = TRUE
    WHERE client_id = $1";

const ENABLE: &str = "
    UPDATE applications SET disabled_by_owner = FALSE,
        disabled_at = CASE WHEN disabled_by_operator THEN disabled_at ELSE NULL END
    WHERE client_id = $1";

const DELETE: &str = "
    UPDATE applications SET deleted_at = $2, deleted_by_owner = TRUE
    WHERE client_id = $1 AND deleted_at IS NULL AND purging = FALSE";

const BEGIN_PURGE: &str = "
    UPDATE applications SET deleted_at = COALESCE(deleted_at, $2), purging = TRUE, owner_channel_id = NULL
    WHERE client_id IN (SELECT client_id FROM applications WHERE owner_channel_id = $1 LIMIT $3)
    RETURNING client_id";

impl Tx {
    /// An application with its times, and the person's role in its organization. Also while it can be
    /// restored: `None` if it was deleted at `irrecoverable_since` or before.
    pub async fn application_access(
        &mut self,
        client_id: &ClientId,
        person: &ChannelId,
        irrecoverable_since: Timestamp,
    ) -> Result<Option<(ApplicationLife, Option<MemberRole>)>, StoreError> {
        self.fetch_optional(ACCESS, params![client_id, person, irrecoverable_since]).await
    }

    /// Up to `size` applications that a person owns after `after`, in the order of their ids, without
    /// notices.
    pub async fn applications_of_owner(
        &mut self,
        person: &ChannelId,
        after: &str,
        irrecoverable_since: Timestamp,
        size: i64,
    ) -> Result<Vec<ApplicationLife>, StoreError> {
        self.fetch_all(OF_OWNER, params![person, after, irrecoverable_since, size]).await
    }

    /// As [`applications_of_owner`](Self::applications_of_owner), for an organization.
    pub async fn applications_of_organization(
        &mut self,
        id: &OrganizationId,
        after: &str,
        irrecoverable_since: Timestamp,
        size: i64,
    ) -> Result<Vec<ApplicationLife>, StoreError> {
        self.fetch_all(OF_ORGANIZATION, params![id, after, irrecoverable_since, size]).await
    }

    /// The application of a person, or of an organization of the person, whose webhook has this message.
    pub async fn application_with_delivery(
        &mut self,
        person: &ChannelId,
        message_id: &DeliveryId,
    ) -> Result<Option<ClientId>, StoreError> {
        self.fetch_optional(WITH_DELIVERY, params![person, message_id]).await
    }

    /// The number of applications that a person owns, up to `most`.
    pub async fn owned_application_count(
        &mut self,
        person: &ChannelId,
        most: i64,
    ) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_OF_PERSON, params![person, most]).await
    }

    /// The number of applications of an organization, up to `most`.
    pub async fn organization_application_count(
        &mut self,
        id: &OrganizationId,
        most: i64,
    ) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_OF_ORGANIZATION, params![id, most]).await
    }

    /// Changes what an application says about itself, and its profile.
    pub async fn change_application(
        &mut self,
        client_id: &ClientId,
        name: &str,
        profile: Option<Profile>,
        presentation: &Presentation,
    ) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        let Presentation { homepage, terms, privacy, .. } = presentation;
        let [homepage, terms, privacy] =
            [homepage, terms, privacy].map(|url| url.as_ref().map(HttpsUrl::as_str));
        let profile = profile.map(Profile::name);
        self.execute(CHANGE, params![client_id, name, profile, homepage, terms, privacy]).await?;
        Ok(())
    }

    /// Replaces the scopes of an application.
    pub async fn set_application_scopes(
        &mut self,
        client_id: &ClientId,
        scopes: ScopeSet,
    ) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        self.execute(SET_SCOPES, params![client_id, scopes.to_stored()]).await?;
        Ok(())
    }

    /// Adds scopes to an application: `false` if there is none.
    pub async fn grant_application_scopes(
        &mut self,
        client_id: &ClientId,
        scopes: ScopeSet,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        Ok(self.execute(GRANT_SCOPES, params![client_id, scopes.to_stored()]).await? > 0)
    }

    /// Gives an application to a person, or to an organization. `StoreError::ForeignKey` if there is no such
    /// owner.
    pub async fn set_application_owner(
        &mut self,
        client_id: &ClientId,
        person: Option<&ChannelId>,
        organization: Option<&OrganizationId>,
    ) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        self.execute(SET_OWNER, params![client_id, person, organization]).await?;
        Ok(())
    }

    /// Disables an application for its owner.
    pub async fn disable_application_of_owner(
        &mut self,
        client_id: &ClientId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        self.execute(DISABLE, params![client_id, now]).await?;
        Ok(())
    }

    /// Enables an application for its owner. What the operator disabled stays disabled.
    pub async fn enable_application_of_owner(&mut self, client_id: &ClientId) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        self.execute(ENABLE, params![client_id]).await?;
        Ok(())
    }

    /// Deletes an application for its owner: `false` if it is deleted. It can be restored.
    pub async fn delete_application_of_owner(
        &mut self,
        client_id: &ClientId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        Ok(self.execute(DELETE, params![client_id, now]).await? > 0)
    }

    /// Begins the purge of up to [`ORPHANED_MAX`] applications of a person, and gives their ids.
    pub async fn begin_purge_of_owned(
        &mut self,
        person: &ChannelId,
        now: Timestamp,
    ) -> Result<Vec<ClientId>, StoreError> {
        let purged: Vec<ClientId> = self.fetch_all(BEGIN_PURGE, params![person, now, ORPHANED_MAX]).await?;
        for client_id in &purged {
            self.credentials_changed(Dependency::Application(client_id));
        }
        Ok(purged)
    }
}

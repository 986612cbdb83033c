//! Applications and their redirect addresses, and the organizations that own them.

use domain::application::{Application, Organization, Presentation, RedirectUri};
use domain::https_url::HttpsUrl;
use domain::quota::QuotaShare;
use domain::{ClientId, Profile, ScopeSet, Timestamp};

use super::credential_changes::Dependency;
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const PUT_ORGANIZATION: &str = "
    INSERT INTO organizations (organization_id, organization_name, verified) VALUES ($1, $2, $3)
    ON CONFLICT (organization_id) DO UPDATE SET
        organization_name = excluded.organization_name, verified = excluded.verified";

const PUT_APPLICATION: &str = "
    INSERT INTO applications (client_id, name, organization_id, scopes, profile, quota, created_at, last_used_at,
        homepage_url, terms_url, privacy_url, owner_channel_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9, $10, $11)
    ON CONFLICT (client_id) DO UPDATE SET
        name = excluded.name, organization_id = excluded.organization_id, scopes = excluded.scopes,
        profile = excluded.profile, quota = excluded.quota, homepage_url = excluded.homepage_url,
        terms_url = excluded.terms_url, privacy_url = excluded.privacy_url,
        owner_channel_id = excluded.owner_channel_id,
        last_used_at = CASE WHEN applications.deleted_at IS NULL
            THEN applications.last_used_at ELSE excluded.last_used_at END,
        deleted_at = NULL, deleted_by_owner = FALSE, purging = FALSE";

const DELETE_REDIRECT_URIS: &str = "DELETE FROM application_redirect_uris WHERE client_id = $1";

const INSERT_REDIRECT_URI: &str = "
    INSERT INTO application_redirect_uris (client_id, redirect_uri) VALUES ($1, $2)
    ON CONFLICT (client_id, redirect_uri) DO NOTHING";

const HAS_REDIRECT_URI: &str =
    "SELECT 1 FROM application_redirect_uris WHERE client_id = $1 AND redirect_uri = $2";

const REDIRECT_URIS: &str =
    "SELECT redirect_uri FROM application_redirect_uris WHERE client_id = $1 ORDER BY redirect_uri";

const APPLICATION: &str = sql!(
    "SELECT ",
    Application::COLUMNS,
    ", o.disabled_at
    FROM applications a LEFT JOIN organizations o ON o.organization_id = a.organization_id
    WHERE a.client_id = $1 AND a.deleted_at IS NULL AND a.disabled_at IS NULL"
);

const LOCK_APPLICATION_SCOPES: &str = "
    UPDATE applications SET name = name WHERE client_id = $1 AND deleted_at IS NULL AND disabled_at IS NULL
    RETURNING scopes";

columns!(Application {
    client_id: "a.client_id",
    name: "a.name",
    organization: Organization::COLUMNS,
    owner: "a.owner_channel_id",
    scopes: "a.scopes",
    profile: "a.profile" => |name: Option<&str>| name.and_then(Profile::from_name),
    quota: "CASE WHEN a.quota THEN a.quota_percent ELSE 0 END" => stored_share,
    presentation: Presentation::COLUMNS,
});

/// The part of the quotas in percent, 0 where they do not hold.
pub(super) fn stored_share(percent: i64) -> QuotaShare {
    QuotaShare::percent(percent).unwrap_or(QuotaShare::Unlimited)
}

columns!(Presentation {
    homepage: "a.homepage_url" => url,
    terms: "a.terms_url" => url,
    privacy: "a.privacy_url" => url,
    logo_version: "a.logo_version",
});

fn url(stored: Option<&str>) -> Option<HttpsUrl> {
    stored.map(|url| HttpsUrl::stored(url.to_owned()))
}

columns!(outer_join Organization {
    organization_id: "o.organization_id",
    name: "o.organization_name",
    verified: "o.verified",
});

impl Tx {
    /// Locks an application for the rest of the transaction and gives its scopes; `None` if it is deleted or
    /// disabled. A consent locks the application first, so that a later removal of a scope finds the consent.
    pub async fn lock_application_scopes(
        &mut self,
        client_id: &ClientId,
    ) -> Result<Option<ScopeSet>, StoreError> {
        self.fetch_optional(LOCK_APPLICATION_SCOPES, params![client_id]).await
    }

    /// Creates or replaces an organization.
    pub async fn put_organization(&mut self, organization: &Organization) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Organization(&organization.organization_id));
        self.execute(
            PUT_ORGANIZATION,
            params![&organization.organization_id, &organization.name, organization.verified],
        )
        .await?;
        Ok(())
    }

    /// Creates or replaces an application. This restores an application that was deleted because it was
    /// unused, with `now` as its last use. Its logo and the part of the quotas that
    /// it has stay as they are. `StoreError::ForeignKey` if its
    /// organization or its person does not exist.
    pub async fn put_application(
        &mut self,
        application: &Application,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Application(&application.client_id));
        let Presentation { homepage, terms, privacy, .. } = &application.presentation;
        self.execute(
            PUT_APPLICATION,
            params![
                &application.client_id,
                &application.name,
                application.organization.as_ref().map(|o| &o.organization_id),
                application.scopes.to_stored(),
                application.profile.map(Profile::name),
                application.quota.is_limited(),
                now,
                homepage.as_ref().map(HttpsUrl::as_str),
                terms.as_ref().map(HttpsUrl::as_str),
                privacy.as_ref().map(HttpsUrl::as_str),
                application.owner.as_ref()
            ],
        )
        .await?;
        Ok(())
    }

    /// Deletes the redirect addresses of an application.
    pub async fn delete_redirect_uris(&mut self, client_id: &ClientId) -> Result<(), StoreError> {
        self.execute(DELETE_REDIRECT_URIS, params![client_id]).await?;
        Ok(())
    }

    /// Adds a redirect address.
    pub async fn insert_redirect_uri(
        &mut self,
        client_id: &ClientId,
        uri: &RedirectUri,
    ) -> Result<(), StoreError> {
        self.execute(INSERT_REDIRECT_URI, params![client_id, uri.as_str()]).await?;
        Ok(())
    }

    /// The redirect addresses of an application.
    pub async fn redirect_uris(&mut self, client_id: &ClientId) -> Result<Vec<String>, StoreError> {
        self.fetch_all(REDIRECT_URIS, params![client_id]).await
    }

    /// Whether this address is registered, byte for byte.
    pub async fn has_redirect_uri(&mut self, client_id: &ClientId, uri: &str) -> Result<bool, StoreError> {
        Ok(self.query_opt(HAS_REDIRECT_URI, params![client_id, uri]).await?.is_some())
    }

    /// The application of that id, unless it is deleted or disabled. Its organization is not verified while
    /// disabled.
    pub async fn application(&mut self, client_id: &ClientId) -> Result<Option<Application>, StoreError> {
        let found: Option<(Application, Option<Timestamp>)> =
            self.fetch_optional(APPLICATION, params![client_id]).await?;
        Ok(found.map(|(mut application, organization_disabled_at)| {
            if let Some(organization) = &mut application.organization {
                organization.verified &= organization_disabled_at.is_none();
            }
            application
        }))
    }
}

//! Applications, disabled, enabled, deleted and listed by the operator.

use domain::{ClientId, Timestamp};

use super::application_life::ApplicationLife;
use super::credential_changes::Dependency;
use crate::queries::columns::{Select, sql};
use crate::{StoreError, Tx, params};

const DISABLE: &str = "
    UPDATE applications SET disabled_at = COALESCE(disabled_at, $2), disabled_by_operator = TRUE
    WHERE client_id = $1 AND purging = FALSE AND (deleted_at IS NULL OR deleted_at > $3)";

const ENABLE: &str = "
    UPDATE applications SET disabled_by_operator = FALSE,
        disabled_at = CASE WHEN disabled_by_owner THEN disabled_at ELSE NULL END
    WHERE client_id = $1 AND purging = FALSE AND (deleted_at IS NULL OR deleted_at > $2)";

const SET_QUOTA: &str = "
    UPDATE applications SET quota = $2
    WHERE client_id = $1 AND purging = FALSE AND (deleted_at IS NULL OR deleted_at > $3)";

const SET_QUOTA_PERCENT: &str = "
    UPDATE applications SET quota = TRUE, quota_percent = $2
    WHERE client_id = $1 AND purging = FALSE AND (deleted_at IS NULL OR deleted_at > $3)";

const BEGIN_PURGE_OF_ONE: &str = "
    UPDATE applications SET deleted_at = COALESCE(deleted_at, $2), purging = TRUE
    WHERE client_id = $1 AND purging = FALSE";

const IS_PURGING: &str = "SELECT 1 FROM applications WHERE client_id = $1 AND purging = TRUE";

const ANY_PURGING: &str =
    "SELECT 1 FROM applications WHERE deleted_at IS NOT NULL AND purging = TRUE LIMIT 1";

const LIST: &str = sql!(
    "SELECT ",
    ApplicationLife::COLUMNS,
    "
    FROM applications a LEFT JOIN organizations o ON o.organization_id = a.organization_id
    WHERE a.purging = FALSE AND (a.deleted_at IS NULL OR a.deleted_at > $1) AND a.client_id > $2
    ORDER BY a.client_id LIMIT $3"
);

impl Tx {
    /// Disables an application with its tokens and secrets: `false` if there is none, or it was deleted at
    /// `irrecoverable_since` or before.
    pub async fn disable_application(
        &mut self,
        client_id: &ClientId,
        now: Timestamp,
        irrecoverable_since: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        Ok(self.execute(DISABLE, params![client_id, now, irrecoverable_since]).await? > 0)
    }

    /// Enables an application, unless its owner disabled it, too: `false` if there is none, or it was deleted
    /// at `irrecoverable_since` or before.
    pub async fn enable_application(
        &mut self,
        client_id: &ClientId,
        irrecoverable_since: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        Ok(self.execute(ENABLE, params![client_id, irrecoverable_since]).await? > 0)
    }

    /// Lets quotas hold for an application, or not: `false` if there is none, or it was deleted at
    /// `irrecoverable_since` or before.
    pub async fn set_application_quota(
        &mut self,
        client_id: &ClientId,
        quota: bool,
        irrecoverable_since: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        Ok(self.execute(SET_QUOTA, params![client_id, quota, irrecoverable_since]).await? > 0)
    }

    /// Gives an application this part of the quotas, in percent, which hold for it from then on: `false` if
    /// there is none, or it was deleted at `irrecoverable_since` or before.
    pub async fn set_application_quota_percent(
        &mut self,
        client_id: &ClientId,
        percent: u8,
        irrecoverable_since: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        let percent = i64::from(percent);
        Ok(self.execute(SET_QUOTA_PERCENT, params![client_id, percent, irrecoverable_since]).await? > 0)
    }

    /// Begins the purge of an application, used or not: `false` if there is none. Its credentials are invalid
    /// from then on. [`purge_applications`](Self::purge_applications) deletes its rows.
    pub async fn begin_purge_of_application(
        &mut self,
        client_id: &ClientId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        Ok(self.execute(BEGIN_PURGE_OF_ONE, params![client_id, now]).await? > 0)
    }

    /// Whether an application is being purged.
    pub async fn is_application_purging(&mut self, client_id: &ClientId) -> Result<bool, StoreError> {
        Ok(self.query_opt(IS_PURGING, params![client_id]).await?.is_some())
    }

    /// Whether any application is being purged. Costs one index look-up.
    pub async fn has_purging_applications(&mut self) -> Result<bool, StoreError> {
        Ok(self.query_opt(ANY_PURGING, params![]).await?.is_some())
    }

    /// Up to `size` applications after `after`, in the order of their ids, without notices. Includes those
    /// that can be restored, except those that were deleted at `irrecoverable_since` or before.
    pub async fn applications(
        &mut self,
        after: &str,
        irrecoverable_since: Timestamp,
        size: i64,
    ) -> Result<Vec<ApplicationLife>, StoreError> {
        self.fetch_all(LIST, params![irrecoverable_since, after, size]).await
    }
}

//! The life of applications: used, warned, deleted, restored, purged
//! (`docs/spec/authorization.md#unused-applications`). Each step is one statement with its own condition, so
//! several nodes may run the same step at once.

use domain::application::Application;
use domain::{ClientId, Timestamp};

use super::credential_changes::Dependency;
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// The most rows that one statement here changes. A small statement can share a commit with the requests of
/// users.
pub const LIFE_ROWS_MAX: i64 = 500;

/// A use that is recorded after the deletion, but happened before, restores an application that was deleted
/// because it was unused.
const NOTE_USE: &str = "
    UPDATE applications SET last_used_at = $2, deleted_at = NULL
    WHERE client_id = $1 AND last_used_at < $2 AND purging = FALSE AND deleted_by_owner = FALSE";

/// A session with a subscription is a use until the session ends. Ended sessions are stored for as long as an
/// application may be unused, so no use is missed.
const NOTE_SUBSCRIBED: &str = "
    UPDATE applications SET last_used_at = (
        SELECT MAX(COALESCE(c.disconnected_at, $1)) FROM sessions c WHERE c.client_id = applications.client_id
        AND EXISTS (SELECT 1 FROM session_subscriptions s WHERE s.session_key = c.session_key))
    WHERE deleted_at IS NULL AND last_used_at <= $2 AND EXISTS (
        SELECT 1 FROM sessions c WHERE c.client_id = applications.client_id
        AND (c.disconnected_at IS NULL OR c.disconnected_at > applications.last_used_at)
        AND EXISTS (SELECT 1 FROM session_subscriptions s WHERE s.session_key = c.session_key))";

/// A notice belongs to an earlier idle time if the last use is too recent for it.
const DELETE_OUTDATED_NOTICES: &str = "
    DELETE FROM application_notices WHERE kind = $1 AND EXISTS (
        SELECT 1 FROM applications a WHERE a.client_id = application_notices.client_id
        AND a.last_used_at > application_notices.created_at - CAST($2 AS BIGINT))";

const GIVE_NOTICES: &str = "
    INSERT INTO application_notices (client_id, kind, created_at)
    SELECT a.client_id, CAST($1 AS TEXT), CAST($2 AS BIGINT) FROM applications a
    WHERE a.deleted_at IS NULL AND a.last_used_at <= $3 AND NOT EXISTS (
        SELECT 1 FROM application_notices n WHERE n.client_id = a.client_id AND n.kind = $1)
    ORDER BY a.client_id LIMIT $4
    ON CONFLICT (client_id, kind) DO NOTHING
    RETURNING client_id";

const DELETE_UNUSED: &str = "
    UPDATE applications SET deleted_at = $1
    WHERE deleted_at IS NULL AND last_used_at <= $2 AND client_id = (
        SELECT client_id FROM applications WHERE deleted_at IS NULL AND last_used_at <= $2
        ORDER BY client_id LIMIT 1)
    RETURNING client_id";

const RESTORE: &str = "
    UPDATE applications SET deleted_at = NULL, deleted_by_owner = FALSE, last_used_at = $2
    WHERE client_id = $1 AND purging = FALSE AND (deleted_at IS NULL OR deleted_at > $3)";

const DELETE_UNRESTORABLE: &str =
    "DELETE FROM applications WHERE client_id = $1 AND (purging = TRUE OR deleted_at <= $2)";

const BEGIN_PURGE: &str = "
    UPDATE applications SET purging = TRUE WHERE deleted_at <= $1 AND purging = FALSE";

const LIFE: &str = sql!(
    "SELECT ",
    ApplicationLife::COLUMNS,
    "
    FROM applications a LEFT JOIN organizations o ON o.organization_id = a.organization_id
    WHERE a.client_id = $1 AND a.purging = FALSE AND (a.deleted_at IS NULL OR a.deleted_at > $2)"
);

const NOTICES: &str = sql!(
    "SELECT ",
    Notice::COLUMNS,
    "
    FROM application_notices n JOIN applications a ON a.client_id = n.client_id
    WHERE n.client_id = $1 AND n.created_at > a.last_used_at ORDER BY n.created_at, n.kind"
);

/// Applications that were warned and not used since.
const WARNED: &str = "
    SELECT client_id, last_used_at FROM applications
    WHERE deleted_at IS NULL AND last_used_at <= $1 AND EXISTS (
        SELECT 1 FROM application_notices n
        WHERE n.client_id = applications.client_id AND n.created_at > applications.last_used_at)
    ORDER BY last_used_at LIMIT $2";

/// Rows of one kind that belong to applications that are being purged. `$1` is the most rows.
macro_rules! purge_sql {
    ($table:literal, $key:literal) => {
        sql!(
            "DELETE FROM ",
            $table,
            " WHERE ",
            $key,
            " IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE client_id IN (SELECT client_id FROM applications WHERE deleted_at IS NOT NULL AND purging = TRUE)",
            " LIMIT $1)"
        )
    };
}

const PURGE_CONSENTS: &str = "
    DELETE FROM consents WHERE (client_id, channel_id) IN (
        SELECT client_id, channel_id FROM consents
        WHERE client_id IN (SELECT client_id FROM applications WHERE deleted_at IS NOT NULL AND purging = TRUE)
        LIMIT $1)";

/// A session stays until its node has closed the socket or was declared dead.
const PURGE_SESSIONS: &str = "
    DELETE FROM sessions WHERE session_key IN (
        SELECT session_key FROM sessions
        WHERE client_id IN (SELECT client_id FROM applications WHERE deleted_at IS NOT NULL AND purging = TRUE)
        AND ((disconnected_at IS NOT NULL AND closing_node IS NULL)
            OR node_id NOT IN (SELECT node_id FROM nodes))
        LIMIT $1)";

const PURGE_USAGE: &str = "
    DELETE FROM application_usage WHERE (client_id, day, kind) IN (
        SELECT client_id, day, kind FROM application_usage
        WHERE client_id IN (SELECT client_id FROM applications WHERE deleted_at IS NOT NULL AND purging = TRUE)
        LIMIT $1)";

/// Rows without a bound on their number are deleted before their application, so that no statement deletes
/// too many rows.
const PURGE: [&str; 7] = [
    purge_sql!("access_tokens", "token_hash"),
    purge_sql!("refresh_tokens", "token_hash"),
    purge_sql!("authorization_codes", "code_hash"),
    PURGE_CONSENTS,
    purge_sql!("session_urls", "token_hash"),
    PURGE_SESSIONS,
    PURGE_USAGE,
];

const PURGE_APPLICATIONS: &str = "
    DELETE FROM applications WHERE deleted_at IS NOT NULL AND purging = TRUE
    AND NOT EXISTS (SELECT 1 FROM consents c WHERE c.client_id = applications.client_id)
    AND NOT EXISTS (SELECT 1 FROM session_urls u WHERE u.client_id = applications.client_id)
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.client_id = applications.client_id)";

/// A warning to an unused application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its kind.
    pub kind: String,
    /// When it was given.
    pub given_at: Timestamp,
}

columns!(Notice { kind: "n.kind", given_at: "n.created_at" });

/// An application with its times.
#[derive(Clone, Debug)]
pub struct ApplicationLife {
    /// Its data.
    pub application: Application,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, as far as recorded.
    pub last_used_at: Timestamp,
    /// When it was deleted, because it was unused or by its owner.
    pub deleted_at: Option<Timestamp>,
    /// Whether its owner deleted it.
    pub is_deleted_by_owner: bool,
    /// Since when it is disabled.
    pub disabled_at: Option<Timestamp>,
    /// Whether the operator has disabled it.
    pub is_disabled_by_operator: bool,
    /// Whether its owner has disabled it.
    pub is_disabled_by_owner: bool,
    /// The warnings of the current idle time, oldest first.
    pub notices: Vec<Notice>,
}

columns!(ApplicationLife {
    application: Application::COLUMNS,
    created_at: "a.created_at",
    last_used_at: "a.last_used_at",
    deleted_at: "a.deleted_at",
    is_deleted_by_owner: "a.deleted_by_owner",
    disabled_at: "a.disabled_at",
    is_disabled_by_operator: "a.disabled_by_operator",
    is_disabled_by_owner: "a.disabled_by_owner";
    notices: Vec::new(),
});

impl ApplicationLife {
    /// Its last use, if there was one. The deadline of an unused application runs from its creation.
    pub fn last_use(&self) -> Option<Timestamp> {
        (self.last_used_at > self.created_at).then_some(self.last_used_at)
    }
}

impl Tx {
    /// Up to `limit` applications that were warned and not used since, with their last use. The longest idle
    /// come first.
    pub async fn warned_applications(
        &mut self,
        idle_since: Timestamp,
        limit: i64,
    ) -> Result<Vec<(ClientId, Timestamp)>, StoreError> {
        self.fetch_all(WARNED, params![idle_since, limit]).await
    }

    /// Records a use of an application: `true` if the recorded last use changed.
    pub async fn note_application_use(
        &mut self,
        client_id: &ClientId,
        used_at: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(NOTE_USE, params![client_id, used_at]).await? > 0)
    }

    /// Records subscriptions as uses, for the applications that were last used at `idle_since` or before.
    /// Gives their number.
    pub async fn note_subscribed_applications(
        &mut self,
        now: Timestamp,
        idle_since: Timestamp,
    ) -> Result<u64, StoreError> {
        self.execute(NOTE_SUBSCRIBED, params![now, idle_since]).await
    }

    /// Deletes the notices of a kind, given after `idle_ms` without use, whose application was used again.
    /// Gives their number.
    pub async fn delete_outdated_notices(&mut self, kind: &str, idle_ms: i64) -> Result<u64, StoreError> {
        self.execute(DELETE_OUTDATED_NOTICES, params![kind, idle_ms]).await
    }

    /// Records a notice of a kind for up to [`LIFE_ROWS_MAX`] applications that were last used at
    /// `idle_since` or before and do not have it. Gives these applications.
    pub async fn give_application_notices(
        &mut self,
        kind: &str,
        now: Timestamp,
        idle_since: Timestamp,
    ) -> Result<Vec<ClientId>, StoreError> {
        self.fetch_all(GIVE_NOTICES, params![kind, now, idle_since, LIFE_ROWS_MAX]).await
    }

    /// Deletes one application that was last used at `idle_since` or before. It can be restored. `None` if
    /// there is none, or another node deleted it first.
    pub async fn delete_unused_application(
        &mut self,
        now: Timestamp,
        idle_since: Timestamp,
    ) -> Result<Option<ClientId>, StoreError> {
        let deleted = self.fetch_optional(DELETE_UNUSED, params![now, idle_since]).await?;
        if let Some(client_id) = &deleted {
            self.credentials_changed(Dependency::Application(client_id));
        }
        Ok(deleted)
    }

    /// Restores a deleted application, with `now` as its last use: `false` if there is none, or it was
    /// deleted at `irrecoverable_since` or before.
    pub async fn restore_application(
        &mut self,
        client_id: &ClientId,
        now: Timestamp,
        irrecoverable_since: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(RESTORE, params![client_id, now, irrecoverable_since]).await? > 0)
    }

    /// Deletes the row of an application that was deleted at `irrecoverable_since` or before, and all rows
    /// that depend on it, so that the id is free: `true` if there was one.
    pub async fn delete_unrestorable_application(
        &mut self,
        client_id: &ClientId,
        irrecoverable_since: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        Ok(self.execute(DELETE_UNRESTORABLE, params![client_id, irrecoverable_since]).await? > 0)
    }

    /// Begins the purge of the applications that were deleted at `irrecoverable_since` or before: they cannot
    /// be restored any more. Gives their number.
    pub async fn begin_purge_of_applications(
        &mut self,
        irrecoverable_since: Timestamp,
    ) -> Result<u64, StoreError> {
        self.execute(BEGIN_PURGE, params![irrecoverable_since]).await
    }

    /// Deletes up to [`LIFE_ROWS_MAX`] rows of each kind that belong to applications that are being purged,
    /// and then the applications without such rows. Gives the number of rows. 0 means that nothing is left.
    pub async fn purge_applications(&mut self) -> Result<u64, StoreError> {
        let mut purged = 0;
        for sql in PURGE {
            purged += self.execute(sql, params![LIFE_ROWS_MAX]).await?;
        }
        Ok(purged + self.execute(PURGE_APPLICATIONS, params![]).await?)
    }

    /// An application with its times, also while it can be restored: `None` if it was deleted at
    /// `irrecoverable_since` or before.
    pub async fn application_life(
        &mut self,
        client_id: &ClientId,
        irrecoverable_since: Timestamp,
    ) -> Result<Option<ApplicationLife>, StoreError> {
        let mut life: Option<ApplicationLife> =
            self.fetch_optional(LIFE, params![client_id, irrecoverable_since]).await?;
        if let Some(life) = &mut life {
            life.notices = self.fetch_all(NOTICES, params![client_id]).await?;
        }
        Ok(life)
    }
}

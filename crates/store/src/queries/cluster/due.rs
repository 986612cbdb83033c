//! What becomes due in a span of time: lifetimes that end, and work that begins. For sandboxes, whose stores
//! are small: some of these statements have no index.

use domain::Timestamp;
use domain::limits::{APPLICATION_RESTORABLE_MS, DAY_MS, UNUSED_APPLICATION_MS};

use crate::queries::columns::sql;
use crate::{StoreError, Tx, params};

/// Maximum number of rows of one kind that one statement returns.
pub const DUE_ROWS_MAX: i64 = 500;

/// Rows whose time is in (`$1`, `$2`], the earliest `$3` of them after the first `$4`: the time and up to two
/// ids.
macro_rules! due_sql {
    ($time:literal, $ids:literal, $from:literal) => {
        sql!(
            "SELECT ",
            $time,
            ", ",
            $ids,
            " FROM ",
            $from,
            " AND ",
            $time,
            " > $1 AND ",
            $time,
            " <= $2 ORDER BY ",
            $time,
            ", 2, 3 LIMIT $3 OFFSET $4"
        )
    };
}
/// The notices of unused applications, as the service gives them.
const NOTICES: [&str; 3] = ["UNUSED_60_DAYS", "UNUSED_80_DAYS", "UNUSED_89_DAYS"];
/// Applications that were not used for some days and do not have this notice yet.
macro_rules! warned_sql {
    ($notice:expr) => {
        sql!(
            "SELECT a.last_used_at, a.client_id, CAST(NULL AS TEXT) FROM applications a
            WHERE a.deleted_at IS NULL AND a.last_used_at > $1 AND a.last_used_at <= $2 AND NOT EXISTS (
                SELECT 1 FROM application_notices n
                WHERE n.client_id = a.client_id AND n.kind = '",
            $notice,
            "' AND n.created_at > a.last_used_at)
            ORDER BY a.last_used_at, a.client_id LIMIT $3 OFFSET $4"
        )
    };
}
/// The statements of the lifetimes that end, and [`NEXT_END`] over all of them.
macro_rules! ends_sql {
    ($($name:ident: $time:literal, $ids:literal, $from:literal;)+) => {
        $(const $name: &str = due_sql!($time, $ids, $from);)+

        /// The earliest time after `$1` at which a lifetime ends.
        const NEXT_END: &str = sql!(
            "SELECT MIN(next_at) FROM (SELECT CAST(NULL AS BIGINT) AS next_at"
            $(, " UNION ALL SELECT MIN(", $time, ") FROM ", $from, " AND ", $time, " > $1")+,
            ") ends"
        );
    };
}
ends_sql! {
    CODE: "expires_at", "client_id, channel_id", "authorization_codes WHERE used_at IS NULL";
    ACCESS_TOKEN: "expires_at", "client_id, channel_id", "access_tokens WHERE TRUE";
    REFRESH_TOKEN: "expires_at", "client_id, channel_id", "refresh_tokens WHERE used_at IS NULL";
    SESSION_URL: "expires_at", "client_id, channel_id", "session_urls WHERE TRUE";
    SIGN_IN: "expires_at", "channel_id, CAST(NULL AS TEXT)", "browser_sessions WHERE TRUE";
    PENDING_SIGN_IN: "expires_at", "channel_id, CAST(NULL AS TEXT)", "pending_sign_ins WHERE TRUE";
    PASSWORD_RESET: "expires_at", "channel_id, CAST(NULL AS TEXT)", "password_resets WHERE TRUE";
    APPLICATION_SECRET: "expires_at", "client_id, secret_id",
        "application_secrets WHERE expires_at IS NOT NULL";
    WEBHOOK_SECRET: "forget_at", "webhook_id, secret_id", "webhook_secrets WHERE forget_at IS NOT NULL";
    RESTRICTION: "ends_at", "channel_id, restricted_channel_id", "temporary_restrictions WHERE TRUE";
    CAMPAIGN_START: "starts_at", "campaign_id, CAST(NULL AS TEXT)",
        "drops_campaigns WHERE disabled_at IS NULL";
    CAMPAIGN_END: "ends_at", "campaign_id, CAST(NULL AS TEXT)", "drops_campaigns WHERE disabled_at IS NULL";
}
const WARNED_60: &str = warned_sql!(NOTICES[0]);
const WARNED_80: &str = warned_sql!(NOTICES[1]);
const WARNED_89: &str = warned_sql!(NOTICES[2]);
const DELETED: &str =
    due_sql!("last_used_at", "client_id, CAST(NULL AS TEXT)", "applications WHERE deleted_at IS NULL");
const PURGED: &str =
    due_sql!("deleted_at", "client_id, CAST(NULL AS TEXT)", "applications WHERE purging = FALSE");
const WEBHOOK_ATTEMPT: &str = due_sql!(
    "d.due_at",
    "w.client_id, d.message_id",
    "webhook_deliveries d JOIN webhooks w ON w.webhook_id = d.webhook_id
    WHERE d.state = 'WAITING' AND w.enabled AND w.client_id IS NOT NULL"
);

/// A kind of what becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueKind {
    /// An unused authorization code expires.
    CodeExpired,
    /// An access token expires.
    AccessTokenExpired,
    /// An unused refresh token expires.
    RefreshTokenExpired,
    /// A session URL expires.
    SessionUrlExpired,
    /// A browser is signed out.
    SignInExpired,
    /// A sign-in whose code was not entered ends.
    PendingSignInExpired,
    /// A link to a new password expires.
    PasswordResetExpired,
    /// A replaced secret of an application expires.
    ApplicationSecretExpired,
    /// A replaced secret of a webhook is forgotten.
    WebhookSecretExpired,
    /// A temporary restriction ends.
    RestrictionEnded,
    /// A campaign starts.
    CampaignStarted,
    /// A campaign ends.
    CampaignEnded,
    /// An application is warned after 60 days without use.
    ApplicationUnused60Days,
    /// An application is warned after 80 days without use.
    ApplicationUnused80Days,
    /// An application is warned after 89 days without use.
    ApplicationUnused89Days,
    /// An unused application is deleted.
    ApplicationDeleted,
    /// A deleted application cannot be restored any more.
    ApplicationPurged,
    /// A message to a webhook is attempted.
    WebhookAttempt,
}

impl DueKind {
    /// Lifetimes that end without any work.
    pub const PASSIVE: [Self; 12] = [
        Self::CodeExpired,
        Self::AccessTokenExpired,
        Self::RefreshTokenExpired,
        Self::SessionUrlExpired,
        Self::SignInExpired,
        Self::PendingSignInExpired,
        Self::PasswordResetExpired,
        Self::ApplicationSecretExpired,
        Self::WebhookSecretExpired,
        Self::RestrictionEnded,
        Self::CampaignStarted,
        Self::CampaignEnded,
    ];

    /// Work that begins at its time.
    pub const ACTIVE: [Self; 6] = [
        Self::ApplicationUnused60Days,
        Self::ApplicationUnused80Days,
        Self::ApplicationUnused89Days,
        Self::ApplicationDeleted,
        Self::ApplicationPurged,
        Self::WebhookAttempt,
    ];

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::PASSIVE.into_iter().chain(Self::ACTIVE)
    }

    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CodeExpired => "code.expired",
            Self::AccessTokenExpired => "access-token.expired",
            Self::RefreshTokenExpired => "refresh-token.expired",
            Self::SessionUrlExpired => "session-url.expired",
            Self::SignInExpired => "sign-in.expired",
            Self::PendingSignInExpired => "pending-sign-in.expired",
            Self::PasswordResetExpired => "password-reset.expired",
            Self::ApplicationSecretExpired => "application-secret.expired",
            Self::WebhookSecretExpired => "webhook-secret.expired",
            Self::RestrictionEnded => "restriction.ended",
            Self::CampaignStarted => "campaign.started",
            Self::CampaignEnded => "campaign.ended",
            Self::ApplicationUnused60Days => "application.unused-60-days",
            Self::ApplicationUnused80Days => "application.unused-80-days",
            Self::ApplicationUnused89Days => "application.unused-89-days",
            Self::ApplicationDeleted => "application.deleted",
            Self::ApplicationPurged => "application.purged",
            Self::WebhookAttempt => "webhook.attempt",
        }
    }

    /// The names of its ids.
    pub const fn id_names(self) -> [&'static str; 2] {
        match self {
            Self::ApplicationSecretExpired => ["clientId", "secretId"],
            Self::WebhookSecretExpired => ["webhookId", "secretId"],
            Self::RestrictionEnded => ["channelId", "restrictedChannelId"],
            Self::CampaignStarted | Self::CampaignEnded => ["campaignId", ""],
            Self::SignInExpired | Self::PendingSignInExpired | Self::PasswordResetExpired => {
                ["channelId", ""]
            }
            Self::WebhookAttempt => ["clientId", "messageId"],
            _ => ["clientId", "channelId"],
        }
    }

    /// The notice that an application then gets.
    pub const fn notice(self) -> Option<&'static str> {
        match self {
            Self::ApplicationUnused60Days => Some(NOTICES[0]),
            Self::ApplicationUnused80Days => Some(NOTICES[1]),
            Self::ApplicationUnused89Days => Some(NOTICES[2]),
            _ => None,
        }
    }

    /// The span from the stored time to the due time, in milliseconds.
    const fn after_ms(self) -> i64 {
        match self {
            Self::ApplicationUnused60Days => 60 * DAY_MS,
            Self::ApplicationUnused80Days => 80 * DAY_MS,
            Self::ApplicationUnused89Days => 89 * DAY_MS,
            Self::ApplicationDeleted => UNUSED_APPLICATION_MS,
            Self::ApplicationPurged => APPLICATION_RESTORABLE_MS,
            _ => 0,
        }
    }

    const fn sql(self) -> &'static str {
        match self {
            Self::CodeExpired => CODE,
            Self::AccessTokenExpired => ACCESS_TOKEN,
            Self::RefreshTokenExpired => REFRESH_TOKEN,
            Self::SessionUrlExpired => SESSION_URL,
            Self::SignInExpired => SIGN_IN,
            Self::PendingSignInExpired => PENDING_SIGN_IN,
            Self::PasswordResetExpired => PASSWORD_RESET,
            Self::ApplicationSecretExpired => APPLICATION_SECRET,
            Self::WebhookSecretExpired => WEBHOOK_SECRET,
            Self::RestrictionEnded => RESTRICTION,
            Self::CampaignStarted => CAMPAIGN_START,
            Self::CampaignEnded => CAMPAIGN_END,
            Self::ApplicationUnused60Days => WARNED_60,
            Self::ApplicationUnused80Days => WARNED_80,
            Self::ApplicationUnused89Days => WARNED_89,
            Self::ApplicationDeleted => DELETED,
            Self::ApplicationPurged => PURGED,
            Self::WebhookAttempt => WEBHOOK_ATTEMPT,
        }
    }
}

/// Something that becomes due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: DueKind,
    /// Its ids, named by [`DueKind::id_names`].
    pub ids: [Option<String>; 2],
}

impl Tx {
    /// What of one kind becomes due after `from`, until `until`: without the earliest `skipped` the earliest
    /// up to `limit`, at most [`DUE_ROWS_MAX`].
    pub async fn due(
        &mut self,
        kind: DueKind,
        from: Timestamp,
        until: Timestamp,
        limit: i64,
        skipped: i64,
    ) -> Result<Vec<Due>, StoreError> {
        let after_ms = kind.after_ms();
        let (from, until) = (from.plus_ms(-after_ms), until.plus_ms(-after_ms));
        let values = params![from, until, limit.min(DUE_ROWS_MAX), skipped];
        let rows: Vec<(Timestamp, Option<String>, Option<String>)> =
            self.fetch_all(kind.sql(), values).await?;
        let due = |(at, first, second): (Timestamp, _, _)| Due {
            at: at.plus_ms(after_ms),
            kind,
            ids: [first, second],
        };
        Ok(rows.into_iter().map(due).collect())
    }

    /// The earliest time after `from` at which a lifetime ends.
    pub async fn next_end(&mut self, from: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.fetch_optional::<Option<Timestamp>>(NEXT_END, params![from]).await?.flatten())
    }
}

//! Expired rows. A sweep is small, so that it can share a commit with the requests of users.

use domain::{MessageId, Timestamp};

use crate::queries::columns::sql;
use crate::{StoreError, Tx, params};

/// Maximum number of rows that one statement of a sweep deletes, unless the caller says another number.
pub const SWEEP_ROWS_MAX: i64 = 500;

/// One statement for each kind of row. Rows before the time `$1` are expired. `$2` is the most rows.
macro_rules! sweep_sql {
    ($table:literal, $key:literal, $column:literal) => {
        sql!(
            "DELETE FROM ",
            $table,
            " WHERE ",
            $key,
            " IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE ",
            $column,
            " <= $1 LIMIT $2)"
        )
    };
}
/// The oldest rows of a table whose ids begin with their time. `$1` is a bound of ids. The rows are a
/// range, so the statement reads and writes pages one after the other.
macro_rules! sweep_range_sql {
    ($table:literal, $key:literal) => {
        sql!(
            "DELETE FROM ",
            $table,
            " WHERE ",
            $key,
            " <= (SELECT MAX(",
            $key,
            ") FROM (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE ",
            $key,
            " < $1 ORDER BY ",
            $key,
            " LIMIT $2) b)"
        )
    };
}
const CHAT_MESSAGES: &str = sweep_range_sql!("chat_messages", "message_id");
const DONATIONS: &str = sweep_range_sql!("donations", "donation_id");
const CLAIM_CHANGES: &str = "
    DELETE FROM claim_changes WHERE changed_at <= $1 AND (claim_id, changed_at) IN (
        SELECT claim_id, changed_at FROM claim_changes WHERE changed_at <= $1 ORDER BY changed_at LIMIT $2)";
const CODES: &str = sweep_sql!("authorization_codes", "code_hash", "expires_at");
const ACCESS_TOKENS: &str = sweep_sql!("access_tokens", "token_hash", "expires_at");
const REFRESH_TOKENS: &str = sweep_sql!("refresh_tokens", "token_hash", "expires_at");
const ENDED_TOKENS: &str = sweep_sql!("ended_tokens", "token_hash", "expires_at");
const SESSION_URLS: &str = sweep_sql!("session_urls", "token_hash", "expires_at");
const BROWSER_SESSIONS: &str = sweep_sql!("browser_sessions", "token_hash", "expires_at");
const PASSWORD_RESETS: &str = sweep_sql!("password_resets", "token_hash", "expires_at");
const PENDING_SIGN_INS: &str = sweep_sql!("pending_sign_ins", "token_hash", "expires_at");
const FORM_DRAFTS: &str = sweep_sql!("form_drafts", "channel_id", "expires_at");
const UPSTREAM_FLOWS: &str = sweep_sql!("upstream_flows", "state_hash", "expires_at");
const MAILS: &str = sweep_sql!("mail_outbox", "mail_id", "expires_at");
const MAIL_COUNTS: &str = sweep_sql!("mail_counts", "subject", "began_at");
const AUDIT_LOG: &str = sweep_sql!("audit_log", "entry_id", "created_at");
const APPLICATION_USAGE: &str = "
    DELETE FROM application_usage WHERE day <= $1 AND (client_id, day, kind) IN (
        SELECT client_id, day, kind FROM application_usage WHERE day <= $1 LIMIT $2)";
const APPLICATION_LOAD: &str = "
    DELETE FROM application_load WHERE minute <= $1 AND (minute, client_id) IN (
        SELECT minute, client_id FROM application_load WHERE minute <= $1 ORDER BY minute LIMIT $2)";
const SESSIONS: &str = sweep_sql!("sessions", "session_key", "disconnected_at");
/// The change logs of sessions that ended within a day (864e5 ms) before `$1`. Older ones were swept, or are
/// deleted with their session. A search through 90 days of sessions would cost too much.
const SESSION_CHANGES: &str = "
    DELETE FROM session_changes WHERE (session_key, version) IN (
        SELECT c.session_key, c.version FROM sessions s JOIN session_changes c ON c.session_key = s.session_key
        WHERE s.disconnected_at <= $1 AND s.disconnected_at > CAST($1 AS BIGINT) - 86400000 LIMIT $2)";
const IDEMPOTENCY_KEYS: &str = "
    DELETE FROM idempotency_keys WHERE created_at <= $1 AND (operation, idempotency_key) IN (
        SELECT operation, idempotency_key FROM idempotency_keys WHERE created_at <= $1 LIMIT $2)";
const TEMPORARY_RESTRICTIONS: &str = "
    DELETE FROM temporary_restrictions WHERE ends_at <= $1 AND (channel_id, restricted_channel_id) IN (
        SELECT channel_id, restricted_channel_id FROM temporary_restrictions WHERE ends_at <= $1 LIMIT $2)";
const CHAT_SPEAKERS: &str = "
    DELETE FROM chat_speakers WHERE last_message_at <= $1 AND (channel_id, sender_channel_id) IN (
        SELECT channel_id, sender_channel_id FROM chat_speakers WHERE last_message_at <= $1 LIMIT $2)";

const LIVE_SPANS: &str = "
    DELETE FROM live_spans WHERE closed_at <= $1 AND (live_id, since_version) IN (
        SELECT live_id, since_version FROM live_spans WHERE closed_at <= $1 LIMIT $2)";

const LOST_EVENTS: &str = "
    DELETE FROM lost_events WHERE lost_at <= $1 AND (lost_at, channel_id, node_id) IN (
        SELECT lost_at, channel_id, node_id FROM lost_events WHERE lost_at <= $1 LIMIT $2)";

const EVENT_OUTBOX: &str = sweep_sql!("event_outbox", "batch_id", "created_at");

const WEBHOOK_SECRETS: &str = sweep_sql!("webhook_secrets", "secret_id", "forget_at");

const WEBHOOK_NOTICES: &str = "
    DELETE FROM webhook_notices WHERE created_at <= $1 AND (webhook_id, created_at, kind) IN (
        SELECT webhook_id, created_at, kind FROM webhook_notices WHERE created_at <= $1 LIMIT $2)";

/// Messages in any state: one that has waited for so long is on hold at a disabled webhook.
const WEBHOOK_DELIVERIES: &str = "
    DELETE FROM webhook_deliveries WHERE changed_at <= $1 AND (webhook_id, message_id) IN (
        SELECT webhook_id, message_id FROM webhook_deliveries WHERE changed_at <= $1 LIMIT $2)";

const WEBHOOK_REMAINS: &str = "
    DELETE FROM webhook_deliveries WHERE (webhook_id, message_id) IN (
        SELECT d.webhook_id, d.message_id FROM webhooks w JOIN webhook_deliveries d ON d.webhook_id = w.webhook_id
        WHERE w.client_id IS NULL AND w.changed_at <= $1 LIMIT $2)";

const DELETED_WEBHOOKS: &str = "
    DELETE FROM webhooks WHERE webhook_id IN (
        SELECT w.webhook_id FROM webhooks w
        WHERE w.client_id IS NULL AND w.changed_at <= $1 AND NOT EXISTS (
            SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.webhook_id)
        LIMIT $2)";

/// A kind of row that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Authorization codes, by their expiry.
    Codes,
    /// Access tokens, by their expiry.
    AccessTokens,
    /// Refresh tokens, by their expiry.
    RefreshTokens,
    /// Revoked tokens, by the expiry that they had.
    EndedTokens,
    /// Session URLs, by their expiry.
    SessionUrls,
    /// Signed-in browsers, by their expiry.
    BrowserSessions,
    /// Links of password resets, by their expiry.
    PasswordResets,
    /// Sign-ins that wait for a code, by their expiry.
    PendingSignIns,
    /// What was typed into forms whose sign-in had ended, by its expiry.
    FormDrafts,
    /// Sign-ins at a provider, by their expiry.
    UpstreamFlows,
    /// Messages to the mail hook, by their expiry.
    Mails,
    /// Counts of messages, by their beginning.
    MailCounts,
    /// Entries of the audit log, by their time.
    AuditLog,
    /// Requests of applications, by their day.
    ApplicationUsage,
    /// The load of applications, by its minute.
    ApplicationLoad,
    /// Sessions, by their end.
    Sessions,
    /// The change logs of sessions, by the session's end.
    SessionChanges,
    /// Idempotency keys, by their creation.
    IdempotencyKeys,
    /// Temporary restrictions, by their end.
    TemporaryRestrictions,
    /// The times of viewers' last messages in slow mode.
    ChatSpeakers,
    /// Earlier viewer counts of lives, by their end.
    LiveSpans,
    /// Lost events, by their time.
    LostEvents,
    /// Batches of events that were taken over, by their creation.
    EventOutbox,
    /// Secrets of webhooks that do not sign any more, by their end.
    WebhookSecrets,
    /// Notices to the owners of webhooks, by their time.
    WebhookNotices,
    /// Messages to webhooks with their attempts, by their last change of state.
    WebhookDeliveries,
    /// Messages to webhooks that were deleted, by that time.
    WebhookRemains,
    /// Webhooks that were deleted and have no messages left, by that time.
    DeletedWebhooks,
    /// Chat messages, by their time.
    ChatMessages,
    /// Donations, by their time.
    Donations,
    /// Changes of the states of claims, by their time.
    ClaimChanges,
}

impl Sweep {
    /// All of them.
    pub const ALL: [Self; 31] = [
        Self::Codes,
        Self::AccessTokens,
        Self::RefreshTokens,
        Self::EndedTokens,
        Self::SessionUrls,
        Self::BrowserSessions,
        Self::PasswordResets,
        Self::PendingSignIns,
        Self::FormDrafts,
        Self::UpstreamFlows,
        Self::Mails,
        Self::MailCounts,
        Self::AuditLog,
        Self::ApplicationUsage,
        Self::ApplicationLoad,
        Self::Sessions,
        Self::SessionChanges,
        Self::IdempotencyKeys,
        Self::TemporaryRestrictions,
        Self::ChatSpeakers,
        Self::LiveSpans,
        Self::LostEvents,
        Self::EventOutbox,
        Self::WebhookSecrets,
        Self::WebhookNotices,
        Self::WebhookDeliveries,
        Self::DeletedWebhooks,
        Self::WebhookRemains,
        Self::ChatMessages,
        Self::Donations,
        Self::ClaimChanges,
    ];

    const fn sql(self) -> &'static str {
        match self {
            Self::Codes => CODES,
            Self::AccessTokens => ACCESS_TOKENS,
            Self::RefreshTokens => REFRESH_TOKENS,
            Self::EndedTokens => ENDED_TOKENS,
            Self::SessionUrls => SESSION_URLS,
            Self::BrowserSessions => BROWSER_SESSIONS,
            Self::PasswordResets => PASSWORD_RESETS,
            Self::PendingSignIns => PENDING_SIGN_INS,
            Self::FormDrafts => FORM_DRAFTS,
            Self::UpstreamFlows => UPSTREAM_FLOWS,
            Self::Mails => MAILS,
            Self::MailCounts => MAIL_COUNTS,
            Self::AuditLog => AUDIT_LOG,
            Self::ApplicationUsage => APPLICATION_USAGE,
            Self::ApplicationLoad => APPLICATION_LOAD,
            Self::Sessions => SESSIONS,
            Self::SessionChanges => SESSION_CHANGES,
            Self::IdempotencyKeys => IDEMPOTENCY_KEYS,
            Self::TemporaryRestrictions => TEMPORARY_RESTRICTIONS,
            Self::ChatSpeakers => CHAT_SPEAKERS,
            Self::LiveSpans => LIVE_SPANS,
            Self::LostEvents => LOST_EVENTS,
            Self::EventOutbox => EVENT_OUTBOX,
            Self::WebhookSecrets => WEBHOOK_SECRETS,
            Self::WebhookNotices => WEBHOOK_NOTICES,
            Self::WebhookDeliveries => WEBHOOK_DELIVERIES,
            Self::WebhookRemains => WEBHOOK_REMAINS,
            Self::DeletedWebhooks => DELETED_WEBHOOKS,
            Self::ChatMessages => CHAT_MESSAGES,
            Self::Donations => DONATIONS,
            Self::ClaimChanges => CLAIM_CHANGES,
        }
    }
}

impl Tx {
    /// Deletes up to [`SWEEP_ROWS_MAX`] rows that were expired at `before`. Gives their number.
    pub async fn sweep(&mut self, sweep: Sweep, before: Timestamp) -> Result<u64, StoreError> {
        self.sweep_rows(sweep, before, SWEEP_ROWS_MAX).await
    }

    /// Deletes up to `rows` rows that were expired at `before`. Gives their number.
    pub async fn sweep_rows(
        &mut self,
        sweep: Sweep,
        before: Timestamp,
        rows: i64,
    ) -> Result<u64, StoreError> {
        if matches!(sweep, Sweep::ChatMessages | Sweep::Donations) {
            let bound = MessageId::bound_at(before.plus_ms(1));
            return self.execute(sweep.sql(), params![&bound, rows]).await;
        }
        self.execute(sweep.sql(), params![before, rows]).await
    }
}

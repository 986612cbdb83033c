//! Sentences that are true of every store, each with the statement that finds what contradicts it. `stagedoor
//! doctor --deep` checks them in one snapshot, beside the running service.
//!
//! The database enforces keys and references itself. These are the promises over several rows that only the
//! statements of the service keep.

use domain::audit::AuditAction;
use domain::limits::{
    CLIENT_SESSIONS_MAX, DISCONNECTED_SESSION_VISIBLE_MS, SUBSCRIPTIONS_PER_SESSION_MAX, USER_SESSIONS_MAX,
    WEBHOOK_DELIVERIES_KEPT_MS,
};
use domain::{Scope, ScopeSet, Timestamp};

/// The most contradictions that are named.
pub const NAMED_MAX: usize = 20;

/// After this time an outbox or a sweep has had its turn many times, in milliseconds.
const OVERDUE_MS: i64 = 10 * 60 * 1_000;

/// A sentence about a store.
#[derive(Debug, Clone)]
pub struct Invariant {
    /// Its name.
    pub name: &'static str,
    /// The sentence.
    pub sentence: &'static str,
    /// What to do when it is not true.
    pub mend: String,
    /// The statement that names what contradicts it: one column of text.
    pub(crate) sql: String,
}

/// The sentences, for a store that is looked at now.
pub fn invariants(now: Timestamp) -> Vec<Invariant> {
    let overdue = now.plus_ms(-OVERDUE_MS).as_millis();
    let listed = now.plus_ms(-DISCONNECTED_SESSION_VISIBLE_MS).as_millis();
    [
        lists(),
        counts(),
        credentials(now, overdue),
        sessions(overdue, listed),
        drops(now),
        lives(),
        events(overdue),
    ]
    .concat()
}

fn invariant(name: &'static str, sentence: &'static str, mend: &str, sql: &str) -> Invariant {
    Invariant { name, sentence, mend: mend.to_owned(), sql: format!("{sql} LIMIT {}", NAMED_MAX + 1) }
}

fn lists() -> Vec<Invariant> {
    vec![
        invariant(
            "follower-counts",
            "The follower count of each channel is the number of its followers.",
            "Stop the service, then run: UPDATE channels SET follower_count = (SELECT COUNT(*) FROM followers WHERE \
             followers.channel_id = channels.channel_id)",
            "SELECT channel_id FROM channels WHERE follower_count <>
                 (SELECT COUNT(*) FROM followers WHERE followers.channel_id = channels.channel_id)",
        ),
        invariant(
            "list-counts",
            "The blocks of each list count its rows, on every level.",
            &format!("Stop the service, then run: DELETE FROM list_blocks; {}", count_lists()),
            "SELECT l.channel_id || ' ' || l.list || ' level ' || CAST(v.level AS TEXT) FROM (
                 SELECT channel_id, 'FOLLOWERS' AS list, COUNT(*) AS listed FROM followers GROUP BY channel_id
                 UNION ALL
                 SELECT s.channel_id, n.list, COUNT(*) FROM subscribers s
                 JOIN (SELECT 'SUBSCRIBERS_NEWEST' AS list UNION ALL SELECT 'SUBSCRIBERS_LONGEST') n ON TRUE
                 GROUP BY s.channel_id, n.list
                 UNION ALL
                 SELECT channel_id, list, 0 FROM list_blocks b
                 WHERE NOT EXISTS (SELECT 1 FROM followers f WHERE f.channel_id = b.channel_id AND b.list = 'FOLLOWERS')
                   AND NOT EXISTS (
                     SELECT 1 FROM subscribers s WHERE s.channel_id = b.channel_id AND b.list <> 'FOLLOWERS')
                 GROUP BY channel_id, list
             ) l JOIN (SELECT 1 AS level UNION ALL SELECT 2 UNION ALL SELECT 3) v ON TRUE
             WHERE l.listed <> (
                 SELECT CAST(COALESCE(SUM(b.items), 0) AS BIGINT) FROM list_blocks b
                 WHERE b.channel_id = l.channel_id AND b.list = l.list AND b.level = v.level)",
        ),
    ]
}

/// The statement that counts the rows of all lists in blocks, as one line: that of the migration that made
/// the blocks.
fn count_lists() -> String {
    let migration = include_str!("../../migrations/0002_lists.sql");
    let from = migration.find("INSERT INTO list_blocks").unwrap_or_default();
    let words: Vec<_> = migration[from..].split_whitespace().collect();
    words.join(" ").trim_end_matches(';').to_owned()
}

/// The columns that count something: the table, the column, and the column that names the row.
const COUNTS: [(&str, &str, &str); 8] = [
    ("watched_minutes", "minutes", "campaign_id || ' ' || channel_id"),
    ("drops_rewards", "watch_minutes", "campaign_id || ' ' || reward_id"),
    ("channels", "follower_count", "channel_id"),
    ("list_blocks", "items", "channel_id || ' ' || list"),
    ("subscribers", "month", "channel_id || ' ' || subscriber_channel_id"),
    ("lives", "concurrent_user_count", "channel_id"),
    ("webhook_deliveries", "attempts", "message_id"),
    ("webhook_deliveries", "failures", "message_id"),
];

fn counts() -> Vec<Invariant> {
    let negative = COUNTS.map(|(table, column, row)| {
        format!("SELECT '{table}.{column} of ' || {row} FROM {table} WHERE {column} < 0")
    });
    vec![invariant(
        "counts",
        "No count is negative.",
        "Set it to 0, with the table and the column that are named: UPDATE watched_minutes SET minutes = 0 WHERE \
         minutes < 0",
        &format!("SELECT * FROM ({}) negative", negative.join(" UNION ALL ")),
    )]
}

fn credentials(now: Timestamp, overdue: i64) -> Vec<Invariant> {
    vec![
        invariant(
            "token-families",
            "Each access token belongs to a family with a refresh token, so that a revocation finds it.",
            "Withdraw the consent: DELETE /platform/v1/consents/{clientId}/{channelId}",
            "SELECT DISTINCT a.client_id || ' ' || a.channel_id FROM access_tokens a
             WHERE NOT EXISTS (SELECT 1 FROM refresh_tokens r WHERE r.family = a.family)",
        ),
        invariant(
            "secrets",
            "Each application that is not deleted has a secret.",
            "Give it one: POST /platform/v1/applications/{clientId}/secrets",
            "SELECT client_id FROM applications a WHERE deleted_at IS NULL
               AND NOT EXISTS (SELECT 1 FROM application_secrets s WHERE s.client_id = a.client_id)",
        ),
        invariant(
            "webhook-secrets",
            "Each webhook of an application has a secret that signs.",
            "Give it one, which the receiver needs too, and let it sign: POST \
             /platform/v1/applications/{clientId}/webhook/secrets and POST \
             /platform/v1/applications/{clientId}/webhook/secrets/{secretId}/activate",
            &format!(
                "SELECT w.client_id FROM webhooks w WHERE w.client_id IS NOT NULL AND NOT EXISTS (
                     SELECT 1 FROM webhook_secrets s WHERE s.webhook_id = w.webhook_id AND s.signs_from <= {now}
                       AND (s.forget_at IS NULL OR s.forget_at > {now}))",
                now = now.as_millis()
            ),
        ),
        invariant(
            "expired-tokens",
            "Expired access tokens are swept within minutes.",
            "Start a node with the role jobs, and look for failures of its sweep in the log",
            &format!(
                "SELECT DISTINCT client_id FROM access_tokens WHERE expires_at < {}",
                overdue - SWEPT_WITHIN_MS
            ),
        ),
    ]
}

/// Time of a sweep over many rows, in milliseconds.
const SWEPT_WITHIN_MS: i64 = 24 * 60 * 60 * 1_000;

fn sessions(overdue: i64, listed: i64) -> Vec<Invariant> {
    vec![
        invariant(
            "session-nodes",
            "Each connected session is on a node that lives.",
            "Start a node: nodes end the sessions of dead nodes within 20 seconds",
            &format!(
                "SELECT session_key FROM sessions s WHERE disconnected_at IS NULL
                   AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.node_id = s.node_id AND n.seen_at > {overdue})"
            ),
        ),
        invariant(
            "session-limits",
            "No owner has more connected sessions than the limit.",
            "End the surplus: DELETE /platform/v1/sessions/{sessionKey}",
            &format!(
                "SELECT counted_as FROM (
                     SELECT counted_as, MAX(channel_id) AS channel_id, COUNT(*) AS connected
                     FROM sessions WHERE disconnected_at IS NULL GROUP BY counted_as
                 ) c WHERE connected > CASE WHEN channel_id IS NULL
                     THEN {CLIENT_SESSIONS_MAX} ELSE {USER_SESSIONS_MAX} END"
            ),
        ),
        invariant(
            "session-ordinals",
            "The sessions of each list that connected within 90 days are numbered without gaps.",
            "Pages of the list skip or repeat sessions until they are 90 days old: report this as a bug",
            &format!(
                "SELECT l.client_id || ' ' || l.user_id FROM (
                     SELECT client_id, COALESCE(channel_id, '') AS user_id, MIN(ordinal) AS first, MAX(ordinal) AS last
                     FROM sessions WHERE connected_at > {listed} GROUP BY client_id, COALESCE(channel_id, '')
                 ) l WHERE l.last - l.first + 1 <> (
                     SELECT COUNT(DISTINCT s.ordinal) FROM sessions s
                     WHERE s.client_id = l.client_id AND COALESCE(s.channel_id, '') = l.user_id
                       AND s.ordinal >= l.first)"
            ),
        ),
        invariant(
            "session-rows",
            "Each subscription belongs to a session.",
            "Nothing receives it: report this as a bug, with the session's key",
            "SELECT DISTINCT session_key FROM session_subscriptions b
             WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session_key = b.session_key)",
        ),
        invariant(
            "subscription-limits",
            "No session has more subscriptions than the limit.",
            "End the session: DELETE /platform/v1/sessions/{sessionKey}",
            &format!(
                "SELECT session_key FROM session_subscriptions GROUP BY session_key
                 HAVING COUNT(*) > {SUBSCRIPTIONS_PER_SESSION_MAX}"
            ),
        ),
        invariant(
            "subscription-consents",
            "Each subscription of a connected session has the consent of its channel.",
            "End the session: DELETE /platform/v1/sessions/{sessionKey}",
            "SELECT b.session_key FROM session_subscriptions b
             JOIN sessions s ON s.session_key = b.session_key AND s.disconnected_at IS NULL
             WHERE NOT EXISTS (
                 SELECT 1 FROM consents c WHERE c.client_id = b.client_id AND c.channel_id = b.channel_id)",
        ),
    ]
}

/// Deletes the recorded attempts of messages that do not exist. SQLite's own program does not look at foreign
/// keys, so a mend that deletes messages says this too.
const DELETE_ATTEMPTS: &str = "DELETE FROM webhook_attempts WHERE NOT EXISTS (SELECT 1 FROM webhook_deliveries d \
    WHERE d.webhook_id = webhook_attempts.webhook_id AND d.message_id = webhook_attempts.message_id)";

fn drops(now: Timestamp) -> Vec<Invariant> {
    vec![
        invariant(
            "claim-states",
            "The state of each claim is that of its last change.",
            "Set the other state, and then the right one, as its application: PUT /open/v1/drops/reward-claims",
            "SELECT c.claim_id FROM reward_claims c
             WHERE EXISTS (SELECT 1 FROM claim_changes h WHERE h.claim_id = c.claim_id)
               AND NOT EXISTS (
                 SELECT 1 FROM claim_changes h
                 WHERE h.claim_id = c.claim_id AND h.to_state = c.fulfillment_state
                   AND h.changed_at = (SELECT MAX(m.changed_at) FROM claim_changes m WHERE m.claim_id = c.claim_id))",
        ),
        invariant(
            "delivery-claims",
            "Each message to a webhook is about a claim that exists.",
            &format!(
                "Stop the service, then run: DELETE FROM webhook_deliveries WHERE claim_id <> '' AND NOT EXISTS (SELECT \
                 1 FROM reward_claims c WHERE c.claim_id = webhook_deliveries.claim_id); {DELETE_ATTEMPTS}"
            ),
            "SELECT d.message_id FROM webhook_deliveries d WHERE d.claim_id <> ''
               AND NOT EXISTS (SELECT 1 FROM reward_claims c WHERE c.claim_id = d.claim_id)",
        ),
        claim_messages(now),
        invariant(
            "attempt-messages",
            "Each recorded attempt belongs to a message.",
            &format!(
                "If claim-messages is broken too, mend that first: it makes the messages again. Then stop the service, \
                 and run: {DELETE_ATTEMPTS}"
            ),
            "SELECT DISTINCT message_id FROM webhook_attempts a WHERE NOT EXISTS (
                 SELECT 1 FROM webhook_deliveries d
                 WHERE d.webhook_id = a.webhook_id AND d.message_id = a.message_id)",
        ),
        invariant(
            "delivery-attempts",
            "No message has more recorded attempts than it counts.",
            "Stop the service, then run: UPDATE webhook_deliveries SET attempts = (SELECT MAX(a.number) FROM \
             webhook_attempts a WHERE a.webhook_id = webhook_deliveries.webhook_id AND a.message_id = \
             webhook_deliveries.message_id) WHERE attempts < (SELECT MAX(a.number) FROM webhook_attempts a WHERE \
             a.webhook_id = webhook_deliveries.webhook_id AND a.message_id = webhook_deliveries.message_id)",
            "SELECT d.message_id FROM webhook_deliveries d WHERE d.attempts <
                 (SELECT MAX(a.number) FROM webhook_attempts a
                  WHERE a.webhook_id = d.webhook_id AND a.message_id = d.message_id)",
        ),
    ]
}

/// What decides whether an application receives claims changes by these actions. The audit log has them for
/// longer than the messages are kept.
const RIGHTS_CHANGED_BY: [AuditAction; 11] = [
    AuditAction::OrganizationPut,
    AuditAction::OrganizationVerify,
    AuditAction::OrganizationDisable,
    AuditAction::OrganizationEnable,
    AuditAction::ApplicationPut,
    AuditAction::ApplicationDelete,
    AuditAction::ApplicationDisable,
    AuditAction::ApplicationEnable,
    AuditAction::ApplicationRestore,
    AuditAction::ApplicationScopes,
    AuditAction::ReviewDecide,
];

/// A webhook that receives claims is owed a message for each claim since it was made, and since its
/// application may receive them without a change.
fn claim_messages(now: Timestamp) -> Invariant {
    // Every retention keeps a message for this time at least.
    let kept = now.plus_ms(-WEBHOOK_DELIVERIES_KEPT_MS);
    let window = format!(r#"{{"state":"MISSING","from":"{}","to":"{}"}}"#, kept.rfc3339(), now.rfc3339());
    let actions = RIGHTS_CHANGED_BY.map(|action| format!("'{}'", action.name())).join(", ");
    invariant(
        "claim-messages",
        "Each claim of 30 days has a message for each webhook that was to receive it.",
        &format!("Write and send them: POST /platform/v1/applications/{{clientId}}/webhook/resend {window}"),
        &format!(
            "SELECT c.claim_id || ' to ' || r.client_id FROM (
                 SELECT w.webhook_id, w.client_id, w.created_at, a.organization_id, COALESCE((
                     SELECT MAX(l.created_at) FROM audit_log l
                     WHERE l.subject_id IN (a.client_id, a.organization_id) AND l.action IN ({actions})), 0) AS changed_at
                 FROM webhooks w JOIN applications a ON a.client_id = w.client_id
                 JOIN organizations o ON o.organization_id = a.organization_id
                 WHERE a.deleted_at IS NULL AND a.disabled_at IS NULL AND a.purging = FALSE AND o.verified
                   AND o.disabled_at IS NULL AND (a.scopes & {drops}) <> 0
             ) r JOIN reward_claims c ON c.organization_id = r.organization_id
             WHERE c.claimed_at > r.created_at AND c.claimed_at > r.changed_at AND c.claimed_at > {kept}
               AND NOT EXISTS (
                 SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = r.webhook_id AND d.claim_id = c.claim_id)",
            kept = kept.as_millis(),
            drops = [Scope::Drops].into_iter().collect::<ScopeSet>().to_stored()
        ),
    )
}

fn lives() -> Vec<Invariant> {
    vec![invariant(
        "live-ranks",
        "Each live has one current place in the list of lives.",
        "End the live and report it again: DELETE and PUT /platform/v1/channels/{channelId}/live",
        "SELECT l.channel_id FROM lives l WHERE 1 <>
             (SELECT COUNT(*) FROM live_spans s WHERE s.live_id = l.live_id AND s.closed_at IS NULL)",
    )]
}

fn events(overdue: i64) -> Vec<Invariant> {
    vec![invariant(
        "event-outbox",
        "Committed events are published, or their sessions are closed, within seconds.",
        "Start a node: nodes take over what a dead node has left",
        &format!("SELECT batch_id FROM event_outbox WHERE created_at < {overdue} AND taken_over_at IS NULL"),
    )]
}

//! Messages to webhooks: the outbox that claims write, the leases of its messages, and the results of
//! attempts (`docs/adr/0014-webhooks-leave-from-an-outbox.md`).
//!
//! A lease moves `due_at` of a message to the end of the lease and raises `attempts`. A result counts only
//! for the latest lease, once. So one node at a time sends a message, and another node sends the message if
//! the first one died.

use domain::delivery::DeliveryState;
use domain::outbound::SendFailure;
use domain::{ClaimId, ClientId, DeliveryId, Timestamp, WebhookId};

use super::webhooks::{drops_bit, may_receive};
use crate::queries::columns::{Select, columns, sql};
use crate::queries::sql::{HUNDRED_IDS, padded};
use crate::{StoreError, Tx, params};

/// A message that was lost and is written again may have recorded attempts. The next one follows them.
const INSERT_DELIVERY: &str = "
    INSERT INTO webhook_deliveries
        (webhook_id, message_id, claim_id, data, state, due_at, failures, created_at, changed_at, attempts)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $6, $6, COALESCE((
        SELECT MAX(a.number) FROM webhook_attempts a WHERE a.webhook_id = $1 AND a.message_id = $2), 0))";

/// Finds the webhooks with waiting messages one after the other, and reads the first message of each. The
/// cost depends on the number of these webhooks, not of their messages. Subqueries, because a join or EXISTS
/// may be planned as a scan of all messages. The order is that of the index of waiting messages, because the
/// engine may choose another index otherwise.
const WEBHOOKS_DUE: &str = sql!(
    "
    WITH RECURSIVE waiting (webhook_id) AS (
        SELECT (SELECT d.webhook_id FROM webhook_deliveries d WHERE d.state = 'WAITING' AND d.webhook_id > $3
            ORDER BY d.webhook_id, d.due_at, d.message_id LIMIT 1)
        UNION ALL
        SELECT (SELECT d.webhook_id FROM webhook_deliveries d
            WHERE d.state = 'WAITING' AND d.webhook_id > w.webhook_id
            ORDER BY d.webhook_id, d.due_at, d.message_id LIMIT 1)
        FROM waiting w WHERE w.webhook_id IS NOT NULL
    )
    SELECT w.webhook_id FROM waiting JOIN webhooks w ON w.webhook_id = waiting.webhook_id
    JOIN applications a ON a.client_id = w.client_id
    JOIN organizations o ON o.organization_id = a.organization_id
    WHERE w.enabled AND w.url IS NOT NULL AND ",
    may_receive!(),
    " AND (SELECT MIN(d.due_at) FROM webhook_deliveries d
        WHERE d.webhook_id = w.webhook_id AND d.state = 'WAITING') <= $2
    ORDER BY w.webhook_id LIMIT $4"
);

const DUE_DELIVERIES: &str = sql!(
    "SELECT ",
    DueDelivery::COLUMNS,
    " FROM webhook_deliveries
    WHERE webhook_id = $1 AND state = 'WAITING' AND due_at <= $2 ORDER BY due_at, message_id LIMIT $3"
);

/// Transactions that lease messages of the same webhook wait here for each other.
const LOCK_WEBHOOK: &str = "UPDATE webhooks SET enabled = enabled WHERE webhook_id = $1";

const TARGET: &str = sql!(
    "SELECT ",
    DeliveryTarget::COLUMNS,
    "
    FROM webhooks w JOIN applications a ON a.client_id = w.client_id
    JOIN organizations o ON o.organization_id = a.organization_id
    WHERE w.webhook_id = $2 AND w.enabled AND ",
    may_receive!()
);

const DUE: &str = "
    SELECT message_id FROM webhook_deliveries WHERE webhook_id = $1 AND state = 'WAITING' AND due_at <= $2
    ORDER BY due_at, message_id LIMIT $3";

/// CASE, so that no engine reads everything that is due. For the same reason the ids come from a statement of
/// their own: the plan of a subquery with LIMIT depends on the engine's statistics.
const LEASE: &str = sql!(
    "
    UPDATE webhook_deliveries SET due_at = $103, attempts = attempts + 1, in_flight = TRUE
    WHERE webhook_id = $101 AND CASE WHEN state = 'WAITING' THEN due_at <= $102 ELSE FALSE END AND message_id IN ",
    HUNDRED_IDS,
    " RETURNING ",
    LeasedDelivery::COLUMNS
);

const RECORD: &str = "
    UPDATE webhook_deliveries SET state = $5, due_at = $6, in_flight = FALSE, failures = failures + $7,
        changed_at = CASE WHEN CAST($5 AS TEXT) = 'WAITING' THEN changed_at ELSE $8 END
    WHERE webhook_id = $1 AND message_id = $2 AND attempts = $3 AND in_flight AND failures = $4";

const FAILURES_IN_FLIGHT: &str = "
    SELECT failures FROM webhook_deliveries
    WHERE webhook_id = $1 AND message_id = $2 AND attempts = $3 AND in_flight";

const INSERT_ATTEMPT: &str = "
    INSERT INTO webhook_attempts
        (webhook_id, message_id, number, began_at, duration_ms, status, failure, excerpt, signed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

macro_rules! deliveries {
    ($condition:literal) => {
        sql!("SELECT ", Delivery::COLUMNS, " FROM webhook_deliveries WHERE webhook_id = $1 AND ", $condition)
    };
}

const DELIVERY: &str = deliveries!("message_id = $2");
const DELIVERIES: &str =
    deliveries!("message_id >= $2 AND message_id < $3 ORDER BY message_id DESC LIMIT $4");
/// State and id are compared together as in the index. Compared separately, the engine may scan all states by
/// id.
const DELIVERIES_IN_STATE: &str = deliveries!(
    "(state, message_id) >= ($5, $2) AND (state, message_id) < ($5, $3)
    ORDER BY state DESC, message_id DESC LIMIT $4"
);

/// The literal lets the engines use the index of test messages.
const TEST_DELIVERIES: &str =
    deliveries!("claim_id = '' AND message_id >= $2 AND message_id < $3 ORDER BY message_id DESC LIMIT $4");

const COUNT_TESTS: &str = "
    SELECT COUNT(*) FROM webhook_deliveries WHERE webhook_id = $1 AND claim_id = '' AND message_id >= $2";

const ATTEMPTS: &str = sql!(
    "SELECT ",
    AttemptRecord::COLUMNS,
    " FROM webhook_attempts
    WHERE webhook_id = $1 AND message_id = $2 ORDER BY number DESC LIMIT $3"
);

/// A leased message stays leased until the lease ends, so that no message is sent twice at the same time. The
/// list of ids may repeat an id.
const RESEND: &str = sql!(
    "
    UPDATE webhook_deliveries SET state = 'WAITING', failures = 0, changed_at = $102,
        due_at = CASE WHEN in_flight AND due_at > $102 THEN due_at ELSE $102 END,
        in_flight = (in_flight AND due_at > $102)
    WHERE webhook_id = $101 AND CASE WHEN CAST($103 AS TEXT) IS NULL THEN TRUE ELSE state = $103 END
        AND message_id IN ",
    HUNDRED_IDS
);

const CLAIMS_WITH_MESSAGES: &str =
    "SELECT claim_id FROM webhook_deliveries WHERE webhook_id = $1 AND message_id >= $2 AND message_id < $3";

const IN_SPAN: &str = "
    SELECT message_id FROM webhook_deliveries
    WHERE webhook_id = $1 AND (state, message_id) >= ($2, $3) AND (state, message_id) < ($2, $4)
    ORDER BY state, message_id LIMIT $5";

/// The most messages that one statement leases or resends: the number of its id parameters.
pub const MESSAGES_AT_ONCE: i64 = 100;

/// A new message.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    /// Its webhook.
    pub webhook_id: WebhookId,
    /// Its id.
    pub message_id: DeliveryId,
    /// The claim that it reports; `None` for a test message.
    pub claim_id: Option<ClaimId>,
    /// Its data, as JSON.
    pub data: String,
    /// Failed attempts that it begins with. So many fewer follow.
    pub failures: i64,
    /// Whether it waits to be sent. Otherwise it is a dead letter from the beginning.
    pub waiting: bool,
}

/// The receiver of a webhook's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTarget {
    /// The application.
    pub client_id: ClientId,
    /// The address; `None` if a listener fetches the messages.
    pub url: Option<String>,
}

columns!(DeliveryTarget { client_id: "w.client_id", url: "w.url" });

/// A leased message, to be sent before the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedDelivery {
    /// Its id.
    pub message_id: DeliveryId,
    /// The claim that it reports; `None` for a test message.
    pub claim_id: Option<ClaimId>,
    /// The number of this lease of the message, from 1 on.
    pub number: i64,
    /// Failed attempts since the message was written or last resent.
    pub failures: i64,
    /// Its data, as JSON.
    pub data: String,
}

columns!(LeasedDelivery {
    message_id: "message_id",
    claim_id: "claim_id" => claim_of,
    number: "attempts",
    failures: "failures",
    data: "data",
});

/// A message that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// Its id.
    pub message_id: DeliveryId,
    /// How often the message was leased.
    pub number: i64,
    /// Whether the latest lease ended without a result.
    pub in_flight: bool,
    /// Since when it is due.
    pub due_at: Timestamp,
}

columns!(DueDelivery {
    message_id: "message_id",
    number: "attempts",
    in_flight: "in_flight",
    due_at: "due_at",
});

/// A lease of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseKey {
    /// Its webhook.
    pub webhook_id: WebhookId,
    /// The message.
    pub message_id: DeliveryId,
    /// The number of the lease.
    pub number: i64,
}

/// The result of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The new state.
    pub state: DeliveryState,
    /// When it is due again, if it is waiting.
    pub due_at: Timestamp,
    /// The failed attempts before this one, on which the decision is based.
    pub failures: i64,
    /// Whether this attempt failed.
    pub failed: bool,
}

/// The result of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The number of the lease in which it was made.
    pub number: i64,
    /// When it began.
    pub began_at: Timestamp,
    /// How long it took.
    pub duration_ms: i64,
    /// What the receiver answered.
    pub status: Option<u16>,
    /// Why there was no answer.
    pub failure: Option<SendFailure>,
    /// The beginning of the answer.
    pub excerpt: String,
    /// The time in its headers and its body; `None` if that is not known.
    pub signed_at: Option<Timestamp>,
}

columns!(AttemptRecord {
    number: "number",
    began_at: "began_at",
    duration_ms: "duration_ms",
    status: "status" => |status: Option<i64>| status.and_then(|status| status.try_into().ok()),
    failure: "failure",
    excerpt: "excerpt",
    signed_at: "signed_at",
});

/// A message to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub message_id: DeliveryId,
    /// The claim that it reports; `None` for a test message.
    pub claim_id: Option<ClaimId>,
    /// Its data, as JSON.
    pub data: String,
    /// Its state.
    pub state: DeliveryState,
    /// When a waiting message is due. While it is in flight, the end of its lease.
    pub due_at: Timestamp,
    /// Whether it is being sent.
    pub in_flight: bool,
    /// How often the message was leased.
    pub attempts: i64,
    /// Failed attempts since the message was written or last resent.
    pub failures: i64,
    /// When it was written.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub changed_at: Timestamp,
}

columns!(Delivery {
    message_id: "message_id",
    claim_id: "claim_id" => claim_of,
    data: "data",
    state: "state",
    due_at: "due_at",
    in_flight: "in_flight",
    attempts: "attempts",
    failures: "failures",
    created_at: "created_at",
    changed_at: "changed_at",
});

/// The claim of a message. That of a test message is stored as an empty text.
fn claim_of(stored: ClaimId) -> Option<ClaimId> {
    Some(stored).filter(|claim| !claim.as_str().is_empty())
}

/// The stored text of the claim of a message.
pub(in crate::queries) fn stored_claim(claim: Option<&ClaimId>) -> &str {
    claim.map_or("", ClaimId::as_str)
}

/// Messages of a webhook that were written in a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliverySpan {
    /// From this id on.
    pub from: DeliveryId,
    /// Below this id.
    pub below: DeliveryId,
}

impl DeliverySpan {
    /// The span between two times. A missing time is no bound.
    pub fn of(from: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        let bound = DeliveryId::bound_at;
        Self { from: bound(from.unwrap_or_default()), below: bound(until.unwrap_or(Timestamp::LAST)) }
    }
}

impl Tx {
    /// Writes a message into the outbox.
    pub async fn insert_delivery(&mut self, new: &NewDelivery, now: Timestamp) -> Result<(), StoreError> {
        let NewDelivery { webhook_id, message_id, claim_id, data, failures, waiting } = new;
        let state = if *waiting { DeliveryState::Waiting } else { DeliveryState::Dead };
        let claim_id = stored_claim(claim_id.as_ref());
        let values = params![webhook_id, message_id, claim_id, data, state.name(), now, *failures];
        self.execute(INSERT_DELIVERY, values).await?;
        Ok(())
    }

    /// Up to `limit` webhooks with an address and due messages, after `after` in the order of their ids.
    pub async fn webhooks_due(
        &mut self,
        now: Timestamp,
        after: Option<&WebhookId>,
        limit: i64,
    ) -> Result<Vec<WebhookId>, StoreError> {
        let after = after.map_or("", WebhookId::as_str);
        self.fetch_all(WEBHOOKS_DUE, params![drops_bit(), now, after, limit]).await
    }

    /// Up to `limit` messages of a webhook that are due, the longest due first.
    pub async fn due_deliveries(
        &mut self,
        webhook_id: &WebhookId,
        now: Timestamp,
        limit: i64,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        self.fetch_all(DUE_DELIVERIES, params![webhook_id, now, limit]).await
    }

    /// Locks the leasing of a webhook's messages for the rest of the transaction.
    pub async fn lock_webhook(&mut self, webhook_id: &WebhookId) -> Result<(), StoreError> {
        if !self.writes_alone() {
            self.execute(LOCK_WEBHOOK, params![webhook_id]).await?;
        }
        Ok(())
    }

    /// The receiver of a webhook's messages; `None` while they are on hold, because the webhook or its
    /// application is disabled, deleted or gets no claims.
    pub async fn delivery_target(
        &mut self,
        webhook_id: &WebhookId,
    ) -> Result<Option<DeliveryTarget>, StoreError> {
        self.fetch_optional(TARGET, params![drops_bit(), webhook_id]).await
    }

    /// Leases up to `limit` messages that are due, at most [`MESSAGES_AT_ONCE`], in the order of their due
    /// times.
    pub async fn lease_deliveries(
        &mut self,
        webhook_id: &WebhookId,
        now: Timestamp,
        leased_until: Timestamp,
        limit: i64,
    ) -> Result<Vec<LeasedDelivery>, StoreError> {
        let limit = limit.min(MESSAGES_AT_ONCE);
        let due: Vec<DeliveryId> = self.fetch_all(DUE, params![webhook_id, now, limit]).await?;
        let Some(mut values) = padded(&due) else { return Ok(Vec::new()) };
        values.extend([webhook_id.into(), now.into(), leased_until.into()]);
        self.fetch_all(LEASE, &values).await
    }

    /// Records the result of a lease, once: `false` if a later lease exists, a result was recorded, or the
    /// message was resent meanwhile.
    pub async fn record_delivery(
        &mut self,
        key: &LeaseKey,
        recorded: Recorded,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let LeaseKey { webhook_id, message_id, number } = key;
        let Recorded { state, due_at, failures, failed } = recorded;
        let values =
            params![webhook_id, message_id, *number, failures, state.name(), due_at, i64::from(failed), now];
        Ok(self.execute(RECORD, values).await? > 0)
    }

    /// Failed attempts of a message since it was written or last resent: `None` unless this lease is the
    /// latest and has no result.
    pub async fn failures_in_flight(&mut self, key: &LeaseKey) -> Result<Option<i64>, StoreError> {
        let LeaseKey { webhook_id, message_id, number } = key;
        self.fetch_optional(FAILURES_IN_FLIGHT, params![webhook_id, message_id, *number]).await
    }

    /// Records the result of an attempt.
    pub async fn insert_attempt(
        &mut self,
        webhook_id: &WebhookId,
        message_id: &DeliveryId,
        attempt: &AttemptRecord,
    ) -> Result<(), StoreError> {
        let AttemptRecord { number, began_at, duration_ms, status, failure, excerpt, signed_at } = attempt;
        let (status, failure) = (status.map(i64::from), failure.map(SendFailure::name));
        let values = params![
            webhook_id,
            message_id,
            *number,
            *began_at,
            *duration_ms,
            status,
            failure,
            excerpt,
            *signed_at
        ];
        self.execute(INSERT_ATTEMPT, values).await?;
        Ok(())
    }

    /// One message of a webhook.
    pub async fn delivery(
        &mut self,
        webhook_id: &WebhookId,
        message_id: &DeliveryId,
    ) -> Result<Option<Delivery>, StoreError> {
        self.fetch_optional(DELIVERY, params![webhook_id, message_id]).await
    }

    /// Up to `limit` messages of a webhook within a span, newest first.
    pub async fn deliveries(
        &mut self,
        webhook_id: &WebhookId,
        state: Option<DeliveryState>,
        span: &DeliverySpan,
        limit: i64,
    ) -> Result<Vec<Delivery>, StoreError> {
        let DeliverySpan { from, below } = span;
        match state {
            None => self.fetch_all(DELIVERIES, params![webhook_id, from, below, limit]).await,
            Some(state) => {
                let values = params![webhook_id, from, below, limit, state.name()];
                self.fetch_all(DELIVERIES_IN_STATE, values).await
            }
        }
    }

    /// Up to `limit` test messages of a webhook within a span, newest first.
    pub async fn test_deliveries(
        &mut self,
        webhook_id: &WebhookId,
        span: &DeliverySpan,
        limit: i64,
    ) -> Result<Vec<Delivery>, StoreError> {
        let DeliverySpan { from, below } = span;
        self.fetch_all(TEST_DELIVERIES, params![webhook_id, from, below, limit]).await
    }

    /// How many test messages of a webhook were written at `since` or later.
    pub async fn count_test_deliveries(
        &mut self,
        webhook_id: &WebhookId,
        since: Timestamp,
    ) -> Result<i64, StoreError> {
        let from = DeliveryId::bound_at(since);
        Ok(self.fetch_optional(COUNT_TESTS, params![webhook_id, &from]).await?.unwrap_or(0))
    }

    /// The last attempts of a message whose result is known, newest first.
    pub async fn attempts(
        &mut self,
        webhook_id: &WebhookId,
        message_id: &DeliveryId,
        limit: i64,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        self.fetch_all(ATTEMPTS, params![webhook_id, message_id, limit]).await
    }

    /// Resends a message in any state, with the whole schedule of attempts: `false` if there is none. A
    /// message in flight stays in flight.
    pub async fn resend_delivery(
        &mut self,
        webhook_id: &WebhookId,
        message_id: &DeliveryId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.resend(webhook_id, std::slice::from_ref(message_id), None, now).await? > 0)
    }

    /// The claims of the messages to a webhook within a span.
    pub async fn claims_with_messages(
        &mut self,
        webhook_id: &WebhookId,
        span: &DeliverySpan,
    ) -> Result<Vec<ClaimId>, StoreError> {
        self.fetch_all(CLAIMS_WITH_MESSAGES, params![webhook_id, &span.from, &span.below]).await
    }

    /// [`resend_delivery`](Self::resend_delivery) for the oldest messages within a span that are in a state,
    /// up to `limit` and at the most 100. Gives how many.
    pub async fn resend_deliveries(
        &mut self,
        webhook_id: &WebhookId,
        state: DeliveryState,
        span: &DeliverySpan,
        now: Timestamp,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let limit = limit.min(MESSAGES_AT_ONCE);
        let values = params![webhook_id, state.name(), &span.from, &span.below, limit];
        let ids: Vec<DeliveryId> = self.fetch_all(IN_SPAN, values).await?;
        self.resend(webhook_id, &ids, Some(state), now).await
    }

    async fn resend(
        &mut self,
        webhook_id: &WebhookId,
        ids: &[DeliveryId],
        in_state: Option<DeliveryState>,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let Some(mut values) = padded(ids) else { return Ok(0) };
        values.extend([webhook_id.into(), now.into(), in_state.map(DeliveryState::name).into()]);
        self.execute(RESEND, &values).await
    }
}

//! The endpoints of a developer's listener (`stagedoor webhook listen`).

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use domain::delivery::DeliveryState;
use domain::limits::{
    BODY_BYTES_MAX, LISTENER_ATTEMPTS_MAX, LISTENER_DURATION_MAX_MS, LISTENER_WAIT_MAX_S,
    WEBHOOK_EXCERPT_CHARS_MAX,
};
use domain::outbound::SendFailure;
use domain::{DeliveryId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use service::deliveries::Attempt;
use service::listeners::{ListenerReport, ReceiverResponse, StateAfterAttempt};

use crate::Web;
use crate::caller::DropsClient;
use crate::contract::Summary;
use crate::envelope::{Answer, Data, Success};
use crate::input::union::either;
use crate::input::values::{chars, integer, name};
use crate::input::{Body, Form, Json, JsonForm, optional, record, required, with_default};
use crate::path::PathId;

/// Maximum length of a `Retry-After` that is read, in characters.
const RETRY_AFTER_CHARS_MAX: usize = 64;
const FAILURES: [&str; SendFailure::ALL.len()] = {
    let mut names = [""; SendFailure::ALL.len()];
    let mut n = 0;
    while n < names.len() {
        names[n] = SendFailure::ALL[n].name();
        n += 1;
    }
    names
};

/// A webhook whose messages a listener fetches.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listening {
    /// What its messages are signed with, when the webhook was made by this call; it is never shown again.
    /// `null` where there was one.
    secret: Option<String>,
    /// When the webhook was made: RFC 3339, UTC.
    created_date: String,
}

pub(crate) const BEGIN: Summary =
    Summary::new("beginListening", "Have a listener fetch the messages to the webhook", "웹훅 리스너 시작")
        .refuses(&[400, 404]);

/// `POST /open/v1/drops/webhook/listener`, client mode with the drops scope: creates a webhook without
/// address, if the application has no webhook.
pub async fn begin(DropsClient(publisher): DropsClient, State(web): State<Web>) -> Answer<Listening> {
    let (details, secret) = web.service().begin_listening(&publisher.client_id).await?;
    let secret = secret.map(|secret| secret.expose().to_owned());
    Ok(Success(Listening { secret, created_date: details.webhook.created_at.rfc3339() }))
}

/// How many messages a listener wants, and how long it waits for the first.
#[derive(Debug)]
pub struct FetchAttempts {
    limit: i64,
    wait: Duration,
}

impl Body for FetchAttempts {
    fn form() -> impl JsonForm<Out = Self> {
        let wait = integer(0, LISTENER_WAIT_MAX_S).about("How long to wait while there is none.");
        record!(Self {
            wait: required("waitSeconds", wait).map(|seconds| Duration::from_secs(seconds.unsigned_abs())),
            limit: with_default("size", integer(1, LISTENER_ATTEMPTS_MAX), LISTENER_ATTEMPTS_MAX),
        })
    }
}

/// An attempt that is the listener's to make.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListenerAttempt {
    /// The message: the same in every attempt.
    message_id: DeliveryId,
    /// Which attempt this is, from 1 on.
    number: i64,
    /// The kind of event: `drop_reward_claim`, or `webhook_test` for a test message.
    event_type: &'static str,
    /// The headers that say what it is, with the signature.
    headers: BTreeMap<String, String>,
    /// The body: its UTF-8 bytes are what was signed.
    body: String,
}

impl From<Attempt> for ListenerAttempt {
    fn from(attempt: Attempt) -> Self {
        let event_type = attempt.kind().name();
        Self {
            message_id: attempt.key.message_id,
            number: attempt.key.number,
            event_type,
            headers: attempt.headers.into_iter().collect(),
            // The service wrote the body as JSON.
            body: String::from_utf8(attempt.body).unwrap_or_default(),
        }
    }
}

pub(crate) const FETCH: Summary = Summary::new(
    "fetchListenerAttempts",
    "Attempts for the listener to make, waited for",
    "웹훅 리스너 전송 조회",
)
.refuses(&[404]);

/// `POST /open/v1/drops/webhook/listener/attempts`, client mode with the drops scope: returns attempts to
/// make within 15 seconds. Waits until there is one.
pub async fn fetch(
    DropsClient(publisher): DropsClient,
    State(web): State<Web>,
    Json(body): Json<FetchAttempts>,
) -> Answer<Data<ListenerAttempt>> {
    let FetchAttempts { limit, wait } = body;
    let attempts = web.service().attempts_for_listener(&publisher.client_id, limit, wait).await?;
    Ok(Success(Data { data: attempts.into_iter().map(ListenerAttempt::from).collect() }))
}

/// What came of an attempt.
#[derive(Debug)]
pub struct ReportAttempt {
    number: i64,
    response: ReceiverResponse,
    duration_ms: i64,
    answer: String,
}

impl Body for ReportAttempt {
    fn form() -> impl JsonForm<Out = Self> {
        let retry_after = |text: &str| {
            domain::invalid::text("retryAfter", text, 0, RETRY_AFTER_CHARS_MAX)?;
            Ok(text.to_owned())
        };
        let header = chars(0, RETRY_AFTER_CHARS_MAX).about("The header of the answer.").parsed(retry_after);
        let status = integer(100, 999).about("There was an answer.");
        let failure = name(&FAILURES).about("There was none.");
        let excerpt = chars(0, BODY_BYTES_MAX)
            .with(|kind| kind.about(&format!("Its first {WEBHOOK_EXCERPT_CHARS_MAX} characters are kept.")));
        let outcome = either(
            // An integer of three digits fits.
            required("status", status).map(|status| Ok(u16::try_from(status).unwrap_or(u16::MAX))),
            required("failure", failure)
                .map(|name| Err(SendFailure::of_name(name).unwrap_or(SendFailure::Protocol))),
        );
        let response =
            (optional("retryAfter", header), outcome).map(|(retry_after, outcome)| match outcome {
                Ok(status) => ReceiverResponse::Answer(status, retry_after),
                Err(failure) => ReceiverResponse::NoAnswer(failure),
            });
        record!(Self {
            number: required("number", integer(1, i64::from(u32::MAX))),
            response: response,
            duration_ms: required("durationMs", integer(0, LISTENER_DURATION_MAX_MS)),
            answer: optional("answer", excerpt).map(Option::unwrap_or_default),
        })
    }
}

/// What follows an attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptFollowed {
    /// Whether it was recorded. `false`: it came too late, and the message is attempted anew.
    recorded: bool,
    /// Where the message stands; `null` when nothing was recorded.
    #[schemars(extend("enum" = ["WAITING", "DELIVERED", "DEAD", null]))]
    state: Option<&'static str>,
    /// When its next attempt is due: RFC 3339, UTC. `null` when none is.
    next_attempt_date: Option<String>,
}

impl From<Option<StateAfterAttempt>> for AttemptFollowed {
    fn from(followed: Option<StateAfterAttempt>) -> Self {
        Self {
            recorded: followed.is_some(),
            state: followed.map(|followed| DeliveryState::name(followed.state)),
            next_attempt_date: followed.and_then(|followed| followed.next_at).map(Timestamp::rfc3339),
        }
    }
}

pub(crate) const REPORT: Summary = Summary::new(
    "reportListenerAttempt",
    "What came of an attempt of the listener",
    "웹훅 리스너 전송 결과 등록",
)
.refuses(&[404]);

/// `POST /open/v1/drops/webhook/listener/attempts/{messageId}`, client mode with the drops scope: reports the
/// outcome of an attempt.
pub async fn report(
    DropsClient(publisher): DropsClient,
    State(web): State<Web>,
    PathId(id): PathId,
    Json(body): Json<ReportAttempt>,
) -> Answer<AttemptFollowed> {
    let message_id = DeliveryId::parse("messageId", &id)?;
    let ReportAttempt { number, response, duration_ms, answer } = body;
    let report = ListenerReport { message_id, number, response, duration_ms, answer };
    let followed = web.service().report_of_listener(&publisher.client_id, report).await?;
    Ok(Success(followed.into()))
}

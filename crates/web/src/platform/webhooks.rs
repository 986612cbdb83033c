//! Webhooks of applications, their secrets, and the messages sent to them. `docs/webhooks.md` describes the
//! messages.

use axum::extract::{FromRequestParts, State};
use domain::delivery::{DeliveryState, DisabledReason};
use domain::limits::{
    DELIVERY_PAGE_SIZE_DEFAULT, DELIVERY_PAGE_SIZE_MAX, WEBHOOK_SECRET_CHARS_MAX, WEBHOOK_SECRET_CHARS_MIN,
};
use domain::outbound::SendFailure;
use domain::secret::{SecretHash, WebhookSecret};
use domain::webhook_secrets::SecretState;
use domain::{ClaimId, ClientId, DeliveryId, Invalid, Rule, Timestamp, WebhookSecretId};
use http::request::Parts;
use schemars::JsonSchema;
use serde::Serialize;
use service::deliveries::{AttemptRecord, Delivery, DeliveryDetails, DeliveryQuery, MISSING};
use service::webhooks::{WebhookDetails, WebhookSecretDetails};

use crate::Web;
use crate::caller::Operator;
use crate::contract::routes::DescribeInput;
use crate::contract::{Operation, Summary};
use crate::envelope::{Answer, Failure, NOTHING, NextData, Success};
use crate::input::values::{cursor_or_empty, date, flag, integer, name, text, web_address};
use crate::input::{
    Body, Form, Json, JsonForm, OptionalJson, Params, Query, QueryForm, optional, record, required,
    with_default,
};
use crate::path::{PathId, two_ids};
use crate::platform::KeyHeader;

/// The properties of a webhook.
#[derive(Debug)]
pub struct PutWebhook {
    url: Option<String>,
    enabled: Option<bool>,
}

impl Body for PutWebhook {
    fn form() -> impl JsonForm<Out = Self> {
        let url = web_address().about(
            "https to a public address; http, loopback and private ones only where the service allows them. Left out or \
             null: a listener fetches the messages.",
        );
        let enabled = flag().about("Left out: as it is; a new one is enabled.");
        record!(Self { url: optional("url", url), enabled: optional("enabled", enabled) })
    }
}

/// The webhook of an application.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookAnswer {
    /// The application.
    client_id: ClientId,
    /// Where messages go; `null` where a listener fetches them.
    url: Option<String>,
    /// Whether messages are sent. While they are not, those that wait stay, and new ones are dead letters.
    enabled: bool,
    /// Why it is disabled; `null` while it is enabled.
    #[schemars(extend("enum" = or_null(DisabledReason::NAMES)))]
    disabled_reason: Option<&'static str>,
    /// Since when it is disabled.
    disabled_date: Option<String>,
    /// Since when every attempt has failed; `null` when the last one did not. After five days it is disabled.
    failing_since: Option<String>,
    /// Whether its application is told of claims: it needs the scope 드롭스 and a verified organization.
    receives_claims: bool,
    /// When it was made.
    created_date: String,
    /// When its settings last changed.
    updated_date: String,
    /// What its owner was told, newest first: `DISABLED_GONE`, `DISABLED_FAILING`.
    notices: Vec<WebhookNoticeAnswer>,
}

/// What the owner of a webhook was told.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookNoticeAnswer {
    /// What.
    kind: String,
    /// When.
    created_date: String,
}

/// The webhook of an application, with its secret when it is new.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MadeWebhook {
    #[serde(flatten)]
    webhook: WebhookAnswer,
    /// What its messages are signed with, this once: left out when the webhook was there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl WebhookAnswer {
    fn new(client_id: ClientId, WebhookDetails { webhook, notices }: WebhookDetails) -> Self {
        let notice = |notice: service::webhooks::WebhookNotice| WebhookNoticeAnswer {
            kind: notice.kind,
            created_date: notice.given_at.rfc3339(),
        };
        Self {
            client_id,
            url: webhook.url,
            enabled: webhook.disabled.is_none(),
            disabled_reason: webhook.disabled.map(|disabled| disabled.reason.name()),
            disabled_date: webhook.disabled.map(|disabled| disabled.since.rfc3339()),
            failing_since: webhook.failing_since.map(Timestamp::rfc3339),
            receives_claims: webhook.receives,
            created_date: webhook.created_at.rfc3339(),
            updated_date: webhook.changed_at.rfc3339(),
            notices: notices.into_iter().map(notice).collect(),
        }
    }
}

/// The names of an `enum` that may be `null`.
fn or_null(names: &[&'static str]) -> Vec<Option<&'static str>> {
    names.iter().copied().map(Some).chain([None]).collect()
}

pub(crate) const PUT: Summary =
    Summary::new("putWebhook", "Make or replace the webhook of an application", "웹훅 등록").refuses(&[404]);

/// `PUT /platform/v1/applications/{clientId}/webhook`: creates, replaces, enables or disables the webhook of
/// an application. The answer contains `secret` if the webhook is new.
pub async fn put(
    operator: Operator,
    PathId(id): PathId,
    Json(body): Json<PutWebhook>,
) -> Answer<MadeWebhook> {
    let client_id = ClientId::parse("clientId", &id)?;
    let (details, secret) =
        operator.service().put_webhook(&client_id, body.url.as_deref(), body.enabled).await?;
    let secret = secret.map(|secret| secret.expose().to_owned());
    Ok(Success(MadeWebhook { webhook: WebhookAnswer::new(client_id, details), secret }))
}

pub(crate) const SHOW: Summary =
    Summary::new("getWebhook", "The webhook of an application, and what its owner was told", "웹훅 조회")
        .refuses(&[404]);

/// `GET /platform/v1/applications/{clientId}/webhook`: the webhook, and the notices to its owner.
pub async fn show(_: Operator, State(web): State<Web>, PathId(id): PathId) -> Answer<WebhookAnswer> {
    let client_id = ClientId::parse("clientId", &id)?;
    let details = web.service().webhook_details(&client_id).await?;
    Ok(Success(WebhookAnswer::new(client_id, details)))
}

pub(crate) const DELETE: Summary =
    Summary::new("deleteWebhook", "Delete the webhook with its secrets and messages", "웹훅 삭제")
        .refuses(&[404]);

/// `DELETE /platform/v1/applications/{clientId}/webhook`: deletes the webhook with its secrets and its
/// messages.
pub async fn delete(operator: Operator, PathId(id): PathId) -> Answer<()> {
    operator.service().delete_webhook(&ClientId::parse("clientId", &id)?).await?;
    Ok(NOTHING)
}

/// A secret, optionally chosen by the caller.
#[derive(Debug)]
pub struct AddSecret(Option<WebhookSecret>);

impl Body for AddSecret {
    fn form() -> impl JsonForm<Out = Self> {
        let secret = text()
            .with(|kind| {
                let (min, max) = (WEBHOOK_SECRET_CHARS_MIN, WEBHOOK_SECRET_CHARS_MAX);
                kind.pattern(&format!("^[!-~]{{{min},{max}}}$"))
            })
            .about("Left out: a new one of 256 random bits.");
        optional("secret", secret.parsed(WebhookSecret::given)).map(Self)
    }
}

/// A secret of a webhook, without itself.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretAnswer {
    /// Its id.
    secret_id: WebhookSecretId,
    /// `SIGNING`: it signs. `PENDING`: it will. `RETIRING`: it signed before, and can be activated again.
    #[schemars(extend("enum" = SecretState::NAMES))]
    state: &'static str,
    /// From when on it signs, or has signed.
    signs_from: String,
    /// When it goes; `null` unless another one signs by then.
    ends_date: Option<String>,
    /// When it was made.
    created_date: String,
}

impl From<WebhookSecretDetails> for SecretAnswer {
    fn from(details: WebhookSecretDetails) -> Self {
        Self {
            secret_id: details.secret_id,
            state: details.state.name(),
            signs_from: details.signs_from.rfc3339(),
            ends_date: details.forget_at.map(Timestamp::rfc3339),
            created_date: details.created_at.rfc3339(),
        }
    }
}

/// A secret of a webhook that was just made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MadeWebhookSecret {
    #[serde(flatten)]
    details: SecretAnswer,
    /// The secret itself, this once.
    secret: String,
}

/// The secrets of a webhook.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Secrets {
    /// In the order in which they sign.
    data: Vec<SecretAnswer>,
}

impl From<Vec<WebhookSecretDetails>> for Secrets {
    fn from(details: Vec<WebhookSecretDetails>) -> Self {
        Self { data: details.into_iter().map(SecretAnswer::from).collect() }
    }
}

pub(crate) const ADD_SECRET: Summary =
    Summary::new("addWebhookSecret", "Another secret of a webhook", "웹훅 시크릿 추가").refuses(&[404]);

/// `POST /platform/v1/applications/{clientId}/webhook/secrets`: adds a secret, which signs when it is
/// activated, or after a day. Until then the old one signs.
pub async fn add_secret(
    operator: Operator,
    PathId(id): PathId,
    key: KeyHeader,
    OptionalJson(AddSecret(given)): OptionalJson<AddSecret>,
) -> Answer<MadeWebhookSecret> {
    let client_id = ClientId::parse("clientId", &id)?;
    // A key stands for the same secret brought along, however the body was spelled.
    let hash = given.as_ref().map(WebhookSecret::hash);
    let key = key.bind(hash.as_ref().map_or("", SecretHash::as_str))?;
    let (details, secret) = operator.service().add_webhook_secret(&client_id, given, key).await?;
    Ok(Success(MadeWebhookSecret { details: details.into(), secret: secret.expose().to_owned() }))
}

pub(crate) const SECRETS: Summary =
    Summary::new("getWebhookSecrets", "Which secrets a webhook has", "웹훅 시크릿 목록 조회").refuses(&[404]);

/// `GET /platform/v1/applications/{clientId}/webhook/secrets`: which secrets there are, without themselves.
pub async fn secrets(_: Operator, State(web): State<Web>, PathId(id): PathId) -> Answer<Secrets> {
    let client_id = ClientId::parse("clientId", &id)?;
    Ok(Success(web.service().webhook_secrets(&client_id).await?.into()))
}

pub(crate) const ACTIVATE_SECRET: Summary =
    Summary::new("activateWebhookSecret", "Have a secret sign from now on", "웹훅 시크릿 활성화")
        .refuses(&[404]);

/// `POST /platform/v1/applications/{clientId}/webhook/secrets/{secretId}/activate`: it signs from now on; the
/// one before is kept for a day, and can be activated in its turn.
pub async fn activate_secret(operator: Operator, path: SecretPath) -> Answer<Secrets> {
    let SecretPath(client_id, secret_id) = path;
    Ok(Success(operator.service().activate_webhook_secret(&client_id, &secret_id).await?.into()))
}

pub(crate) const DELETE_SECRET: Summary =
    Summary::new("deleteWebhookSecret", "Delete a secret that does not sign", "웹훅 시크릿 삭제")
        .refuses(&[404]);

/// `DELETE /platform/v1/applications/{clientId}/webhook/secrets/{secretId}`: deletes a secret that does not
/// sign.
pub async fn delete_secret(operator: Operator, path: SecretPath) -> Answer<()> {
    let SecretPath(client_id, secret_id) = path;
    operator.service().delete_webhook_secret(&client_id, &secret_id).await?;
    Ok(NOTHING)
}

/// The filter of the message list.
#[derive(Debug)]
pub struct DeliveriesQuery {
    query: DeliveryQuery,
    size: i64,
    cursor: Option<String>,
}

impl Params for DeliveriesQuery {
    fn form() -> impl QueryForm<Out = Self> {
        let size = integer(1, DELIVERY_PAGE_SIZE_MAX);
        record!(Self {
            query: record!(DeliveryQuery {
                state: optional("state", text().one_of(DeliveryState::NAMES).parsed(state)),
                from: optional("from", date().about("Of claims made from then on.")),
                until: optional("to", date().about("Of claims made before then.")),
            }),
            size: with_default("size", size, DELIVERY_PAGE_SIZE_DEFAULT),
            cursor: optional("cursor", cursor_or_empty())
                .map(|cursor| cursor.filter(|cursor| !cursor.is_empty())),
        })
    }
}

fn state(name: &str) -> Result<DeliveryState, Invalid> {
    DeliveryState::from_name(name).ok_or(Invalid::new("state", Rule::OneOf(DeliveryState::NAMES)))
}

/// A message to a webhook.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryAnswer {
    /// Its id, the same in every attempt.
    message_id: DeliveryId,
    /// The claim that the message is about; `null` for a test message.
    claim_id: Option<ClaimId>,
    /// `WAITING`: it is sent now or later. `DELIVERED`: a 2xx answered. `DEAD`: it was given up.
    #[schemars(extend("enum" = DeliveryState::NAMES))]
    state: &'static str,
    /// Whether it is being sent right now.
    in_flight: bool,
    /// When the next attempt is due; `null` unless one is.
    next_attempt_date: Option<String>,
    /// How often it was sent, or begun to be.
    attempt_count: i64,
    /// When it was written: with the claim.
    created_date: String,
    /// Since when it is in its state.
    updated_date: String,
}

impl From<Delivery> for DeliveryAnswer {
    fn from(delivery: Delivery) -> Self {
        let is_due = delivery.state == DeliveryState::Waiting && !delivery.in_flight;
        Self {
            message_id: delivery.message_id,
            claim_id: delivery.claim_id,
            state: delivery.state.name(),
            in_flight: delivery.in_flight,
            next_attempt_date: is_due.then(|| delivery.due_at.rfc3339()),
            attempt_count: delivery.attempts,
            created_date: delivery.created_at.rfc3339(),
            updated_date: delivery.changed_at.rfc3339(),
        }
    }
}

/// A message to a webhook with its attempts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeliverySheetAnswer {
    #[serde(flatten)]
    delivery: DeliveryAnswer,
    /// The attempts whose end is known, newest first; the last hundred.
    attempts: Vec<AttemptAnswer>,
}

/// One attempt to send a message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptAnswer {
    /// Which attempt. A number that is missing was begun by a node that died.
    number: i64,
    /// When it began.
    began_date: String,
    /// How long it took, in milliseconds.
    duration_ms: i64,
    /// The status that the receiver answered; `null` when there was no answer.
    status: Option<u16>,
    /// Why there was no answer; `null` when there was one.
    #[schemars(extend("enum" = failures()))]
    failure: Option<&'static str>,
    /// The beginning of the answer's body.
    answer: String,
}

fn failures() -> Vec<Option<&'static str>> {
    or_null(&SendFailure::ALL.map(SendFailure::name))
}

impl From<AttemptRecord> for AttemptAnswer {
    fn from(attempt: AttemptRecord) -> Self {
        Self {
            number: attempt.number,
            began_date: attempt.began_at.rfc3339(),
            duration_ms: attempt.duration_ms,
            status: attempt.status,
            failure: attempt.failure.map(SendFailure::name),
            answer: attempt.excerpt,
        }
    }
}

impl From<DeliveryDetails> for DeliverySheetAnswer {
    fn from(DeliveryDetails { delivery, attempts }: DeliveryDetails) -> Self {
        Self { delivery: delivery.into(), attempts: attempts.into_iter().map(AttemptAnswer::from).collect() }
    }
}

pub(crate) const DELIVERIES: Summary =
    Summary::new("getWebhookDeliveries", "Messages to a webhook, newest first", "웹훅 전송 목록 조회")
        .refuses(&[404]);

/// `GET /platform/v1/applications/{clientId}/webhook/deliveries`: the messages of the last 30 days, newest
/// first.
pub async fn deliveries(
    _: Operator,
    State(web): State<Web>,
    PathId(id): PathId,
    Query(query): Query<DeliveriesQuery>,
) -> Answer<NextData<DeliveryAnswer>> {
    let client_id = ClientId::parse("clientId", &id)?;
    let DeliveriesQuery { query, size, cursor } = query;
    let page = web.service().webhook_deliveries(&client_id, query, size, cursor.as_deref()).await?;
    let deliveries = page.deliveries.into_iter().map(DeliveryAnswer::from).collect();
    Ok(Success(NextData::new(deliveries, page.next)))
}

pub(crate) const DELIVERY: Summary =
    Summary::new("getWebhookDelivery", "One message with its attempts", "웹훅 전송 조회").refuses(&[404]);

/// `GET /platform/v1/applications/{clientId}/webhook/deliveries/{messageId}`: one message, and the outcome of
/// each attempt.
pub async fn delivery(
    _: Operator,
    State(web): State<Web>,
    path: DeliveryPath,
) -> Answer<DeliverySheetAnswer> {
    let DeliveryPath(client_id, message_id) = path;
    Ok(Success(web.service().webhook_delivery(&client_id, &message_id).await?.into()))
}

pub(crate) const RESEND: Summary =
    Summary::new("resendWebhookDelivery", "Send a message anew", "웹훅 재전송").refuses(&[404]);

/// `POST /platform/v1/applications/{clientId}/webhook/deliveries/{messageId}/resend`: sends a message again
/// in any state, with the whole schedule of retries.
pub async fn resend(operator: Operator, path: DeliveryPath) -> Answer<DeliverySheetAnswer> {
    let DeliveryPath(client_id, message_id) = path;
    Ok(Success(operator.service().resend_delivery(&client_id, &message_id).await?.into()))
}

/// The messages to send again.
#[derive(Debug)]
pub struct ResendWindow {
    from: Timestamp,
    to: Timestamp,
    /// `None`: the messages that claims should have and do not have.
    state: Option<DeliveryState>,
}

/// The states of messages, and the word for missing ones.
const RESENT: &[&str] = &["WAITING", "DELIVERED", "DEAD", MISSING];

impl Body for ResendWindow {
    fn form() -> impl JsonForm<Out = Self> {
        let named = name(RESENT)
            .with(|kind| kind.default(DeliveryState::Dead.name()))
            .about("`MISSING` writes a message for each claim of the last 30 days that has none.");
        let state = |name: Option<&'static str>| match name {
            Some(MISSING) => None,
            Some(name) => DeliveryState::from_name(name),
            None => Some(DeliveryState::Dead),
        };
        record!(Self {
            state: optional("state", named).map(state),
            from: required("from", date().about("Of claims made from then on.")),
            to: required("to", date().about("Of claims made before then.")),
        })
    }
}

/// How much of a window is sent anew.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resent {
    /// How many messages.
    resent_count: u64,
    /// Whether that was all. A call sends up to 10,000 anew; the same call goes on where it ended.
    complete: bool,
}

pub(crate) const RESEND_WINDOW: Summary =
    Summary::new("resendWebhookDeliveries", "Send the messages of a window anew", "웹훅 기간 재전송")
        .refuses(&[404]);

/// `POST /platform/v1/applications/{clientId}/webhook/resend`: sends the messages of a time window again,
/// oldest first. Without a state in the request these are the dead letters. `MISSING` writes the messages of
/// claims that have none.
pub async fn resend_window(
    operator: Operator,
    PathId(id): PathId,
    Json(window): Json<ResendWindow>,
) -> Answer<Resent> {
    let client_id = ClientId::parse("clientId", &id)?;
    let ResendWindow { from, to, state } = window;
    let sent = match state {
        Some(state) => operator.service().resend_deliveries(&client_id, state, from, to).await?,
        None => operator.service().write_missing_deliveries(&client_id, from, to).await?,
    };
    Ok(Success(Resent { resent_count: sent.messages, complete: sent.all }))
}

/// `{clientId}` and `{secretId}` of the path.
#[derive(Debug)]
pub struct SecretPath(ClientId, WebhookSecretId);

/// `{clientId}` and `{messageId}` of the path.
#[derive(Debug)]
pub struct DeliveryPath(ClientId, DeliveryId);

impl FromRequestParts<Web> for SecretPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        let (client, secret) = two_ids(parts).await?;
        Ok(Self(ClientId::parse("clientId", &client)?, WebhookSecretId::parse("secretId", &secret)?))
    }
}

impl FromRequestParts<Web> for DeliveryPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        let (client, message) = two_ids(parts).await?;
        Ok(Self(ClientId::parse("clientId", &client)?, DeliveryId::parse("messageId", &message)?))
    }
}

impl DescribeInput for SecretPath {
    fn describe(operation: &mut Operation) {
        PathId::describe(operation);
    }
}

impl DescribeInput for DeliveryPath {
    fn describe(operation: &mut Operation) {
        PathId::describe(operation);
    }
}

//! Requests of people that the operator decides: the verification of organizations, scopes of applications.

use axum::extract::State;
use domain::limits::REVIEW_TEXT_CHARS_MAX;
use domain::review::{Decision, ReviewKind, ReviewState, ReviewSubject};
use domain::{
    ChannelId, ClientId, Invalid, OrganizationId, ReviewRequestId, Rule, Scope, ScopeSet, Timestamp,
};
use schemars::JsonSchema;
use serde::Serialize;
use service::review_requests::{ReviewDecision, ReviewRequest};

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, NextData, Success};
use crate::input::values::{chars, id, text, texts};
use crate::input::{Body, Form, Json, JsonForm, Params, Query, QueryForm, optional, record, required};
use crate::path::PathId;
use crate::platform::ListQuery;

/// Who decides over the platform API, in the record of a decision.
const DECIDED_BY: &str = "platform-api";

/// A request of people, as the operator sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewRequestAnswer {
    /// Its id. It begins with the time of the request.
    request_id: ReviewRequestId,
    /// `organization` (its verification), `drops` (that scope) or `scopes` (others).
    kind: &'static str,
    /// `pending`, `approved`, `refused` or `withdrawn`.
    state: &'static str,
    /// The organization that it is about, or that of the application.
    organization_id: Option<OrganizationId>,
    /// The name of that organization.
    organization_name: Option<String>,
    /// The application that it is about.
    client_id: Option<ClientId>,
    /// The name of that application.
    application_name: Option<String>,
    /// The scopes that it asks for.
    scopes: Vec<&'static str>,
    /// Who asked.
    channel_id: ChannelId,
    /// The name of that person's channel.
    channel_name: String,
    /// Why.
    message: String,
    /// When it was made.
    created_date: String,
    /// When it was decided or withdrawn.
    decided_date: Option<String>,
    /// Who decided it.
    decided_by: Option<String>,
    /// What was said about the decision.
    note: Option<String>,
}

impl From<ReviewRequest> for ReviewRequestAnswer {
    fn from(request: ReviewRequest) -> Self {
        Self {
            request_id: request.request_id,
            kind: request.kind.name(),
            state: request.state.name(),
            organization_id: request.organization_id,
            organization_name: request.organization_name,
            client_id: request.client_id,
            application_name: request.application_name,
            scopes: request.scopes.iter().map(Scope::name).collect(),
            channel_id: request.requested_by,
            channel_name: request.requested_by_name,
            message: request.message,
            created_date: request.created_at.rfc3339(),
            decided_date: request.decided_at.map(Timestamp::rfc3339),
            decided_by: request.decided_by,
            note: request.note,
        }
    }
}

/// The query of the list.
#[derive(Debug)]
pub struct ReviewRequestQuery {
    state: Option<ReviewState>,
    list: ListQuery,
}

impl Params for ReviewRequestQuery {
    fn form() -> impl QueryForm<Out = Self> {
        let state = text().one_of(&ReviewState::NAMES).about("Left out: `pending`.");
        record!(Self { state: optional("state", state.parsed(ReviewState::parse)), list: ListQuery::form() })
    }
}

pub(crate) const LIST: Summary =
    Summary::new("listReviewRequests", "Requests that the operator decides", "심사 요청 목록 조회");

/// `GET /platform/v1/review-requests`: the requests in a state, the oldest first.
pub async fn list(
    _: Operator,
    State(web): State<Web>,
    Query(query): Query<ReviewRequestQuery>,
) -> Answer<NextData<ReviewRequestAnswer>> {
    let ReviewRequestQuery { state, list: ListQuery { size, next } } = query;
    let state = state.unwrap_or(ReviewState::Pending);
    let page = web.service().review_requests(state, size, next.as_deref()).await?;
    let items = page.items.into_iter().map(ReviewRequestAnswer::from).collect();
    Ok(Success(NextData::new(items, page.next)))
}

/// A request in the name of a person.
#[derive(Debug)]
pub struct NewRequest {
    channel_id: ChannelId,
    kind: ReviewKind,
    organization_id: Option<OrganizationId>,
    client_id: Option<ClientId>,
    scopes: ScopeSet,
    message: String,
}

impl Body for NewRequest {
    fn form() -> impl JsonForm<Out = Self> {
        let kind = |name: &str| {
            ReviewKind::from_name(name).ok_or(Invalid::new("kind", Rule::OneOf(&ReviewKind::NAMES)))
        };
        let kinds = text().one_of(&ReviewKind::NAMES).about("What is asked for.").parsed(kind);
        let scope = |name: &str| Scope::from_name(name).ok_or(Invalid::new("scopes", Rule::KnownScope));
        let names =
            text().with(|kind| kind.one_of(&Scope::ALL.iter().map(|scope| scope.name()).collect::<Vec<_>>()));
        let organization = id(OrganizationId::parse).about("For the kind `organization`.");
        let client = id(ClientId::parse).about("For the kinds `drops` and `scopes`.");
        record!(Self {
            channel_id: required("channelId", id(ChannelId::parse)),
            kind: required("kind", kinds),
            organization_id: optional("organizationId", organization),
            client_id: optional("clientId", client),
            scopes: optional("scopes", texts(names.parsed(scope), 0).about("For the kind `scopes`."))
                .map(|scopes| scopes.into_iter().flatten().collect()),
            message: required("message", chars(1, REVIEW_TEXT_CHARS_MAX)),
        })
    }
}

impl NewRequest {
    fn subject(&self) -> Result<ReviewSubject, Invalid> {
        let missing = |field| Invalid::new(field, Rule::Required);
        let client_id = || self.client_id.clone().ok_or(missing("clientId"));
        Ok(match self.kind {
            ReviewKind::Organization => {
                let organization_id = self.organization_id.clone();
                ReviewSubject::Verification(organization_id.ok_or(missing("organizationId"))?)
            }
            ReviewKind::Drops => ReviewSubject::Drops(client_id()?),
            ReviewKind::Scopes if self.scopes.is_empty() => return Err(missing("scopes")),
            ReviewKind::Scopes => ReviewSubject::Scopes(client_id()?, self.scopes),
        })
    }
}

/// The id of a request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeRequest {
    /// The request. It was there already if such a request is pending.
    request_id: ReviewRequestId,
}

pub(crate) const ADD: Summary =
    Summary::new("addReviewRequest", "Ask for a decision in the name of a person", "심사 요청 등록")
        .refuses(&[404]);

/// `POST /platform/v1/review-requests`: makes a request in the name of a person, who has to be an admin of
/// the organization, or a developer of the application.
pub async fn add(operator: Operator, Json(body): Json<NewRequest>) -> Answer<MadeRequest> {
    let subject = body.subject()?;
    let request_id =
        operator.service().submit_review_request(&body.channel_id, subject, &body.message).await?;
    Ok(Success(MadeRequest { request_id }))
}

/// The operator's decision.
#[derive(Debug)]
pub struct PutReviewRequest {
    decision: Decision,
    note: Option<String>,
}

impl Body for PutReviewRequest {
    fn form() -> impl JsonForm<Out = Self> {
        let decision = text().one_of(&Decision::NAMES).about("What the operator decides.");
        let note = chars(1, REVIEW_TEXT_CHARS_MAX).about("The people who asked read it.");
        record!(Self {
            decision: required("decision", decision.parsed(Decision::parse)),
            note: optional("note", note),
        })
    }
}

pub(crate) const DECIDE: Summary =
    Summary::new("decideReviewRequest", "Approve or refuse a request", "심사 요청 처리").refuses(&[404]);

/// `PUT /platform/v1/review-requests/{requestId}`: approves or refuses a request, with effect at once. The
/// first decision counts.
pub async fn decide(
    operator: Operator,
    PathId(id): PathId,
    Json(PutReviewRequest { decision, note }): Json<PutReviewRequest>,
) -> Answer<()> {
    let id = ReviewRequestId::parse("requestId", &id)?;
    let decision = ReviewDecision { decision, note, decided_by: DECIDED_BY.to_owned() };
    operator.service().decide_review_request(&id, decision).await?;
    Ok(NOTHING)
}

//! The load that applications cause, and the part of the quotas that each has.

use axum::extract::State;
use domain::quota::QuotaShare;
use domain::{ClientId, Invalid, Rule};
use schemars::JsonSchema;
use serde::Serialize;
use service::application_usage::{ApplicationLoad, LOAD_MINUTES_MAX, LoadBy};

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, Data, NOTHING, Success};
use crate::input::values::{integer, text};
use crate::input::{
    Body, Form, Json, JsonForm, Params, Query, QueryForm, optional, record, required, with_default,
};
use crate::path::PathId;

/// Applications of an answer, and the most of them.
const SIZE_DEFAULT: i64 = 20;
const SIZE_MAX: i64 = 100;
/// Minutes without `minutes`.
const MINUTES_DEFAULT: i64 = 5;
/// The names of what applications are ordered by.
const ORDERS: &[&str] = &["requests", "refused", "events"];

/// Which load is listed.
#[derive(Debug)]
pub struct LoadQuery {
    by: LoadBy,
    minutes: i64,
    size: i64,
}

impl Params for LoadQuery {
    fn form() -> impl QueryForm<Out = Self> {
        let by = |name: &str| match name {
            "requests" => Ok(LoadBy::Requests),
            "refused" => Ok(LoadBy::Refused),
            "events" => Ok(LoadBy::Events),
            _ => Err(Invalid::new("by", Rule::OneOf(ORDERS))),
        };
        let order =
            text().one_of(ORDERS).about("What they are ordered by, the most first. Left out: `requests`.");
        let minutes = integer(1, LOAD_MINUTES_MAX).about("The last minutes, the current one included.");
        record!(Self {
            by: optional("by", order.parsed(by)).map(|by| by.unwrap_or(LoadBy::Requests)),
            minutes: with_default("minutes", minutes, MINUTES_DEFAULT),
            size: with_default("size", integer(1, SIZE_MAX), SIZE_DEFAULT),
        })
    }
}

/// The load that one application causes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadAnswer {
    /// The application.
    client_id: ClientId,
    /// Its name.
    name: String,
    /// Its requests.
    requests: i64,
    /// Those of them that were refused, or failed.
    refused: i64,
    /// Events that its sessions received.
    events: i64,
}

impl From<ApplicationLoad> for LoadAnswer {
    fn from(load: ApplicationLoad) -> Self {
        let ApplicationLoad { client_id, name, requests, refused, events } = load;
        Self { client_id, name, requests, refused, events }
    }
}

pub(crate) const LIST: Summary = Summary::new(
    "listApplicationLoad",
    "The applications that cause the most load",
    "애플리케이션별 부하 조회",
);

/// `GET /platform/v1/application-load`: the applications with the most requests, refused requests or events
/// of the last minutes, over all nodes.
pub async fn list(
    _: Operator,
    State(web): State<Web>,
    Query(query): Query<LoadQuery>,
) -> Answer<Data<LoadAnswer>> {
    let LoadQuery { by, minutes, size } = query;
    let heaviest = web.service().heaviest_applications(by, minutes, size).await?;
    Ok(Success(Data { data: heaviest.into_iter().map(LoadAnswer::from).collect() }))
}

/// The part of the quotas that an application gets.
#[derive(Debug)]
pub struct PutQuota {
    percent: i64,
}

impl Body for PutQuota {
    fn form() -> impl JsonForm<Out = Self> {
        let percent = integer(1, 100).about("The part of each quota that it and its users have, in percent.");
        record!(Self { percent: required("percent", percent) })
    }
}

pub(crate) const PUT_QUOTA: Summary = Summary::new(
    "putApplicationQuota",
    "Give an application a part of the quotas",
    "애플리케이션 할당량 비율 변경",
)
.refuses(&[404]);

/// `PUT /platform/v1/applications/{clientId}/quota`: gives the application this part of each quota. They hold
/// for it from then on.
pub async fn put_quota(operator: Operator, PathId(id): PathId, Json(body): Json<PutQuota>) -> Answer<()> {
    let client_id = ClientId::parse("clientId", &id)?;
    let share = QuotaShare::percent(body.percent)
        .ok_or(Invalid::new("percent", Rule::Integer { min: 1, max: 100 }))?;
    operator.service().set_quota_share(&client_id, share).await?;
    Ok(NOTHING)
}

pub(crate) const DELETE_QUOTA: Summary = Summary::new(
    "deleteApplicationQuota",
    "Give an application the whole quotas again",
    "애플리케이션 할당량 비율 해제",
)
.refuses(&[404]);

/// `DELETE /platform/v1/applications/{clientId}/quota`: gives the application the whole quotas again.
pub async fn delete_quota(operator: Operator, PathId(id): PathId) -> Answer<()> {
    let client_id = ClientId::parse("clientId", &id)?;
    operator.service().set_quota_share(&client_id, QuotaShare::FULL).await?;
    Ok(NOTHING)
}

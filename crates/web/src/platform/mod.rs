//! The platform API, `/platform/v1`: the platform reports events and data. It requires the operator's key;
//! credentials of applications are refused.

pub mod applications;
pub mod audit_log;
pub mod categories;
pub mod channel_events;
pub mod channels;
pub mod consents;
pub mod drops;
pub mod events;
pub mod keys;
mod lines;
pub mod lives;
pub mod load;
pub mod members;
pub mod operators;
pub mod organizations;
pub mod relations;
pub mod review_requests;
pub mod secrets;
pub mod sessions;
pub mod watching;
pub mod webhooks;

use axum::extract::FromRequestParts;
use domain::OrganizationId;
use domain::limits::{OPERATOR_LIST_SIZE_DEFAULT, OPERATOR_LIST_SIZE_MAX};
use http::{HeaderMap, request::Parts};
use service::idempotency::{IdempotencyKey, KEY_BYTES_MAX};

use crate::Web;
use crate::contract::Operation;
use crate::contract::routes::DescribeInput;
use crate::envelope::Failure;
use crate::input::shape;
use crate::input::values::{cursor, id, integer};
use crate::input::{Params, QueryForm, optional, record, with_default};

/// `size` and `next` of a list with a cursor.
#[derive(Debug)]
pub struct ListQuery {
    /// Items of the page.
    pub size: i64,
    /// The cursor, on every page except the first.
    pub next: Option<String>,
}

impl Params for ListQuery {
    fn form() -> impl QueryForm<Out = Self> {
        record!(Self {
            size: with_default("size", integer(1, OPERATOR_LIST_SIZE_MAX), OPERATOR_LIST_SIZE_DEFAULT),
            next: optional("next", cursor()),
        })
    }
}

/// The query of a list that can be filtered by organization.
#[derive(Debug)]
pub struct OrganizationListQuery {
    /// Only items of this organization.
    pub organization_id: Option<OrganizationId>,
    /// Size and cursor.
    pub list: ListQuery,
}

impl Params for OrganizationListQuery {
    fn form() -> impl QueryForm<Out = Self> {
        let organization = id(OrganizationId::parse).about("Those of this organization.");
        record!(Self { organization_id: optional("organizationId", organization), list: ListQuery::form() })
    }
}

/// The `Idempotency-Key` of a request, if it has one. The key is bound to the operation, which is method and
/// path.
#[derive(Debug)]
pub struct KeyHeader {
    operation: String,
    key: Option<String>,
}

impl FromRequestParts<Web> for KeyHeader {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        Ok(Self { operation: format!("{} {}", parts.method, parts.uri.path()), key: key(&parts.headers)? })
    }
}

impl DescribeInput for KeyHeader {
    fn describe(operation: &mut Operation) {
        let key = shape::text()
            .pattern("^[!-~]([ -~]*[!-~])?$")
            .max_chars(KEY_BYTES_MAX)
            .about("A repeated key answers as the first time, with one effect.");
        operation.headers.push(shape::optional("Idempotency-Key", key));
        operation.may_refuse(&[400]);
    }
}

impl KeyHeader {
    /// The key, bound to the request's body.
    pub(crate) fn bind(self, body: &str) -> Result<Option<IdempotencyKey>, Failure> {
        let Self { operation, key } = self;
        Ok(key.map(|key| IdempotencyKey::parse(operation, &key, body)).transpose()?)
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let text = |value: &http::HeaderValue| {
        let wrong = domain::Invalid::new("Idempotency-Key", domain::Rule::Text);
        value.to_str().map(str::to_owned).map_err(|_| wrong)
    };
    Ok(headers.get("idempotency-key").map(text).transpose()?)
}

//! The operator keys: made, listed and revoked by an administrator.

use axum::extract::State;
use domain::limits::NAME_CHARS_MAX;
use domain::operator_key::OperatorRole;
use domain::secret::OperatorKey;
use domain::{Invalid, OperatorKeyId, Rule, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use service::operator_keys::StoredOperatorKey;

use crate::Web;
use crate::caller::Administrator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, NextData, Success};
use crate::input::values::{chars, text};
use crate::input::{Body, JsonForm, JsonText, Query, record, required};
use crate::path::PathId;
use crate::platform::{KeyHeader, ListQuery};

/// An operator key as the operator sees it: enough to recognize it by.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorKeyAnswer {
    /// Its id. It is no credential.
    key_id: OperatorKeyId,
    /// Its name.
    name: String,
    /// `read`, `write` or `admin`.
    role: &'static str,
    /// The last four characters.
    last_characters: String,
    /// When it was made.
    created_date: String,
    /// When it was last used. May stay an hour behind while it is used; `null` before the first time.
    last_used_date: Option<String>,
}

impl From<StoredOperatorKey> for OperatorKeyAnswer {
    fn from(key: StoredOperatorKey) -> Self {
        Self {
            key_id: key.key_id,
            name: key.name,
            role: key.role.name(),
            last_characters: key.last_characters,
            created_date: key.created_at.rfc3339(),
            last_used_date: key.last_used_at.map(Timestamp::rfc3339),
        }
    }
}

/// What comes back when a key is made, this once.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeOperatorKey {
    #[serde(flatten)]
    details: OperatorKeyAnswer,
    /// The key itself.
    operator_key: String,
}

impl MadeOperatorKey {
    fn new(details: StoredOperatorKey, key: &OperatorKey) -> Self {
        Self { details: details.into(), operator_key: key.expose().to_owned() }
    }
}

/// A new key.
#[derive(Debug)]
pub struct NewOperatorKey {
    name: String,
    role: OperatorRole,
}

impl Body for NewOperatorKey {
    fn form() -> impl JsonForm<Out = Self> {
        let role = |name: &str| {
            OperatorRole::from_name(name).ok_or(Invalid::new("role", Rule::OneOf(&OperatorRole::NAMES)))
        };
        let roles = text().one_of(&OperatorRole::NAMES);
        record!(Self {
            name: required("name", chars(1, NAME_CHARS_MAX).about("Who or what uses it.")),
            role: required("role", roles.parsed(role)),
        })
    }
}

pub(crate) const ADD: Summary =
    Summary::new("addOperatorKey", "Make an operator key", "운영자 키 추가").refuses(&[404]);

/// `POST /platform/v1/keys`: makes a key. 404 for a repeated `Idempotency-Key` whose key was revoked.
pub async fn add(
    admin: Administrator,
    key: KeyHeader,
    JsonText(body, text): JsonText<NewOperatorKey>,
) -> Answer<MadeOperatorKey> {
    let NewOperatorKey { name, role } = body;
    let (details, made) = admin.service().add_operator_key(name, role, key.bind(&text)?).await?;
    Ok(Success(MadeOperatorKey::new(details, &made)))
}

pub(crate) const LIST: Summary =
    Summary::new("listOperatorKeys", "The operator keys, without the configured one", "운영자 키 목록 조회");

/// `GET /platform/v1/keys`: the keys by their ids, which begin with their times.
pub async fn list(
    _: Administrator,
    State(web): State<Web>,
    Query(ListQuery { size, next }): Query<ListQuery>,
) -> Answer<NextData<OperatorKeyAnswer>> {
    let page = web.service().operator_keys(size, next.as_deref()).await?;
    Ok(Success(NextData::new(page.items.into_iter().map(OperatorKeyAnswer::from).collect(), page.next)))
}

pub(crate) const REVOKE: Summary =
    Summary::new("revokeOperatorKey", "Revoke an operator key at once", "운영자 키 폐기");

/// `DELETE /platform/v1/keys/{keyId}`: revokes a key. The next call with it is refused, on every node.
pub async fn revoke(admin: Administrator, PathId(id): PathId) -> Answer<()> {
    admin.service().revoke_operator_key(&OperatorKeyId::parse("keyId", &id)?).await?;
    Ok(NOTHING)
}

//! The secrets of applications: added, listed, expired and deleted.

use axum::extract::{FromRequestParts, State};
use domain::{ApplicationSecretId, ClientId, Timestamp};
use http::request::Parts;
use schemars::JsonSchema;
use serde::Serialize;
use service::application_secrets::StoredSecret;
use service::leaked_credentials::Affected;

use crate::Web;
use crate::caller::Operator;
use crate::contract::routes::DescribeInput;
use crate::contract::{Operation, Summary};
use crate::envelope::{Answer, Data, Failure, NOTHING, Success};
use crate::input::values::date;
use crate::input::{Body, Form, Json, JsonForm, optional};
use crate::path::{PathId, two_ids};
use crate::platform::KeyHeader;
use crate::platform::applications::MadeSecret;

pub(crate) const ADD: Summary =
    Summary::new("addApplicationSecret", "Give an application one more secret", "애플리케이션 시크릿 추가")
        .refuses(&[404]);

/// `POST /platform/v1/applications/{clientId}/secrets`: adds a secret. The others stay valid.
pub async fn add(operator: Operator, PathId(id): PathId, key: KeyHeader) -> Answer<MadeSecret> {
    let client_id = ClientId::parse("clientId", &id)?;
    let secret = operator.service().add_secret(&client_id, key.bind("")?).await?;
    Ok(Success(MadeSecret::new(client_id, Some(&secret))))
}

/// A secret as its operator sees it: enough to recognize it by.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSecret {
    /// Its id. It is no credential.
    secret_id: ApplicationSecretId,
    /// The last four characters; `null` for one that was made before they were kept.
    last_characters: Option<String>,
    /// When it was made.
    created_date: String,
    /// When it last proved its application. May stay an hour behind while it is used; `null` before the first
    /// time.
    last_used_date: Option<String>,
    /// From when on it proves nothing; `null` where it does not expire.
    expires_date: Option<String>,
}

impl From<StoredSecret> for ApplicationSecret {
    fn from(secret: StoredSecret) -> Self {
        Self {
            secret_id: secret.secret_id,
            last_characters: secret.last_characters,
            created_date: secret.created_at.rfc3339(),
            last_used_date: secret.last_used_at.map(Timestamp::rfc3339),
            expires_date: secret.expires_at.map(Timestamp::rfc3339),
        }
    }
}

pub(crate) const LIST: Summary = Summary::new(
    "listApplicationSecrets",
    "An application's secrets, without what they prove with",
    "애플리케이션 시크릿 목록 조회",
)
.refuses(&[404]);

/// `GET /platform/v1/applications/{clientId}/secrets`: the valid secrets, oldest first.
pub async fn list(
    _: Operator,
    State(web): State<Web>,
    PathId(id): PathId,
) -> Answer<Data<ApplicationSecret>> {
    let client_id = ClientId::parse("clientId", &id)?;
    let secrets = web.service().secrets(&client_id).await?;
    Ok(Success(Data { data: secrets.into_iter().map(ApplicationSecret::from).collect() }))
}

/// The expiry date of a secret.
#[derive(Debug)]
pub struct SecretExpiry(Option<Timestamp>);

impl Body for SecretExpiry {
    fn form() -> impl JsonForm<Out = Self> {
        let expires = date().about("Left out: never. A date that has passed: at once.");
        optional("expiresDate", expires).map(Self)
    }
}

pub(crate) const PUT: Summary = Summary::new(
    "putApplicationSecretExpiry",
    "Let a secret expire at a date, or never",
    "애플리케이션 시크릿 만료 설정",
)
.refuses(&[404]);

/// `PUT /platform/v1/applications/{clientId}/secrets/{secretId}`: sets or removes the expiry date of a
/// secret.
pub async fn put(
    operator: Operator,
    path: ApplicationSecretPath,
    Json(SecretExpiry(expires_at)): Json<SecretExpiry>,
) -> Answer<()> {
    let ApplicationSecretPath(client_id, secret_id) = path;
    operator.service().time_secret(&client_id, &secret_id, expires_at).await?;
    Ok(NOTHING)
}

pub(crate) const DELETE: Summary = Summary::new(
    "deleteApplicationSecret",
    "Delete a secret at once, with the sessions that it opened",
    "애플리케이션 시크릿 삭제",
)
.refuses(&[404]);

/// `DELETE /platform/v1/applications/{clientId}/secrets/{secretId}`: deletes a secret. Its session URLs
/// become invalid, and the sessions opened with it end.
pub async fn delete(operator: Operator, path: ApplicationSecretPath) -> Answer<()> {
    let ApplicationSecretPath(client_id, secret_id) = path;
    operator.service().delete_secret(&client_id, &secret_id).await?;
    Ok(NOTHING)
}

pub(crate) const DELETE_ALL: Summary = Summary::new(
    "deleteApplicationSecrets",
    "Delete all secrets of an application at once, with the sessions that they opened",
    "애플리케이션 시크릿 모두 삭제",
)
.refuses(&[404]);

/// `DELETE /platform/v1/applications/{clientId}/secrets`: deletes all secrets. The application proves nothing
/// until it gets a new one.
pub async fn delete_all(operator: Operator, PathId(id): PathId) -> Answer<()> {
    let client_id = ClientId::parse("clientId", &id)?;
    operator.service().delete_all_secrets(&client_id).await?;
    Ok(NOTHING)
}

pub(crate) const END_TOKENS: Summary = Summary::new(
    "endApplicationTokens",
    "End all tokens and codes of an application, and its sessions",
    "애플리케이션 토큰 모두 끝내기",
)
.refuses(&[404]);

/// `DELETE /platform/v1/applications/{clientId}/tokens`: ends all tokens and codes of the application, and
/// its sessions. Nothing revives them.
pub async fn end_tokens(operator: Operator, PathId(id): PathId) -> Answer<()> {
    let client_id = ClientId::parse("clientId", &id)?;
    operator.service().end_application_tokens(&client_id).await?;
    Ok(NOTHING)
}

/// Whom the end of an application's tokens affects.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AffectedAnswer {
    /// Users with valid tokens of the application, counted up to 1,000.
    user_count: i64,
    /// Connected sessions of the application and of its users, counted up to 1,000.
    session_count: i64,
}

pub(crate) const AFFECTED: Summary = Summary::new(
    "showAffectedByTokens",
    "Whom the end of all tokens of an application affects",
    "애플리케이션 토큰을 끝내면 영향받는 수 조회",
)
.refuses(&[404]);

/// `GET /platform/v1/applications/{clientId}/tokens`: how many users and sessions the end of all tokens
/// affects now.
pub async fn affected(_: Operator, State(web): State<Web>, PathId(id): PathId) -> Answer<AffectedAnswer> {
    let client_id = ClientId::parse("clientId", &id)?;
    web.service().application_details(&client_id).await?;
    let Affected { users, sessions } = web.service().affected_by(&client_id).await?;
    Ok(Success(AffectedAnswer { user_count: users, session_count: sessions }))
}

/// `{clientId}` and `{secretId}` of the path.
#[derive(Debug)]
pub struct ApplicationSecretPath(ClientId, ApplicationSecretId);

impl FromRequestParts<Web> for ApplicationSecretPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        let (client, secret) = two_ids(parts).await?;
        Ok(Self(ClientId::parse("clientId", &client)?, ApplicationSecretId::parse("secretId", &secret)?))
    }
}

impl DescribeInput for ApplicationSecretPath {
    fn describe(operation: &mut Operation) {
        PathId::describe(operation);
    }
}

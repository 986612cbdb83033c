//! Tokens (`docs/spec/authorization.md#tokens`). The body contains the caller's credentials. So this module
//! makes the checks that extractors make elsewhere, in the same order: 401, 429, then 400.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use domain::token::{EXPIRES_IN_SECONDS, TOKEN_TYPE};
use domain::usage::UsageKind;
use domain::{Invalid, Profile, Refusal, Rule};
use schemars::JsonSchema;
use serde::Serialize;
use service::credentials::ProvenApplication;
use service::quotas::Counted;
use service::tokens::IssuedTokens;

use crate::contract::Summary;
use crate::envelope::{Answer, Failure, NOTHING, Success};
use crate::failures::Failed;
use crate::input::shape::Shape;
use crate::input::union::tagged;
use crate::input::values::text;
use crate::input::{Body, Fields, Form, FormOf, Json, JsonForm, optional, record, required};
use crate::quota::{self, Charged};
use crate::usage::CountedRequest;
use crate::{ClientAddress, Web};

/// The two values of `tokenTypeHint`.
const TOKEN_TYPE_HINTS: &[&str] = &["access_token", "refresh_token"];

/// A body with an application's credentials. Its other fields, a `T`, are only checked after the credentials.
pub struct Proven<T> {
    client_id: String,
    client_secret: String,
    fields: Fields<'static>,
    rest: PhantomData<fn() -> T>,
}

impl<T: Body> Proven<T> {
    fn rest(&self) -> Result<T, Invalid> {
        T::form().read(&self.fields)
    }
}

impl<T: Body> Body for Proven<T> {
    const REFUSES: &'static [u16] = &[401, 429];

    fn form() -> impl JsonForm<Out = Self> {
        ProvenForm(PhantomData)
    }
}

/// The form of [`Proven`]: describes the other fields, but does not read them yet.
struct ProvenForm<T>(PhantomData<fn() -> T>);

/// The credentials of an application.
fn proof() -> impl JsonForm<Out = (String, String)> {
    (required("clientId", text()), required("clientSecret", text()))
}

impl<T: Body> Form for ProvenForm<T> {
    type Out = Proven<T>;

    fn shape(&self) -> Shape {
        proof().shape().and(T::form().shape())
    }
}

impl<T: Body> FormOf<Fields<'_>> for ProvenForm<T> {
    fn read(&self, fields: &Fields<'_>) -> Result<Proven<T>, Invalid> {
        let (client_id, client_secret) = proof().read(fields)?;
        Ok(Proven { client_id, client_secret, fields: fields.clone().into_owned(), rest: PhantomData })
    }
}

/// The grant that an application exchanges for tokens.
pub enum Grant {
    /// The code of a sign-in.
    Code {
        /// The code.
        code: String,
        /// The `state` that the sign-in began with.
        state: String,
    },
    /// A refresh token.
    Refresh {
        /// The token.
        refresh_token: String,
    },
}

impl Body for Grant {
    fn form() -> impl JsonForm<Out = Self> {
        tagged!("grantType", {
            "authorization_code" => record!(Self::Code {
                code: required("code", text()),
                state: required("state", text()),
            }),
            "refresh_token" => record!(Self::Refresh { refresh_token: required("refreshToken", text()) }),
        })
    }
}

/// A token to revoke.
pub struct Revocation {
    token: String,
}

impl Body for Revocation {
    fn form() -> impl JsonForm<Out = Self> {
        let hint = text()
            .one_of(TOKEN_TYPE_HINTS)
            .with(|kind| kind.default(TOKEN_TYPE_HINTS[0]))
            .about("Never narrows the search.")
            .parsed(|hint| match TOKEN_TYPE_HINTS.contains(&hint) {
                true => Ok(()),
                false => Err(Invalid::new("tokenTypeHint", Rule::OneOf(TOKEN_TYPE_HINTS))),
            });
        (required("token", text()), optional("tokenTypeHint", hint)).map(|(token, _)| Self { token })
    }
}

/// Token response.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenAnswer {
    /// Lives one day.
    access_token: String,
    /// Works once, within 30 days.
    refresh_token: String,
    /// Always `Bearer`.
    token_type: &'static str,
    /// Seconds.
    expires_in: ExpiresIn,
    /// Only in the answer to a refresh: the names of the scopes, joined by a space.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
}

/// Seconds: a text as documented, a number as observed.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ExpiresIn {
    Text(String),
    Number(i64),
}

pub(crate) const ISSUE: Summary =
    Summary::new("issueToken", "Exchange a code, or refresh a token", "토큰 발급 및 갱신");

/// `POST /auth/v1/token`: both grants. If an authenticated client presents a bad code or refresh token, an
/// attacker most likely gave it to the client. So it only counts against this client's codes, and a good one
/// is still exchanged.
pub async fn issue(
    State(web): State<Web>,
    address: Option<Extension<ClientAddress>>,
    Extension(charged): Extension<Charged>,
    Json(body): Json<Proven<Grant>>,
) -> Answer<TokenAnswer> {
    let application = prove(&web, &charged, address, &body).await?;
    let service = web.service();
    let (issued, refreshed) = match body.rest()? {
        Grant::Code { code, state } => {
            let issued = service.exchange_code(&application, &code, &state).await;
            if issued.as_ref().is_err_and(|error| matches!(error.refusal(), Refusal::BadCode(_))) {
                quota::bad_code(&web, &charged, &application)?;
            }
            (issued?, false)
        }
        Grant::Refresh { refresh_token } => {
            let issued = service.refresh(&application, &refresh_token).await;
            if issued.as_ref().is_err_and(|error| matches!(error.refusal(), Refusal::InvalidToken(_))) {
                quota::bad_refresh_token(&web, &application);
            }
            (issued?, true)
        }
    };
    Ok(Success(TokenAnswer::new(&issued, refreshed, web.profile(application.profile))))
}

pub(crate) const REVOKE: Summary =
    Summary::new("revokeToken", "Revoke every token of the client and user", "토큰 삭제");
pub(crate) const REVOKE_ALIAS: Summary =
    Summary::new("revokeTokenAlias", "Another path of the same", "토큰 삭제(별칭)");

/// `POST /auth/v1/token/revoke` and its alias `/auth/v1/revoke`.
pub async fn revoke(
    State(web): State<Web>,
    address: Option<Extension<ClientAddress>>,
    Extension(charged): Extension<Charged>,
    Json(body): Json<Proven<Revocation>>,
) -> Answer<()> {
    let application = prove(&web, &charged, address, &body).await?;
    let Revocation { token } = body.rest()?;
    web.service().revoke(&application, &token).await?;
    Ok(NOTHING)
}

/// Checks the credentials before every limit: a right secret is never refused because of other callers with
/// the same address.
async fn prove<T>(
    web: &Web,
    charged: &Charged,
    address: Option<Extension<ClientAddress>>,
    body: &Proven<T>,
) -> Result<Arc<ProvenApplication>, Failure> {
    let address = address.map(|Extension(address)| address);
    // Wrong secrets are looked up in the store. An address with many failures waits in a queue with other
    // such addresses.
    let _turn = match quota::has_failed_often(web, Counted::ClientSecrets, address) {
        true => Some(web.failed_lookup_permit().await?),
        false => None,
    };
    let proven = web.service().authenticate_client(&body.client_id, &body.client_secret).await;
    let application = proven.map_err(|error| match error.refusal() {
        Refusal::InvalidClient => {
            web.count_failure(Failed::ClientSecret, address);
            let refusal = Refusal::InvalidClient;
            quota::failed(web, charged, Counted::ClientSecrets, address, refusal).into()
        }
        _ => Failure::from(error),
    })?;
    charged.count_for(CountedRequest {
        client_id: application.client_id.clone(),
        channel_id: None,
        kind: UsageKind::Token,
        usage: application.usage.clone(),
    });
    quota::charge_token(web, charged, &application)?;
    Ok(application)
}

impl TokenAnswer {
    fn new(issued: &IssuedTokens, refreshed: bool, profile: Profile) -> Self {
        Self {
            access_token: issued.access.expose().to_owned(),
            refresh_token: issued.refresh.expose().to_owned(),
            token_type: TOKEN_TYPE,
            expires_in: match profile {
                Profile::Documented => ExpiresIn::Text(EXPIRES_IN_SECONDS.to_string()),
                Profile::Observed => ExpiresIn::Number(EXPIRES_IN_SECONDS),
            },
            scope: refreshed.then(|| issued.scopes.joined()),
        }
    }
}

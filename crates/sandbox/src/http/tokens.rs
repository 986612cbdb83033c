//! `POST /sandbox/v1/tokens`: a sign-in without its pages.

use axum::extract::State;
use domain::ChannelId;
use domain::application::Application;
use domain::secret::AuthCode;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use service::Service;
use service::sign_in::SignInRequest;
use service::tokens::IssuedTokens;

use super::answer::{Answer, Content, Problem};
use super::body::JsonBody;
use super::names;
use crate::catch_address::for_program;
use crate::sandbox::Sandbox;

/// The state of the sign-in. No page checks it.
const STATE: &str = "sandbox";

/// Who signs in, and to which application.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SignInFields {
    /// The user, by id, login or channel name. Default: the first person.
    user: Option<String>,
    /// The application, by id or name. Default: the oldest one.
    client: Option<String>,
}

impl SignInFields {
    /// A user and an application, by their names.
    pub fn of(user: Option<&str>, client: Option<&str>) -> Self {
        Self { user: user.map(str::to_owned), client: client.map(str::to_owned) }
    }
}

/// New tokens.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Issued {
    client_id: String,
    channel_id: String,
    redirect_uri: String,
    access_token: String,
    refresh_token: String,
    scopes: Vec<&'static str>,
}

/// A consent that was given.
pub(super) struct Consented {
    /// The application, its redirect address for its own program, and the state.
    pub request: SignInRequest,
    /// The user.
    pub user: ChannelId,
    /// The code.
    pub code: AuthCode,
}

/// A sign-in that was done.
pub(super) struct SignedIn {
    /// The application.
    pub application: Application,
    /// The redirect address of the application for its own program.
    pub redirect_uri: String,
    /// The user.
    pub user: ChannelId,
    /// The new tokens.
    pub tokens: IssuedTokens,
}

/// Lets a user consent to an application, through the operation of the sign-in pages. Without
/// `redirect_uri` it is the redirect address of the application's program.
///
/// # Errors
/// A name is unknown, or the application has no such redirect address.
pub(super) async fn consent(
    service: &Service,
    wanted: SignInFields,
    redirect_uri: Option<String>,
    state: String,
) -> Result<Consented, Problem> {
    let user = match wanted.user {
        Some(name) => names::channel(service, "user", &name).await?,
        None => names::first_person(service, "user").await?,
    };
    let application = match wanted.client {
        Some(name) => names::application(service, "client", &name).await?,
        None => names::first_application(service, "client").await?,
    };
    let details = service.application_details(&application.client_id).await?;
    let redirect_uri = match redirect_uri {
        Some(given) if details.redirect_uris.contains(&given) => given,
        Some(_) => {
            let rule =
                format!("must be one of {}: {}", application.client_id, details.redirect_uris.join(", "));
            return Err(Problem::invalid("redirectUri", rule));
        }
        None => {
            let rule = format!("{} needs a redirect address first", application.client_id);
            let usual = for_program(&details.redirect_uris).cloned();
            usual.ok_or_else(|| Problem::invalid("client", rule))?
        }
    };
    let request = SignInRequest { application, redirect_uri, state };
    let code = service.consent(&request, &user).await?;
    Ok(Consented { request, user, code })
}

/// Signs a user in to an application, through the operations of the sign-in pages.
///
/// # Errors
/// As [`consent`].
pub(super) async fn sign_in(service: &Service, wanted: SignInFields) -> Result<SignedIn, Problem> {
    let Consented { request, user, code } = consent(service, wanted, None, STATE.to_owned()).await?;
    let tokens = service.exchange_code(&request.application, code.expose(), STATE).await?;
    let SignInRequest { application, redirect_uri, .. } = request;
    Ok(SignedIn { application, redirect_uri, user, tokens })
}

/// `POST /sandbox/v1/tokens`.
pub(super) async fn issue(
    State(sandbox): State<Sandbox>,
    JsonBody(wanted): JsonBody<SignInFields>,
) -> Answer<Issued> {
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    let service = &sandbox.parts().ok_or_else(starting)?.service;
    let SignedIn { application, redirect_uri, user, tokens } = sign_in(service, wanted).await?;
    Ok(Content(Issued {
        client_id: application.client_id.to_string(),
        channel_id: user.to_string(),
        redirect_uri,
        access_token: tokens.access.expose().to_owned(),
        refresh_token: tokens.refresh.expose().to_owned(),
        scopes: tokens.scopes.iter().map(domain::Scope::name).collect(),
    }))
}

//! `POST /sandbox/v1/codes`: an authorization code without the pages of the sign-in.

use axum::extract::State;
use domain::secret::SecretHash;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use service::expire::{ExpireFilter, Expiring};

use super::answer::{Answer, Content, Problem};
use super::body::JsonBody;
use super::tokens::{Consented, SignInFields, consent};
use crate::sandbox::Sandbox;

/// The state of a code without one.
const STATE: &str = "sandbox";

/// Whose code it is, and what becomes of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CodeFields {
    /// The user, by id, login or channel name. Default: the first person.
    user: Option<String>,
    /// The application, by id or name. Default: the oldest one.
    client: Option<String>,
    /// A redirect address of the application. Default: the first one of its program.
    redirect_uri: Option<String>,
    /// The state, with which the code has to be exchanged. Default: `sandbox`.
    state: Option<String>,
    /// What has become of the code already. Default: nothing, it can be exchanged.
    end: Option<CodeEnd>,
}

/// Why a code cannot be exchanged.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CodeEnd {
    /// It expired.
    Expired,
    /// It was exchanged. Exchanged again more than 10 seconds later, it revokes the tokens.
    Used,
}

/// An authorization code.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct IssuedCode {
    client_id: String,
    channel_id: String,
    code: String,
    state: String,
    redirect_uri: String,
}

/// `POST /sandbox/v1/codes`.
pub(super) async fn issue(
    State(sandbox): State<Sandbox>,
    JsonBody(wanted): JsonBody<CodeFields>,
) -> Answer<IssuedCode> {
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    let service = &sandbox.parts().ok_or_else(starting)?.service;
    let CodeFields { user, client, redirect_uri, state, end } = wanted;
    let state = state.unwrap_or_else(|| STATE.to_owned());
    let who = SignInFields::of(user.as_deref(), client.as_deref());
    let Consented { request, user, code } = consent(service, who, redirect_uri, state).await?;
    match end {
        Some(CodeEnd::Expired) => {
            let hash = Some(SecretHash::of(code.expose()));
            let filter = ExpireFilter { hash, client_id: None, channel_id: None };
            service.expire(Expiring::Code, filter).await?;
        }
        Some(CodeEnd::Used) => {
            service.exchange_code(&request.application, code.expose(), &request.state).await?;
        }
        None => {}
    }
    Ok(Content(IssuedCode {
        client_id: request.application.client_id.to_string(),
        channel_id: user.to_string(),
        code: code.expose().to_owned(),
        state: request.state,
        redirect_uri: request.redirect_uri,
    }))
}

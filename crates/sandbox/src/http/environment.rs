//! `POST /sandbox/v1/environment`: the settings of a bot.

use axum::extract::State;
use domain::ClientId;
use domain::secret::ClientSecret;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Answer, Content, Problem};
use super::body::JsonBody;
use super::tokens::{self, SignInFields};
use crate::sandbox::{Parts, Sandbox};

/// The settings of a bot: addresses, an application with its secret, a user with new tokens.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Environment {
    /// The base URL of REST and sockets.
    base_url: String,
    /// The address of the sign-in page.
    auth_url: String,
    /// The address that exchanges codes and refresh tokens.
    token_url: String,
    client_id: String,
    client_secret: String,
    /// The redirect address of the application for its own program.
    redirect_uri: String,
    channel_id: String,
    access_token: String,
    refresh_token: String,
}

/// Signs a user in, and collects what a bot needs.
pub(super) async fn collect(
    State(sandbox): State<Sandbox>,
    JsonBody(wanted): JsonBody<SignInFields>,
) -> Answer<Environment> {
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    let parts = sandbox.parts().ok_or_else(starting)?;
    let issued = tokens::sign_in(&parts.service, wanted).await?;
    let client_id = issued.application.client_id.clone();
    let secret = secret_of(&sandbox, parts, &client_id).await?;
    let base_url = parts.base_url.clone();
    Ok(Content(Environment {
        auth_url: format!("{base_url}/account-interlock"),
        token_url: format!("{base_url}/auth/v1/token"),
        base_url,
        client_id: client_id.to_string(),
        client_secret: secret.expose().to_owned(),
        redirect_uri: issued.redirect_uri,
        channel_id: issued.user.to_string(),
        access_token: issued.tokens.access.expose().to_owned(),
        refresh_token: issued.tokens.refresh.expose().to_owned(),
    }))
}

/// The secret of an application. One whose secret the sandbox does not know gets a further one.
pub(super) async fn secret_of(
    sandbox: &Sandbox,
    parts: &Parts,
    client_id: &ClientId,
) -> Result<ClientSecret, Problem> {
    if let Some(known) = sandbox.client_secrets().remove(client_id.as_str()) {
        return Ok(known);
    }
    let secret = parts.service.add_secret(client_id, None).await?;
    sandbox.remember_client_secret(client_id.to_string(), secret.clone());
    Ok(secret)
}

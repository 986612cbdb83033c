//! `GET /sandbox/v1/sign-in`: the address of a sign-in.

use axum::extract::{RawQuery, State};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Answer, Content, Problem};
use super::names;
use crate::catch_address::for_browser;
use crate::overview::sign_in_url;
use crate::sandbox::Sandbox;

/// The address of a sign-in to an application.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignInAddress {
    client_id: String,
    /// The address, for a browser.
    url: String,
}

/// `GET /sandbox/v1/sign-in?client=…`; without a client for the oldest application.
pub(super) async fn show(State(sandbox): State<Sandbox>, RawQuery(query): RawQuery) -> Answer<SignInAddress> {
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    let parts = sandbox.parts().ok_or_else(starting)?;
    let mut client = None;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "client" => client = Some(value.into_owned()),
            name => return Err(Problem::invalid(name, "is no parameter of this call")),
        }
    }
    let application = match client {
        Some(name) => names::application(&parts.service, "client", &name).await?,
        None => names::first_application(&parts.service, "client").await?,
    };
    let details = parts.service.application_details(&application.client_id).await?;
    let rule = format!("{} needs a redirect address first", application.client_id);
    let redirect_uri = for_browser(&details.redirect_uris).ok_or_else(|| Problem::invalid("client", rule))?;
    let url = sign_in_url(&parts.base_url, &application.client_id, redirect_uri);
    let client_id = application.client_id.to_string();
    Ok(Content(SignInAddress { client_id, url }))
}

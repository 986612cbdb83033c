//! `POST /sandbox/v1/console-link`: an address that opens the console once.

use axum::extract::State;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Answer, Content, Problem};
use crate::sandbox::Sandbox;

/// An address that opens the console once.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConsoleLink {
    /// The address, for a browser. With `&to=/docs` behind it, it leads to the documentation.
    url: String,
}

/// `POST /sandbox/v1/console-link`.
pub(super) async fn make(State(sandbox): State<Sandbox>) -> Answer<ConsoleLink> {
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    Ok(Content(ConsoleLink { url: sandbox.console_url().ok_or_else(starting)? }))
}

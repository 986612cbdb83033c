//! `GET /sandbox/v1/state`.

use axum::extract::State;
use http::StatusCode;

use super::answer::{Answer, Content, Problem};
use crate::overview::Overview;
use crate::sandbox::Sandbox;

/// What the sandbox holds: people, applications with their secrets, lives, sessions, campaigns, webhooks.
pub(super) async fn show(State(sandbox): State<Sandbox>) -> Answer<Overview> {
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    let parts = sandbox.parts().ok_or_else(starting)?;
    Ok(Content(Overview::of(&sandbox, parts).await?))
}

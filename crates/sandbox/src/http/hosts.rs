//! `GET /sandbox/v1/hosts`: the fixed hosts, for `stagedoor run`.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Answer, Content};
use crate::fixed_hosts::FixedHosts;
use crate::sandbox::Sandbox;

/// The TLS of the sandbox.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownHosts {
    /// `null` without TLS.
    tls: Option<FixedHosts>,
}

/// Shows the fixed hosts and the local authority.
pub(super) async fn show(State(sandbox): State<Sandbox>) -> Answer<ShownHosts> {
    Ok(Content(ShownHosts { tls: sandbox.parts().and_then(|parts| parts.fixed_hosts.clone()) }))
}

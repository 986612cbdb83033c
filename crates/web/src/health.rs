//! Health checks for load balancers and people. Every listener of every role answers them in the envelope,
//! without credentials or quotas. They are not part of the open API, so the documents do not list them.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use service::health::{Health, HealthStatus, Part};
use service::nodes::Readiness;

use crate::Web;
use crate::envelope::{NOTHING, Success};

/// `GET /health/live`: 200 as long as the process answers. A process that does not answer should be
/// restarted.
///
/// `GET /health/ready`: 200, or 503 while the node drains, the store is unreachable or its disk is full, or
/// the bus refuses the node. A load balancer then sends new connections to other nodes.
///
/// `GET /health`: the parts of the node. 200 while the node is ready, also if a part does not work; else 503.
pub(crate) const PATHS: [(&str, &str); 3] =
    [("/health", "GET"), ("/health/live", "GET"), ("/health/ready", "GET")];

/// The routes.
pub(crate) fn paths() -> Router<Web> {
    Router::new()
        .route("/health", get(parts))
        .route("/health/live", get(async || NOTHING))
        .route("/health/ready", get(ready))
}

/// Why a node is not ready.
const fn problem(readiness: Readiness) -> Option<&'static str> {
    match readiness {
        Readiness::Ready => None,
        Readiness::Draining => Some("DRAINING"),
        Readiness::DiskFull => Some("STORE_DISK_FULL"),
        Readiness::StoreAway => Some("STORE_UNAVAILABLE"),
        Readiness::BusRefused => Some("BUS_REFUSED"),
    }
}

async fn ready(State(web): State<Web>) -> Response {
    match problem(web.service().readiness()) {
        None => NOTHING.into_response(),
        Some(word) => unavailable(format!(r#"{{"code":503,"message":"{word}"}}"#)),
    }
}

/// The state of a node, without anything that a stranger could use.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeHealth {
    /// `ok`, `degraded` or `down`.
    status: &'static str,
    started_at: String,
    parts: Vec<PartHealth>,
}

/// The state of a part.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PartHealth {
    name: &'static str,
    /// `ok` or `failing`.
    state: &'static str,
    problem: Option<&'static str>,
    last_success: Option<String>,
}

impl From<&Health> for NodeHealth {
    fn from(health: &Health) -> Self {
        let status = match health.status() {
            HealthStatus::Ok => "ok",
            HealthStatus::Degraded => "degraded",
            HealthStatus::Down => "down",
        };
        let parts = health.parts.iter().map(PartHealth::from).collect();
        Self { status, started_at: health.started_at.rfc3339(), parts }
    }
}

impl From<&Part> for PartHealth {
    fn from(part: &Part) -> Self {
        let state = if part.problem.is_some() { "failing" } else { "ok" };
        let last_success = part.last_success.map(|at| at.rfc3339());
        Self { name: part.name, state, problem: part.problem, last_success }
    }
}

async fn parts(State(web): State<Web>) -> Response {
    let health = web.service().health();
    let content = NodeHealth::from(&health);
    match problem(health.readiness) {
        None => Success(content).into_response(),
        Some(word) => {
            let envelope = serde_json::json!({ "code": 503, "message": word, "content": content });
            unavailable(envelope.to_string())
        }
    }
}

fn unavailable(envelope: String) -> Response {
    let json = HeaderValue::from_static("application/json");
    (StatusCode::SERVICE_UNAVAILABLE, [(header::CONTENT_TYPE, json)], envelope).into_response()
}

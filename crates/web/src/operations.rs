//! Endpoints for the operator's tools. They are not part of the documented interface, so they are not on the
//! router.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, header};
use service::routed_sessions::RouterComparison;

use crate::Web;
use crate::caller::Operator;
use crate::envelope::{Failure, Success};

/// The text format of Prometheus.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The paths, with the method of each.
pub(crate) const PATHS: [(&str, &str); 2] = [("/metrics", "GET"), ("/router", "GET")];

/// The routes.
pub(crate) fn paths() -> Router<Web> {
    Router::new().route("/metrics", get(metrics)).route("/router", get(router))
}

/// `GET /metrics`, with the operator's key: all metrics of this node.
async fn metrics(_: Operator, State(web): State<Web>) -> Response {
    ([(header::CONTENT_TYPE, TEXT)], web.node().metrics(web.traffic().figures()).await).into_response()
}

/// `GET /router`, with the operator's key: how the sessions in the memory of this node differ from those in
/// the store. `stagedoor doctor --deep` reads it.
async fn router(_: Operator, State(web): State<Web>) -> Result<Success<RouterComparison>, Failure> {
    Ok(Success(web.node().compare_router().await?))
}

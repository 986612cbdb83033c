//! What the operator's own tools ask a node for. It is no part of the documented interface, so it is not on
//! the router.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, header};

use crate::Web;
use crate::caller::Operator;

/// The text format that every collector reads.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The paths, with the method that each takes.
pub(crate) const PATHS: [(&str, &str); 1] = [("/metrics", "GET")];

/// Their routes.
pub(crate) fn paths() -> Router<Web> {
    Router::new().route("/metrics", get(metrics))
}

/// `GET /metrics`, the operator's key: everything that this node counts.
async fn metrics(_: Operator, State(web): State<Web>) -> Response {
    ([(header::CONTENT_TYPE, TEXT)], web.node().metrics(web.traffic().figures()).await).into_response()
}

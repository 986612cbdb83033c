//! Health checks for load balancers. Every listener of every role answers them in the envelope, without
//! credentials or quotas. They are not part of the open API, so the documents do not list them.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use service::nodes::Readiness;

use crate::Web;
use crate::envelope::NOTHING;

/// `GET /health/live`: 200 as long as the process answers. A process that does not answer should be
/// restarted.
///
/// `GET /health/ready`: 200, or 503 while the node drains, the store is unreachable or its disk is full. A
/// load balancer then sends new connections to other nodes.
pub(crate) const PATHS: [(&str, &str); 2] = [("/health/live", "GET"), ("/health/ready", "GET")];

/// The routes.
pub(crate) fn paths() -> Router<Web> {
    Router::new().route("/health/live", get(async || NOTHING)).route("/health/ready", get(ready))
}

async fn ready(State(web): State<Web>) -> Response {
    match web.service().readiness() {
        Readiness::Ready => NOTHING.into_response(),
        Readiness::Draining => unavailable(r#"{"code":503,"message":"DRAINING"}"#),
        Readiness::DiskFull => unavailable(r#"{"code":503,"message":"STORE_DISK_FULL"}"#),
        Readiness::StoreAway => unavailable(r#"{"code":503,"message":"STORE_UNAVAILABLE"}"#),
    }
}

fn unavailable(envelope: &'static str) -> Response {
    let json = HeaderValue::from_static("application/json");
    (StatusCode::SERVICE_UNAVAILABLE, [(header::CONTENT_TYPE, json)], envelope).into_response()
}

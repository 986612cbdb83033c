//! Serves the documents of the `contract`: `/openapi.json`, `/asyncapi.json`, and `/docs` for people. They
//! are built once, from the routes of [`router`].

mod page;
mod rows;

use std::sync::LazyLock;

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header;
use serde_json::Value;

use crate::{Web, contract, router};

/// How long a cache may keep a document: ten minutes, so that a new version is seen soon.
const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=600");

static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| text(&openapi()).into());
static ASYNCAPI: LazyLock<Bytes> = LazyLock::new(|| text(&asyncapi()).into());

/// The OpenAPI document.
pub fn openapi() -> Value {
    contract::openapi::document(&router::operations())
}

/// The AsyncAPI document.
pub fn asyncapi() -> Value {
    contract::asyncapi::document()
}

/// The text of a document, as it is served and checked in.
pub fn text(document: &Value) -> String {
    // A `Value` can always be serialized.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// The paths of the documents, with the method of each.
pub(crate) const PATHS: [(&str, &str); 3] =
    [("/openapi.json", "GET"), ("/asyncapi.json", "GET"), ("/docs", "GET")];

/// The routes of the documents. The documents describe the router, so these routes are not on it.
pub(crate) fn paths() -> Router<Web> {
    Router::new()
        .route("/openapi.json", get(async || json(&OPENAPI)))
        .route("/asyncapi.json", get(async || json(&ASYNCAPI)))
        .route("/docs", get(page::show))
}

fn json(document: &Bytes) -> Response {
    let content_type = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, CACHE)], document.clone()).into_response()
}

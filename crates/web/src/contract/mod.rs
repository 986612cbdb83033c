//! The contract: what the service promises to programs, as documents that programs read.
//!
//! - `/openapi.json`: every REST operation (OpenAPI 3.1). Method and path come from the router, security, scope, input
//!   and output from the handlers' signatures ([`routes`]), answers from the types that are serialized (`JsonSchema`),
//!   requests from the shape beside each reader ([`shape`]), words from `table`.
//! - `/asyncapi.json`: the socket's events and the drops webhook (AsyncAPI 3), from the types that are serialized.
//! - `/docs`: the same for people.
//!
//! All of it is built once. The documents are checked in under `docs/api/`; a test fails when they are stale.

mod asyncapi;
mod openapi;
mod operation;
mod page;
mod platform_table;
pub mod routes;
mod rows;
pub mod shape;
mod table;

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, http::HeaderValue};
use http::header;
use serde_json::Value;

pub use operation::{Operation, Security};

use crate::Web;

/// How long a cache may keep a document: ten minutes, so that a new version is seen soon.
const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=600");

static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| text(&openapi()).into());
static ASYNCAPI: LazyLock<Bytes> = LazyLock::new(|| text(&asyncapi()).into());

/// Whom to ask. Linters want all three, and a document that is the same for every operator cannot know them.
static CONTACT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::json!({
        "name": "Whoever runs this service",
        "url": "https://stagedoor.example/",
        "email": "operator@stagedoor.example",
    })
});

/// The OpenAPI document.
pub fn openapi() -> Value {
    openapi::document(crate::router::open().and(crate::router::platform()).into_operations())
}

/// The AsyncAPI document.
pub fn asyncapi() -> Value {
    asyncapi::document()
}

/// A document as it is served and checked in.
pub fn text(document: &Value) -> String {
    // A `Value` holds nothing that JSON cannot say.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// The paths of the documents, with the method that each takes.
pub(crate) const PATHS: [(&str, &str); 3] =
    [("/openapi.json", "GET"), ("/asyncapi.json", "GET"), ("/docs", "GET")];

/// The routes of the documents. They describe the router, so they are not on it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_row_and_every_row_its_operation() {
        let operations = crate::router::open().and(crate::router::platform()).into_operations();
        let served: Vec<_> = operations.iter().map(|o| format!("{} {}", o.method, o.path)).collect();
        let rows = table::SECTIONS.iter().flat_map(|section| section.rows);
        assert_eq!(served, rows.map(|row| row.0.to_owned()).collect::<Vec<_>>());
    }
}

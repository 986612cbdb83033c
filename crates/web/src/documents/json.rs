//! The documents for programs, as they are served.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use http::header;
use serde_json::Value;

use crate::{contract, router};

/// How long a cache may keep a document: ten minutes, so that a new version is seen soon.
pub(super) const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=600");

pub(super) static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| text(&openapi()).into());
pub(super) static ASYNCAPI: LazyLock<Bytes> = LazyLock::new(|| text(&asyncapi()).into());

/// The OpenAPI document.
pub fn openapi() -> Value {
    contract::openapi::document(router::operations())
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

/// The answer with this document.
pub(super) fn json(document: &Bytes) -> Response {
    let content_type = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, CACHE)], document.clone()).into_response()
}

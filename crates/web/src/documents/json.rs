//! The documents for programs, as they are served.

use std::sync::LazyLock;

use axum::http::HeaderValue;
use axum::response::Response;
use http::{HeaderMap, header};
use serde_json::Value;

use crate::constant::Constant;
use crate::{contract, router};

/// How long a cache may keep a document: ten minutes, so that a new version is seen soon.
pub(super) const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=600");

pub(super) static OPENAPI: LazyLock<Constant> = LazyLock::new(|| Constant::new(text(&openapi())));
pub(super) static ASYNCAPI: LazyLock<Constant> = LazyLock::new(|| Constant::new(text(&asyncapi())));

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
pub(super) fn json(document: &Constant, asked: &HeaderMap) -> Response {
    let mut response = document.answer(asked);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, CACHE);
    response
}

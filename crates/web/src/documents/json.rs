//! The documents for programs, as they are served.

use std::sync::LazyLock;

use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, header};
use serde_json::Value;
use service::Error;

use crate::constant::Constant;
use crate::envelope::Failure;
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

/// The answer with this document. The first request builds it, on a thread that may be held.
pub(super) async fn json(document: &'static LazyLock<Constant>, asked: &HeaderMap) -> Response {
    let Ok(document) = tokio::task::spawn_blocking(|| LazyLock::force(document)).await else {
        return Failure::from(Error::Internal("the document could not be built")).into_response();
    };
    let mut response = document.answer(asked);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, CACHE);
    response
}

//! The style sheet and the script of the console, from the binary.

use std::sync::LazyLock;

use axum::extract::RawQuery;
use axum::response::{IntoResponse, Response};
use domain::secret::SecretHash;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

const STYLE: &str = include_str!("../../../templates/console/style.css");
const SCRIPT: &str = include_str!("../../../templates/console/script.js");
/// Number of characters of a hash that are used.
const HASH_CHARS: usize = 16;

static STYLE_HASH: LazyLock<String> = LazyLock::new(|| hash(STYLE));
static SCRIPT_HASH: LazyLock<String> = LazyLock::new(|| hash(SCRIPT));

/// The address of the style sheet. A changed sheet has another address.
pub(crate) fn style_href() -> String {
    format!("/sandbox/console/style.css?v={}", *STYLE_HASH)
}

/// The address of the script.
pub(crate) fn script_href() -> String {
    format!("/sandbox/console/script.js?v={}", *SCRIPT_HASH)
}

/// `GET /sandbox/console/style.css`.
pub(super) async fn style(RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    answer(STYLE, "text/css; charset=utf-8", &STYLE_HASH, query.as_deref(), &headers)
}

/// `GET /sandbox/console/script.js`.
pub(super) async fn script(RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    answer(SCRIPT, "text/javascript; charset=utf-8", &SCRIPT_HASH, query.as_deref(), &headers)
}

fn hash(text: &str) -> String {
    SecretHash::of(text).as_str().chars().take(HASH_CHARS).collect()
}

/// The file, or only that it has not changed. Under the address with its hash it never changes.
fn answer(
    text: &'static str,
    content_type: &'static str,
    hash: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Response {
    let tag = format!("\"{hash}\"");
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let is_fixed = query.and_then(|query| query.strip_prefix("v=")) == Some(hash);
    let caching = if is_fixed { "public, max-age=31536000, immutable" } else { "no-cache" };
    let body = if is_known { "" } else { text };
    let status = if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    );
    headers.extend(HeaderValue::from_str(&tag).map(|tag| (header::ETAG, tag)));
    response
}

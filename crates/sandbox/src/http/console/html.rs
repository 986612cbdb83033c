//! HTML answers that no other site can frame, and that load nothing from other hosts.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, StatusCode, header};

use crate::http::answer::Problem;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The answer with this page, or with this part of a page.
pub(crate) fn html_answer(status: StatusCode, html: String) -> Response {
    let headers: [(HeaderName, &str); 8] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // A page without a referrer would send forms without an origin.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    (status, headers, html).into_response()
}

/// Writes a template.
pub(crate) fn write(template: &impl Template) -> Result<String, Problem> {
    let failed = |error| format!("the page cannot be written: {error}");
    template.render().map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, failed(error)))
}

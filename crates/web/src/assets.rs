//! Serves the files that the pages load, and the icon of the browser's tab.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::Refusal;
use domain::refusal::Resource;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::Web;
use crate::brand::StaticFile;
use crate::envelope::Failure;

const FILE: &str = "/assets/{name}";
const ICON: &str = "/favicon.ico";

/// The paths of the files, with the method of each.
pub(crate) const PATHS: [(&str, &str); 2] = [(FILE, "GET"), (ICON, "GET")];

/// How long a cache may keep a file: a year. A changed file has another address.
const FOREVER: &str = "public, max-age=31536000, immutable";
/// How long a cache may keep the icon: a day.
const A_DAY: &str = "public, max-age=86400";
/// A file that is opened as a page runs nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// The routes.
pub(crate) fn paths() -> Router<Web> {
    Router::new().route(FILE, get(file)).route(ICON, get(icon))
}

async fn file(State(web): State<Web>, request: Request) -> Response {
    match web.files().at(request.uri().path()) {
        Some(file) => answer(file, FOREVER, request.headers()),
        None => Failure::from(Refusal::NotFound(Resource::Path)).into_response(),
    }
}

async fn icon(State(web): State<Web>, asked: HeaderMap) -> Response {
    answer(&web.files().icon, A_DAY, &asked)
}

fn answer(file: &StaticFile, cached: &'static str, asked: &HeaderMap) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(file.content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static(cached)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ];
    let mut response = file.content.answer(asked);
    response.headers_mut().extend(headers);
    response
}

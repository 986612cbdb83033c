//! Serves the documents of the `contract`: `/openapi.json`, `/asyncapi.json`, and `/docs` for people. They
//! are built once, from the routes of `router.rs`.

mod json;
mod page;
mod rows;

use axum::Router;
use axum::routing::get;

use crate::Web;
use json::{ASYNCAPI, OPENAPI, json};

pub use json::{asyncapi, openapi, text};

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

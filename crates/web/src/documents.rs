//! Serves the documents of the `contract`: `/openapi.json` and `/asyncapi.json` for programs, and `/docs` for
//! people. They are built from the routes of `router.rs`.
//!
//! `/docs` has a page for each group of operations (`groups.rs`), one for the events, one for the webhook,
//! and guides (`guides/`). The texts of both languages stand in the files of this folder. Their numbers come
//! from the constants of the service (`figures.rs`). `samples/` has an example of each operation, which a
//! test sends.

mod blocks;
mod close_reasons;
mod events;
mod figures;
mod frame;
mod groups;
mod guide;
mod guides;
mod json;
mod korean;
mod marked;
mod notes;
mod overview;
mod place;
mod reasons;
mod reference;
mod rows;
mod samples;
mod scope_rows;
mod search;
mod sections;
mod serve;
mod texts;

use axum::Router;
use axum::routing::get;
use http::HeaderMap;

use crate::Web;
use json::{ASYNCAPI, OPENAPI, json};

pub use json::{asyncapi, openapi, text};
pub use samples::{SampleCall, sample_calls};

/// The paths of the documents, with the method of each.
pub(crate) const PATHS: [(&str, &str); 5] = [
    ("/openapi.json", "GET"),
    ("/asyncapi.json", "GET"),
    ("/docs", "GET"),
    ("/docs/{page}", "GET"),
    ("/docs/guides/{guide}", "GET"),
];

/// The addresses of the pages for people.
pub fn page_addresses() -> Vec<String> {
    place::DocsPlace::all().map(place::DocsPlace::href).collect()
}

/// The routes of the documents. The documents describe the router, so these routes are not on it.
pub(crate) fn paths() -> Router<Web> {
    Router::new()
        .route("/openapi.json", get(async |asked: HeaderMap| json(&OPENAPI, &asked).await))
        .route("/asyncapi.json", get(async |asked: HeaderMap| json(&ASYNCAPI, &asked).await))
        .route("/docs", get(serve::show))
        .route("/docs/{page}", get(serve::show))
        .route("/docs/guides/{guide}", get(serve::show))
}

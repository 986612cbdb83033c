//! The pages for people: the landing page, signing in and out, the account.
//!
//! A page is a struct with the layout (`shell`) and a template in `templates/site/`, which extends the layout
//! of `web` and calls its components. Its handler gets the reader from an extractor of `web`: `Visitor` for
//! anybody, `Person` for somebody who is signed in, `Posted` and `PostedBy` for their forms. A form answers
//! with a redirect and a notice, or with itself and what is wrong at its fields (422).

mod landing;
mod sign_in;

use axum::routing::{get, post};
use web::{Router, SIGN_IN, SIGN_OUT, Web};

/// The landing page.
const LANDING: &str = "/";

/// The paths of the pages, with their methods, for the metrics.
pub const PATHS: &[(&str, &str)] =
    &[(LANDING, "GET"), (SIGN_IN, "GET"), (SIGN_IN, "POST"), (SIGN_OUT, "POST")];

/// The routes of the pages.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(LANDING, get(landing::show))
        .route(SIGN_IN, get(sign_in::show).post(sign_in::submit))
        .route(SIGN_OUT, post(sign_in::sign_out))
}

//! `/operator`: the pages of the people who operate the service. Each handler's first argument names the role
//! that it needs, see `web::OperatorPerson`.
//!
//! Lists and details are plain data (`list.rs`, `detail.rs`), which two templates show. The frame of all of
//! these pages is in `frame.rs`.

mod application_secrets;
mod applications;
mod audit;
mod detail;
mod frame;
mod keys;
mod list;
mod load;
mod organizations;
mod overview;
mod paths;
mod people;
mod related;
mod requests;
mod webhooks;

use axum::routing::{get, post};
use web::{Router, Web};

use paths::{
    APPLICATION, APPLICATION_SECRET, APPLICATIONS, AUDIT, KEY, KEYS, ORGANIZATION, ORGANIZATIONS, OVERVIEW,
    PEOPLE, PERSON, REQUEST, REQUESTS, ROLE, WEBHOOK, WEBHOOKS,
};

/// The paths of the operator pages, with their methods, for the metrics.
pub(crate) const PATHS: [(&str, &str); 24] = [
    (OVERVIEW, "GET"),
    (REQUESTS, "GET"),
    (REQUEST, "GET"),
    (REQUEST, "POST"),
    (APPLICATIONS, "GET"),
    (APPLICATION, "GET"),
    (APPLICATION, "POST"),
    (APPLICATION_SECRET, "GET"),
    (APPLICATION_SECRET, "POST"),
    (PEOPLE, "GET"),
    (PERSON, "GET"),
    (PERSON, "POST"),
    (ROLE, "POST"),
    (ORGANIZATIONS, "GET"),
    (ORGANIZATION, "GET"),
    (ORGANIZATION, "POST"),
    (WEBHOOKS, "GET"),
    (WEBHOOK, "GET"),
    (WEBHOOK, "POST"),
    (KEYS, "GET"),
    (KEYS, "POST"),
    (KEY, "GET"),
    (KEY, "POST"),
    (AUDIT, "GET"),
];

/// The routes of the operator pages.
pub(crate) fn routes() -> Router<Web> {
    Router::new()
        .route(OVERVIEW, get(overview::show))
        .route(REQUESTS, get(requests::list))
        .route(REQUEST, get(requests::show).post(requests::decide))
        .route(APPLICATIONS, get(applications::list))
        .route(APPLICATION, get(applications::show).post(applications::change))
        .route(APPLICATION_SECRET, get(application_secrets::show).post(application_secrets::change))
        .route(PEOPLE, get(people::list))
        .route(PERSON, get(people::show).post(people::change))
        .route(ROLE, post(people::set_role))
        .route(ORGANIZATIONS, get(organizations::list))
        .route(ORGANIZATION, get(organizations::show).post(organizations::change))
        .route(WEBHOOKS, get(webhooks::list))
        .route(WEBHOOK, get(webhooks::show).post(webhooks::change))
        .route(KEYS, get(keys::list).post(keys::add))
        .route(KEY, get(keys::show).post(keys::revoke))
        .route(AUDIT, get(audit::list))
}

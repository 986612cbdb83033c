//! The pages for people: landing, signing in and out, the account, the studio, and those of operators.
//!
//! A page is a struct with the layout (`shell`) and a template in `templates/site/`, which extends the layout
//! of `web` and calls its components. Its handler gets the reader from an extractor of `web`: `Visitor` with
//! or without a sign-in, `Person` for a signed-in person, `Posted` and `PostedBy` for their forms. A form
//! answers with a redirect and a notice, or with itself and the errors at its fields (422).

mod account;
mod affected;
mod after_reset;
mod audit_words;
mod browser_sessions;
mod code;
mod confirm_at_provider;
mod confirmed;
mod connected_apps;
mod developers;
mod email_proof;
mod forms;
mod landing;
mod linked_providers;
mod operator;
mod provider_problem;
mod provider_rows;
mod provider_sign_in;
mod providers;
mod question;
mod register;
mod reset_password;
mod sign_in;
mod studio;
mod two_factor;
mod webhook_words;

use std::sync::Arc;

use axum::Extension;
use axum::routing::{get, post};
use service::connection_tests::Prober;
use upstream::Upstreams;
use web::{Router, SIGN_IN, SIGN_IN_CODE, SIGN_OUT, Web};

use crate::account::{ACCOUNT, DELETE, EMAIL, PASSWORD};
use crate::after_reset::AFTER_RESET;
use crate::browser_sessions::SESSIONS;
use crate::confirmed::CONFIRM_UPSTREAM;
use crate::connected_apps::APPS;
use crate::forms::{EMAIL_LINK, EMAIL_PROOF};
use crate::linked_providers::{LINK, UNLINK};
use crate::provider_sign_in::{BEGIN_UPSTREAM, CALLBACK, NEW_ACCOUNT};
use crate::register::REGISTER;
use crate::reset_password::RESET_PASSWORD;
use crate::two_factor::{BEGIN, CODES, CONFIRM, OFF, TWO_FACTOR};

/// The landing page.
const LANDING: &str = "/";
/// One application that a person allows something.
const APP: &str = "/account/apps/{clientId}";
/// One browser in which a person is signed in.
const SESSION: &str = "/account/sessions/{sessionId}";

/// The paths of the pages, with their methods, for the metrics.
pub fn paths() -> Vec<(&'static str, &'static str)> {
    let further = developers::PATHS.iter().chain(&operator::PATHS).chain(&studio::PATHS);
    PATHS.iter().chain(further).copied().collect()
}

const PATHS: &[(&str, &str)] = &[
    (LANDING, "GET"),
    (SIGN_IN, "GET"),
    (SIGN_IN, "POST"),
    (SIGN_OUT, "POST"),
    (SIGN_IN_CODE, "GET"),
    (SIGN_IN_CODE, "POST"),
    (BEGIN_UPSTREAM, "POST"),
    (CALLBACK, "GET"),
    (NEW_ACCOUNT, "POST"),
    (LINK, "POST"),
    (UNLINK, "POST"),
    (CONFIRM_UPSTREAM, "POST"),
    (REGISTER, "GET"),
    (REGISTER, "POST"),
    (RESET_PASSWORD, "GET"),
    (RESET_PASSWORD, "POST"),
    (ACCOUNT, "GET"),
    (EMAIL, "GET"),
    (EMAIL, "POST"),
    (EMAIL_LINK, "POST"),
    (EMAIL_PROOF, "GET"),
    (EMAIL_PROOF, "POST"),
    (AFTER_RESET, "GET"),
    (PASSWORD, "GET"),
    (PASSWORD, "POST"),
    (DELETE, "GET"),
    (DELETE, "POST"),
    (TWO_FACTOR, "GET"),
    (BEGIN, "POST"),
    (CONFIRM, "POST"),
    (CODES, "POST"),
    (OFF, "POST"),
    (APPS, "GET"),
    (APP, "GET"),
    (APP, "POST"),
    (SESSIONS, "GET"),
    (SESSIONS, "POST"),
    (SESSION, "POST"),
];

/// The routes of the pages. `upstreams` are the providers at which people can sign in. `prober` makes the
/// connections of tests.
pub fn routes(upstreams: Upstreams, prober: Arc<dyn Prober>) -> Router<Web> {
    Router::new()
        .route(LANDING, get(landing::show))
        .route(SIGN_IN, get(sign_in::show).post(sign_in::submit))
        .route(SIGN_OUT, post(sign_in::sign_out))
        .route(SIGN_IN_CODE, get(code::show).post(code::submit))
        .route(BEGIN_UPSTREAM, post(provider_sign_in::begin))
        .route(CALLBACK, get(provider_sign_in::callback))
        .route(NEW_ACCOUNT, post(provider_sign_in::register))
        .route(LINK, post(linked_providers::link))
        .route(UNLINK, post(linked_providers::unlink))
        .route(CONFIRM_UPSTREAM, post(confirm_at_provider::at_provider))
        .route(REGISTER, get(register::show).post(register::submit))
        .route(RESET_PASSWORD, get(reset_password::show).post(reset_password::submit))
        .route(ACCOUNT, get(account::show))
        .route(EMAIL, get(account::show_email).post(account::submit_email))
        .route(EMAIL_LINK, post(email_proof::send))
        .route(EMAIL_PROOF, get(email_proof::show).post(email_proof::submit))
        .route(AFTER_RESET, get(after_reset::show))
        .route(PASSWORD, get(account::show_password).post(account::submit_password))
        .route(DELETE, get(account::show_delete).post(account::submit_delete))
        .route(TWO_FACTOR, get(two_factor::show))
        .route(BEGIN, post(two_factor::begin))
        .route(CONFIRM, post(two_factor::confirm))
        .route(CODES, post(two_factor::renew))
        .route(OFF, post(two_factor::turn_off))
        .route(APPS, get(connected_apps::list))
        .route(APP, get(connected_apps::show).post(connected_apps::withdraw))
        .route(SESSIONS, get(browser_sessions::list).post(browser_sessions::end_others))
        .route(SESSION, post(browser_sessions::end))
        .merge(developers::routes())
        .merge(operator::routes())
        .merge(studio::routes())
        .layer(Extension(upstreams))
        .layer(Extension(prober))
}

//! `/developers`: applications and organizations of a signed-in person.
//!
//! A page about an application gets it from [`access::application`], which checks the person's role. Its
//! struct has a [`frame::AppFrame`], and its template extends `site/developers/frame.html`. A further tab is
//! a variant of [`frame::AppTab`] and a line in its table.

mod access;
mod close_words;
mod connection;
mod connection_texts;
mod connection_words;
mod deliveries;
mod delivery;
mod fate;
mod find;
mod find_words;
mod frame;
mod history;
mod leak;
mod list;
mod organization;
mod overview;
mod paths;
mod register;
mod scopes;
mod secrets;
mod session;
mod session_face;
mod session_texts;
mod sessions;
mod settings;
mod state;
mod usage;
mod usage_chart;
mod usage_texts;
mod webhook;
mod webhook_secrets;
mod webhook_texts;

use axum::routing::{get, post};
use web::{Router, Web};

pub(crate) use self::frame::role_name;
use self::paths::*;

/// The paths of the pages, with their methods, for the metrics.
pub(crate) const PATHS: &[(&str, &str)] = &[
    (DEVELOPERS, "GET"),
    (FIND, "GET"),
    (REGISTER, "GET"),
    (REGISTER, "POST"),
    (APPLICATION, "GET"),
    (APP_HISTORY, "GET"),
    (SETTINGS, "GET"),
    (SETTINGS, "POST"),
    (LOGO, "POST"),
    (SCOPES, "GET"),
    (SCOPES, "POST"),
    (DROPS, "POST"),
    (REQUEST, "POST"),
    (SECRETS, "GET"),
    (SECRETS, "POST"),
    (SECRET, "GET"),
    (SECRET, "POST"),
    (LEAK, "GET"),
    (LEAK, "POST"),
    (APP_SESSIONS, "GET"),
    (APP_SESSION, "GET"),
    (APP_SESSION, "POST"),
    (APP_USAGE, "GET"),
    (WEBHOOK, "GET"),
    (WEBHOOK, "POST"),
    (WEBHOOK_TEST, "POST"),
    (WEBHOOK_REMOVAL, "GET"),
    (WEBHOOK_REMOVAL, "POST"),
    (WEBHOOK_SECRETS, "POST"),
    (WEBHOOK_SECRET, "POST"),
    (DELIVERIES, "GET"),
    (DELIVERIES, "POST"),
    (DELIVERY, "GET"),
    (DELIVERY, "POST"),
    (CONNECTION, "GET"),
    (CONNECTION, "POST"),
    (MANAGE, "GET"),
    (DISABLED, "POST"),
    (OWNER, "POST"),
    (OFFER, "POST"),
    (DELETED, "POST"),
    (OFFERED, "POST"),
    (NEW_ORGANIZATION, "GET"),
    (NEW_ORGANIZATION, "POST"),
    (ORGANIZATION, "GET"),
    (ORGANIZATION_HISTORY, "GET"),
    (ORGANIZATION, "POST"),
    (VERIFICATION, "POST"),
    (ORGANIZATION_REQUEST, "POST"),
    (INVITATIONS, "POST"),
    (INVITATION, "POST"),
    (DECLINED, "POST"),
    (MEMBER, "POST"),
];

/// The routes of the pages.
pub(crate) fn routes() -> Router<Web> {
    Router::new()
        .route(DEVELOPERS, get(list::show))
        .route(FIND, get(find::show))
        .route(REGISTER, get(register::show).post(register::submit))
        .route(APPLICATION, get(overview::show))
        .route(APP_HISTORY, get(history::of_application))
        .route(ORGANIZATION_HISTORY, get(history::of_organization))
        .route(SETTINGS, get(settings::show).post(settings::submit))
        .route(LOGO, post(settings::upload))
        .route(SCOPES, get(scopes::show).post(scopes::submit))
        .route(DROPS, post(scopes::apply_for_drops))
        .route(REQUEST, post(scopes::withdraw))
        .route(SECRETS, get(secrets::show).post(secrets::add))
        .route(SECRET, get(secrets::show_one).post(secrets::change))
        .route(LEAK, get(leak::show).post(leak::end))
        .route(APP_SESSIONS, get(sessions::show))
        .route(APP_SESSION, get(session::show).post(session::end))
        .route(APP_USAGE, get(usage::show))
        .route(WEBHOOK, get(webhook::show).post(webhook::save))
        .route(WEBHOOK_TEST, post(webhook::test))
        .route(WEBHOOK_REMOVAL, get(webhook::ask_removal).post(webhook::remove))
        .route(WEBHOOK_SECRETS, post(webhook_secrets::add))
        .route(WEBHOOK_SECRET, post(webhook_secrets::change))
        .route(DELIVERIES, get(deliveries::list).post(deliveries::resend))
        .route(DELIVERY, get(delivery::show).post(delivery::resend))
        .route(CONNECTION, get(connection::show).post(connection::run))
        .route(MANAGE, get(fate::show))
        .route(DISABLED, post(fate::switch))
        .route(OWNER, post(fate::hand_over))
        .route(OFFER, post(fate::offer))
        .route(DELETED, post(fate::delete_or_restore))
        .route(OFFERED, post(list::answer_offer))
        .route(NEW_ORGANIZATION, get(organization::show_new).post(organization::make))
        .route(ORGANIZATION, get(organization::show).post(organization::rename))
        .route(VERIFICATION, post(organization::apply))
        .route(ORGANIZATION_REQUEST, post(organization::withdraw))
        .route(INVITATIONS, post(organization::invite))
        .route(INVITATION, post(organization::answer_invitation))
        .route(DECLINED, post(organization::decline_invitations))
        .route(MEMBER, post(organization::change_member))
}

//! The limits of the forms of people.

use domain::limits::{
    FAILURE_QUOTA, PASSWORD_RESET_QUOTA, REGISTRATION_QUOTA, STUDIO_FORM_QUOTA, STUDIO_PAGE_QUOTA,
    UPSTREAM_SIGN_IN_QUOTA,
};
use domain::{ChannelId, Refusal};
use service::Error;
use service::quotas::Counted;

use crate::Web;
use crate::failures::Failed;
use crate::page_request::PageRequest;
use crate::quota::block;

/// Charges a registration to the address of the client.
///
/// # Errors
/// [`Refusal::TooManyRequests`].
pub fn charge_registration(web: &Web, request: &PageRequest) -> Result<(), Refusal> {
    request.charged.take(web, Counted::Registrations, block(request.client), REGISTRATION_QUOTA)
}

/// Charges the request of a password reset to the address of the client.
///
/// # Errors
/// [`Refusal::TooManyRequests`].
pub fn charge_password_reset(web: &Web, request: &PageRequest) -> Result<(), Refusal> {
    request.charged.take(web, Counted::PasswordResets, block(request.client), PASSWORD_RESET_QUOTA)
}

/// Charges a sign-in that begins at a provider to the address of the client.
///
/// # Errors
/// [`Refusal::TooManyRequests`].
pub fn charge_upstream_sign_in(web: &Web, request: &PageRequest) -> Result<(), Refusal> {
    request.charged.take(web, Counted::UpstreamSignIns, block(request.client), UPSTREAM_SIGN_IN_QUOTA)
}

/// Charges a request for a page of the studio to its person.
///
/// # Errors
/// [`Refusal::TooManyRequests`].
pub fn charge_studio_page(
    web: &Web,
    request: &PageRequest,
    person: &ChannelId,
    page: &'static str,
) -> Result<(), Refusal> {
    request.charged.take(web, Counted::StudioPages, (person.as_str(), page), STUDIO_PAGE_QUOTA)
}

/// Charges a form of a page of the studio to its person.
///
/// # Errors
/// [`Refusal::TooManyRequests`].
pub fn charge_studio_form(
    web: &Web,
    request: &PageRequest,
    person: &ChannelId,
    page: &'static str,
) -> Result<(), Refusal> {
    request.charged.take(web, Counted::StudioForms, (person.as_str(), page), STUDIO_FORM_QUOTA)
}

/// Runs a change that checks the password of a signed-in person. Wrong passwords count for the person, so
/// that a stolen sign-in does not reveal the password.
///
/// # Errors
/// [`Refusal::TooManyRequests`], and those of the change.
pub async fn check_guess<T>(
    web: &Web,
    request: &PageRequest,
    channel: &ChannelId,
    change: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    request.charged.take(web, Counted::Confirmations, channel.as_str(), FAILURE_QUOTA)?;
    let done = change.await;
    let is_wrong = |error: &Error| matches!(error.refusal(), Refusal::Invalid(invalid) if invalid.rule == domain::Rule::RightPassword);
    if done.as_ref().is_err_and(is_wrong) {
        web.count_failure(Failed::Password, request.client);
    } else {
        let (quotas, now) = (web.service().quotas(), web.service().clock().elapsed());
        quotas.give_back(Counted::Confirmations, channel.as_str(), FAILURE_QUOTA, now);
    }
    done
}

//! The limits of the pages and forms of people.

use std::net::IpAddr;

use domain::client_address::AddressBlock;
use domain::limits::{
    FAILURE_QUOTA, FORM_QUOTA, IPV6_NETWORK_FACTOR, PAGE_QUOTA, PASSWORD_RESET_QUOTA, REGISTRATION_QUOTA,
    SEARCH_QUOTA, STUDIO_FORM_QUOTA, STUDIO_PAGE_QUOTA, UPSTREAM_SIGN_IN_QUOTA, VISITOR_FORM_QUOTA,
    VISITOR_PAGE_QUOTA,
};
use domain::quota::Quota;
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
    charge_network(web, request, Counted::Registrations, REGISTRATION_QUOTA)
}

/// Charges the request of a password reset to the address of the client.
///
/// # Errors
/// [`Refusal::TooManyRequests`].
pub fn charge_password_reset(web: &Web, request: &PageRequest) -> Result<(), Refusal> {
    charge_network(web, request, Counted::PasswordResets, PASSWORD_RESET_QUOTA)
}

/// Charges a form to the address of the client, and to the network of an IPv6 address, whose owner has many
/// addresses.
fn charge_network(web: &Web, request: &PageRequest, counted: Counted, quota: Quota) -> Result<(), Refusal> {
    let block = block(request.client);
    request.charged.take(web, counted, block, quota)?;
    match block.map(AddressBlock::network).filter(IpAddr::is_ipv6) {
        Some(network) => {
            let quota = Quota::new(quota.limit * IPV6_NETWORK_FACTOR, quota.period_s);
            request.charged.take(web, counted, network, quota)
        }
        None => Ok(()),
    }
}

/// Charges a request for a page, or a form, to its person; to the address of the client where nobody is
/// signed in.
///
/// # Errors
/// [`Refusal::TooManyRequests`].
pub(crate) fn charge_page(
    web: &Web,
    request: &PageRequest,
    person: Option<&ChannelId>,
) -> Result<(), Refusal> {
    let charged = &request.charged;
    match (person, request.is_get()) {
        (Some(person), true) => charged.take(web, Counted::Pages, person.as_str(), PAGE_QUOTA),
        (Some(person), false) => charged.take(web, Counted::Forms, person.as_str(), FORM_QUOTA),
        (None, true) => charged.take(web, Counted::VisitorPages, block(request.client), VISITOR_PAGE_QUOTA),
        (None, false) => charged.take(web, Counted::VisitorForms, block(request.client), VISITOR_FORM_QUOTA),
    }
}

/// Charges a search in the documentation to the address of the client.
///
/// # Errors
/// [`Refusal::TooManyRequests`].
pub(crate) fn charge_search(web: &Web, request: &PageRequest) -> Result<(), Refusal> {
    request.charged.take(web, Counted::Searches, block(request.client), SEARCH_QUOTA)
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
        web.service().quotas().give_back(Counted::Confirmations, channel.as_str(), FAILURE_QUOTA);
    }
    done
}

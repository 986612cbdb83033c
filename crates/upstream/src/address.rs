//! Which addresses of a provider may be called: `https`, and `http` on this machine. A provider names further
//! addresses in its discovery document. They may not lead into networks that the operator did not allow.

use domain::outbound::{Reach, WebhookUrl, Zone};

/// Every address that some configuration may allow.
const ANYWHERE: Reach = Reach { loopback: true, private: true };

/// Parses an address of a provider.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(text: &str, reach: Reach) -> Result<WebhookUrl, &'static str> {
    let url = WebhookUrl::parse(text, ANYWHERE)
        .map_err(|_| "it must be an https address, without user information and fragment")?;
    match url.host().zone() {
        Zone::Loopback if reach.loopback => Ok(url),
        _ if !url.is_secure() => Err("it must be https: http is only for this machine"),
        zone if !reach.allows(zone) => Err("it leads into a network that is not allowed for this provider"),
        _ => Ok(url),
    }
}

/// Parses an issuer.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse_issuer(text: &str) -> Result<WebhookUrl, &'static str> {
    let url = parse(text, ANYWHERE)?;
    if text.contains('?') { Err("it must have no query") } else { Ok(url) }
}

/// Where a provider may be: an issuer on this machine or in a private network allows that.
pub(crate) fn issuer_reach(issuer: &WebhookUrl, private_network: bool) -> Reach {
    let zone = issuer.host().zone();
    Reach { loopback: zone == Zone::Loopback, private: private_network || zone == Zone::Private }
}

//! Applications and their redirect addresses (`docs/spec/authorization.md#applications`).

use crate::address_fault::AddressFault;
use crate::https_url::{HttpsUrl, is_host};
use crate::limits::URL_BYTES_MAX;
use crate::quota::QuotaShare;
use crate::redirect_fault::RedirectFault;
use crate::scope::{Scope, ScopeSet};
use crate::{ChannelId, ClientId, Invalid, OrganizationId, Profile, Rule};

/// A registered application.
#[derive(Clone, Debug)]
pub struct Application {
    /// Its public id.
    pub client_id: ClientId,
    /// Its name, shown on the consent page.
    pub name: String,
    /// The organization that owns it.
    pub organization: Option<Organization>,
    /// The person who owns it. An application has one owner at most; the operator's own has none.
    pub owner: Option<ChannelId>,
    /// The scopes chosen in its settings.
    pub scopes: ScopeSet,
    /// Its own profile, if any.
    pub profile: Option<Profile>,
    /// How much of the quotas it has (`docs/spec/limits.md#quotas`).
    pub quota: QuotaShare,
    /// What it says about itself.
    pub presentation: Presentation,
}

/// What an application says about itself on the pages. Nothing of it is checked by the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presentation {
    /// Its home page.
    pub homepage: Option<HttpsUrl>,
    /// Its terms of use.
    pub terms: Option<HttpsUrl>,
    /// Its privacy policy.
    pub privacy: Option<HttpsUrl>,
    /// The version of its logo, if it has one.
    pub logo_version: Option<String>,
}

/// The owner of applications.
#[derive(Clone, Debug)]
pub struct Organization {
    /// Its id.
    pub organization_id: OrganizationId,
    /// Its name.
    pub name: String,
    /// Whether it is a verified company, which 드롭스 needs.
    pub verified: bool,
}

impl Application {
    /// The scopes for which the application asks its users.
    pub fn user_scopes(&self) -> ScopeSet {
        self.scopes.and(ScopeSet::of_users())
    }

    /// 드롭스 is granted to applications of verified organizations only (`docs/spec/drops.md#access`).
    pub fn may_use_drops(&self) -> bool {
        self.scopes.contains(Scope::Drops) && self.organization.as_ref().is_some_and(|o| o.verified)
    }
}

/// A redirect address that an application may register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectUri(String);

impl RedirectUri {
    /// Parses a redirect address: https, or http on loopback; no fragment, user information or wildcard
    /// (`docs/spec/authorization.md#applications`).
    ///
    /// # Errors
    /// `Invalid` naming `redirectUris`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match fault_of(text) {
            None => Ok(Self(text.to_owned())),
            Some(fault) => Err(Invalid::new("redirectUris", Rule::RedirectAddress(fault))),
        }
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The origin of an `http` or `https` address: scheme, host and port.
pub fn origin_of(address: &str) -> &str {
    let after_scheme = address.find("://").map_or(0, |at| at + 3);
    let end = address[after_scheme..].find(['/', '?', '#']).map_or(address.len(), |at| after_scheme + at);
    &address[..end]
}

/// Appends the parameters of a sign-in's answer to an address: `?` or `&`, then the pairs, percent-encoded.
pub fn with_query(address: &str, pairs: &[(&str, &str)]) -> String {
    let mut out = address.to_owned();
    for (index, (key, value)) in pairs.iter().enumerate() {
        let first = index == 0 && !address.contains('?');
        out.push(if first { '?' } else { '&' });
        out.push_str(key);
        out.push('=');
        percent_encode(value, &mut out);
    }
    out
}

/// Appends `value` with everything but unreserved characters percent-encoded (RFC 3986).
pub fn percent_encode(value: &str, out: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// The pattern of a redirect address in a schema. It cannot check the port or an IPv6 address.
pub const REDIRECT_URI_PATTERN: &str = concat!(
    r"^(https://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)|http://(127\.0\.0\.1|localhost|\[::1\]))",
    r"(:[0-9]{1,5})?([/?][!$-)+-;=?-\[\]-~]*)?$",
);

/// The first fault of an address. The scheme comes first: without one, nothing else means anything.
fn fault_of(text: &str) -> Option<RedirectFault> {
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return Some(RedirectFault::Scheme);
    };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let (host, port) = split_port(authority);
    let is_plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'\\' | b'"' | b'<' | b'>');
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let faults = [
        (text.len() > URL_BYTES_MAX, RedirectFault::Long),
        (text.contains('*'), RedirectFault::Wildcard),
        (text.contains('#'), RedirectFault::Of(AddressFault::Fragment)),
        (authority.contains('@'), RedirectFault::Of(AddressFault::UserInformation)),
        (!text.bytes().all(is_plain), RedirectFault::Of(AddressFault::Characters)),
        (!port.is_none_or(is_port), RedirectFault::Of(AddressFault::Port)),
        (!is_host(host), RedirectFault::Host),
        (scheme == "http" && !matches!(host, "127.0.0.1" | "localhost" | "[::1]"), RedirectFault::Scheme),
    ];
    faults.into_iter().find_map(|(is_there, fault)| is_there.then_some(fault))
}

fn is_scheme(scheme: &str) -> bool {
    matches!(scheme, "https" | "http")
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    let host_end = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[host_end..].find(':') {
        Some(at) => (&authority[..host_end + at], Some(&authority[host_end + at + 1..])),
        None => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_addresses_that_may_be_registered() {
        let check = |text: &str, fault: Option<RedirectFault>| {
            let expected = fault.map(|fault| Invalid::new("redirectUris", Rule::RedirectAddress(fault)));
            assert_eq!(RedirectUri::parse(text).err(), expected, "{text}");
        };
        for text in [
            "https://bot.example/callback",
            "https://bot.example:8443/callback?kept=1",
            "https://[2001:db8::1]/callback",
            "http://127.0.0.1:9999/callback",
            "http://localhost:9999/callback",
            "http://[::1]:9999/callback",
        ] {
            check(text, None);
        }
        use RedirectFault::{Host, Long, Of, Scheme, Wildcard};
        for (text, fault) in [
            ("http://bot.example/callback", Scheme),
            ("http://127.0.0.1.bot.example/callback", Scheme),
            ("http://localhost@bot.example/callback", Of(AddressFault::UserInformation)),
            ("https://user@bot.example/callback", Of(AddressFault::UserInformation)),
            ("https://bot.example/callback#top", Of(AddressFault::Fragment)),
            ("https://bot.example#top", Of(AddressFault::Fragment)),
            ("https://*.bot.example/callback", Wildcard),
            ("https://bot.example:0/", Of(AddressFault::Port)),
            ("https://bot.example:99999/", Of(AddressFault::Port)),
            ("https:///callback", Host),
            ("https://bot.example\\@evil.example/", Of(AddressFault::UserInformation)),
            ("https://bot.example/\\", Of(AddressFault::Characters)),
            ("https://한글.example/", Of(AddressFault::Characters)),
            ("javascript://bot.example/%0aalert(1)", Scheme),
            ("bot.example/callback", Scheme),
            (" https://bot.example/", Scheme),
            ("", Scheme),
            (&format!("https://bot.example/{}", "a".repeat(URL_BYTES_MAX)), Long),
        ] {
            check(text, Some(fault));
        }
    }

    #[test]
    fn the_origin_ends_before_path_query_or_fragment() {
        let check = |address, expected| assert_eq!(origin_of(address), expected);
        check("http://127.0.0.1:9999/callback", "http://127.0.0.1:9999");
        check("https://a.example?x=/", "https://a.example");
        check("https://a.example", "https://a.example");
    }

    #[test]
    fn pairs_are_added_to_an_address_with_or_without_a_query() {
        assert_eq!(
            with_query("http://a/cb", &[("code", "x"), ("state", "a b&c=가")]),
            "http://a/cb?code=x&state=a%20b%26c%3D%EA%B0%80"
        );
        assert_eq!(with_query("http://a/cb?k=1", &[("code", "x")]), "http://a/cb?k=1&code=x");
    }
}

//! Addresses of pages of others: an application's home page, an operator's terms.

use crate::limits::URL_BYTES_MAX;
use crate::{Invalid, Rule};

/// The address of a page that people are led to: `https`, without user information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpsUrl(String);

impl HttpsUrl {
    /// Parses an address.
    ///
    /// # Errors
    /// `Invalid` naming `field`.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, Invalid> {
        if text.len() <= URL_BYTES_MAX && is_https_url(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::new(field, Rule::HttpsUrl))
        }
    }

    /// An address that was stored.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host, with its port.
    pub fn host(&self) -> &str {
        let rest = self.0.strip_prefix(SCHEME).unwrap_or(&self.0);
        &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]
    }
}

const SCHEME: &str = "https://";

/// The pattern of an address in a schema. It cannot check the port or an IPv6 address.
pub const HTTPS_URL_PATTERN: &str =
    r"^https://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)(:[0-9]{1,5})?([/?#][!#-;=?-\[\]-~]*)?$";

fn is_https_url(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'\\' | b'"' | b'<' | b'>'));
    let Some(rest) = text.strip_prefix(SCHEME) else { return false };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let host_end = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[host_end..].split_once(':') {
        Some((name, port)) => (&authority[..host_end + name.len()], Some(port)),
        None => (authority, None),
    };
    let is_port = |port: &str| {
        port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    plain && is_host(host) && port.is_none_or(is_port)
}

/// No `@`, because user information before the host could look like a host.
pub(crate) fn is_host(host: &str) -> bool {
    let name = !host.is_empty()
        && !host.starts_with(['.', '-'])
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    let v6 = host.starts_with('[')
        && host.ends_with(']')
        && host[1..host.len() - 1].parse::<std::net::Ipv6Addr>().is_ok();
    name || v6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_without_user_information() {
        for (text, host) in [
            ("https://bot.example", Some("bot.example")),
            ("https://bot.example:8443/terms?lang=ko#top", Some("bot.example:8443")),
            ("https://[2001:db8::1]:1/x", Some("[2001:db8::1]:1")),
            ("https://bot.example/%EA%B0%80", Some("bot.example")),
            ("http://bot.example/", None),
            ("https://user@bot.example/", None),
            ("https://bot.example:0/", None),
            ("https://bot.example:+1/", None),
            ("https://bot.example:99999/", None),
            ("https://bot.example/\"x", None),
            ("https://bot.example/<x>", None),
            ("https://bot.example\\@evil.example", None),
            ("https:///x", None),
            ("https://", None),
            ("https://한글.example", None),
            ("https://a.example/ b", None),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("//bot.example", None),
            ("", None),
        ] {
            let url = HttpsUrl::parse("homepageUrl", text);
            assert_eq!(url.as_ref().ok().map(HttpsUrl::host), host, "{text}");
        }
        let long = format!("https://a.example/{}", "x".repeat(URL_BYTES_MAX));
        assert_eq!(HttpsUrl::parse("termsUrl", &long), Err(Invalid::new("termsUrl", Rule::HttpsUrl)));
    }
}

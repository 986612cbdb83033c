//! The host names that a sandbox accepts.
//!
//! A web page can point its own name at 127.0.0.1 after it was loaded (DNS rebinding), and may then read
//! every answer of a server at that address. The browser sends the page's name in `Host`, so a sandbox
//! accepts only names that certainly are its own.

use std::net::{IpAddr, SocketAddr};

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use service::{Clock, LogLimit};

/// The accepted host names, besides those of loopback.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// In lower case, without a port.
    names: Vec<String>,
    /// Whether every IP address is accepted. A web page's name is never an IP address.
    addresses: bool,
}

impl Hosts {
    /// The hosts of a sandbox: the address that it listens on (every address if it listens on all), the host
    /// of its base URL, and further names.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn of(listen: IpAddr, base_url: Option<&str>, further: &[String]) -> Result<Self, String> {
        let mut hosts = Self { names: vec![listen.to_string()], addresses: listen.is_unspecified() };
        let base = base_url.and_then(|url| url.split_once("://"));
        hosts.names.extend(base.and_then(|(_, authority)| name_of(authority)));
        for host in further {
            let name =
                name_of(host).ok_or(format!("--allow-host {host}: it must be a host name or an address"))?;
            hosts.names.push(name);
        }
        Ok(hosts)
    }

    /// Whether every host that a request names is accepted. A request without a host does not come from a
    /// browser.
    fn answer(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let of_target = uri.authority().map(Authority::as_str);
        let mut given =
            headers.get_all(header::HOST).into_iter().map(|value| value.to_str().unwrap_or_default());
        given.all(|host| self.allows(host)) && of_target.is_none_or(|host| self.allows(host))
    }

    /// Whether a host, with or without a port, is accepted.
    fn allows(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        let address = name.parse::<IpAddr>().ok();
        let is_loopback = match address {
            Some(address) => address.to_canonical().is_loopback(),
            None => name == "localhost" || name.ends_with(".localhost"),
        };
        is_loopback || (self.addresses && address.is_some()) || self.names.contains(&name)
    }
}

/// Accepts requests for the configured names, or every request, and logs refused ones once a minute.
pub struct HostFilter {
    allowed: Option<Hosts>,
    clock: Clock,
    refused: LogLimit,
}

impl HostFilter {
    /// A filter for these hosts; `None` admits every host.
    pub fn new(allowed: Option<Hosts>, clock: Clock) -> Self {
        Self { allowed, clock, refused: LogLimit::default() }
    }

    /// Whether a request is accepted.
    pub(crate) fn admits(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let admitted = self.allowed.as_ref().is_none_or(|hosts| hosts.answer(uri, headers));
        if !admitted && let Some(times) = self.refused.due(self.clock.monotonic()) {
            tracing::warn!(times, "refused requests for a foreign host: --allow-host adds hosts");
        }
        admitted
    }
}

/// The host that a request names, with its port if it names one.
pub(crate) fn named_host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let given = || headers.get(header::HOST)?.to_str().ok();
    uri.authority().map(Authority::as_str).or_else(given)
}

/// The name in `name`, `name:port` or `[address]:port`, in lower case.
fn name_of(host: &str) -> Option<String> {
    // In an option, an address without a port may lack brackets.
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    let authority = host.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'))?;
    let name = authority.host().trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    let name =
        name.parse::<IpAddr>().map_or_else(|_| name.to_ascii_lowercase(), |address| address.to_string());
    (!name.is_empty()).then_some(name)
}

/// The warning for a sandbox that other machines can reach; `None` on loopback.
pub fn exposure(listen: SocketAddr) -> Option<String> {
    (!listen.ip().to_canonical().is_loopback()).then(|| {
        format!(
            "this sandbox listens on {listen}, which is not loopback: whoever reaches it can sign in as anybody without a \
             password and use the secrets that are known of every sandbox. Keep it in a network that you trust"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listen: &str, base_url: Option<&str>, further: &[&str]) -> Hosts {
        let further: Vec<_> = further.iter().map(|&name| name.to_owned()).collect();
        Hosts::of(listen.parse().expect("an address"), base_url, &further).expect("good names")
    }

    #[test]
    fn loopback_is_answered_and_other_names_are_not() {
        let hosts = hosts("127.0.0.1", None, &[]);
        for name in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.:8080",
            "demo.localhost:1",
            "127.0.0.1:8080",
            "127.8.9.10",
            "[::1]:8080",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(hosts.allows(name), "{name}");
        }
        for name in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "evillocalhost",
            "127.0.0.1.evil.example",
            "192.0.2.1",
            "0.0.0.0:8080",
            "[::]:8080",
            "[2001:db8::1]:8080",
            "localhost@evil.example",
            "evil.example@localhost",
            "local host",
            "localhost/evil",
            "127.1",
        ] {
            assert!(!hosts.allows(name), "{name}");
        }
    }

    #[test]
    fn configured_names_are_answered() {
        let hosts = hosts("192.0.2.7", Some("https://Sandbox.example:8443"), &["dev.example", "2001:db8::1"]);
        for name in [
            "192.0.2.7:8080",
            "sandbox.example",
            "sandbox.example:8443",
            "DEV.example:80",
            "[2001:db8::1]:80",
        ] {
            assert!(hosts.allows(name), "{name}");
        }
        assert!(!hosts.allows("192.0.2.8") && !hosts.allows("sub.dev.example"));
        assert!(Hosts::of(IpAddr::from([127, 0, 0, 1]), None, &["a b".to_owned()]).is_err());
    }

    #[test]
    fn a_sandbox_on_every_address_answers_addresses_and_no_names() {
        let hosts = hosts("0.0.0.0", None, &[]);
        assert!(
            hosts.allows("192.0.2.1:8080") && hosts.allows("[2001:db8::1]") && hosts.allows("0.0.0.0:8080")
        );
        assert!(!hosts.allows("evil.example"));
    }

    #[test]
    fn every_name_of_a_request_counts() {
        let hosts = Hosts::default();
        let check = |target: &'static str, given: &[&'static str], expected: bool| {
            let given = given.iter().map(|host| (header::HOST, http::HeaderValue::from_static(host)));
            let headers = HeaderMap::from_iter(given);
            assert_eq!(hosts.answer(&Uri::from_static(target), &headers), expected, "{target} {headers:?}");
        };
        check("/", &["localhost"], true);
        check("/", &[], true);
        check("/", &["evil.example"], false);
        check("http://localhost/", &["localhost"], true);
        check("http://evil.example/", &["localhost"], false);
        check("http://localhost/", &["evil.example"], false);
        let mut two = HeaderMap::new();
        two.append(header::HOST, http::HeaderValue::from_static("localhost"));
        two.append(header::HOST, http::HeaderValue::from_static("evil.example"));
        assert!(!hosts.answer(&Uri::from_static("/"), &two));
    }

    #[test]
    fn only_what_is_not_loopback_is_exposed() {
        for (listen, exposed) in [
            ("127.0.0.1:1", false),
            ("[::1]:1", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("192.0.2.1:1", true),
        ] {
            assert_eq!(exposure(listen.parse().expect("an address")).is_some(), exposed, "{listen}");
        }
    }
}

//! The address of NATS: servers and login.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::percent_decode_str;

/// The default port.
const PORT: u16 = 4_222;
/// Maximum number of servers of an address.
const SERVERS_MAX: usize = 16;

/// The address of NATS: `nats://user:password@host:port`, or a token before the `@`, and further servers of
/// the same cluster after commas. `tls://` demands TLS. `Debug` and `Display` hide the login.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Whether TLS is demanded.
    pub(crate) tls: bool,
    pub(crate) servers: Vec<Server>,
    pub(crate) login: Login,
}

/// A server: its host and its port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// How the client signs in.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    Anonymous,
    Token(String),
    User { user: String, password: String },
}

/// The fault of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// The address begins with neither `nats://` nor `tls://`.
    #[error("must begin with nats:// or tls://")]
    Scheme,
    /// A server is missing, a port is invalid, or there are too many servers.
    #[error("must name its servers as host or host:port, separated by commas")]
    Servers,
    /// A `%` without two hexadecimal digits after it, or text that is not UTF-8.
    #[error("has a wrong %-escape in front of its @")]
    Login,
}

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    /// The fault of the address, without its text.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let (tls, rest) = match (text.strip_prefix("tls://"), text.strip_prefix("nats://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(BadAddress::Scheme),
        };
        let (login, hosts) = match rest.rsplit_once('@') {
            Some((login, hosts)) => (Login::parse(login)?, hosts),
            None => (Login::Anonymous, rest),
        };
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        let servers: Vec<_> = hosts.split(',').map(Server::parse).collect::<Result<_, _>>()?;
        if servers.len() > SERVERS_MAX { Err(BadAddress::Servers) } else { Ok(Self { tls, servers, login }) }
    }
}

impl Server {
    pub(crate) fn parse(text: &str) -> Result<Self, BadAddress> {
        let text = text.strip_prefix("nats://").or(text.strip_prefix("tls://")).unwrap_or(text);
        // An IPv6 address is in brackets, because it contains colons.
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or(BadAddress::Servers)?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| BadAddress::Servers)?,
            None if port.is_empty() => PORT,
            None => return Err(BadAddress::Servers),
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':');
        if host.is_empty() || !host.bytes().all(plain) {
            return Err(BadAddress::Servers);
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl Login {
    fn parse(text: &str) -> Result<Self, BadAddress> {
        Ok(match text.split_once(':') {
            Some((user, password)) => {
                Self::User { user: percent_decode(user)?, password: percent_decode(password)? }
            }
            None => Self::Token(percent_decode(text)?),
        })
    }
}

/// Decodes `%XX`. A `%` without two hexadecimal digits is refused.
fn percent_decode(text: &str) -> Result<String, BadAddress> {
    let is_escape = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_escape) {
        return Err(BadAddress::Login);
    }
    percent_decode_str(text).decode_utf8().map(Cow::into_owned).map_err(|_| BadAddress::Login)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls { "tls://" } else { "nats://" })?;
        if self.login != Login::Anonymous {
            f.write_str("…@")?;
        }
        for (at, server) in self.servers.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            server.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let shown = |text: &str| Address::parse(text).map(|address| address.to_string());
        for (text, expected) in [
            ("nats://bus", Ok("nats://bus:4222")),
            ("nats://bus:1234/", Ok("nats://bus:1234")),
            ("nats://me:s%40cret@a,nats://b:1,[::1]:7", Ok("nats://…@a:4222,b:1,[::1]:7")),
            ("nats://t0ken@10.0.0.1", Ok("nats://…@10.0.0.1:4222")),
            ("tls://bus,tls://b:1", Ok("tls://bus:4222,b:1")),
            ("http://bus", Err(BadAddress::Scheme)),
            ("nats://", Err(BadAddress::Servers)),
            ("nats://a,", Err(BadAddress::Servers)),
            ("nats://a:x", Err(BadAddress::Servers)),
            ("nats://a:70000", Err(BadAddress::Servers)),
            ("nats://[::1", Err(BadAddress::Servers)),
            ("nats://a b", Err(BadAddress::Servers)),
            ("nats://a/b", Err(BadAddress::Servers)),
            ("nats://u%4:p@a", Err(BadAddress::Login)),
            ("nats://%ff@a", Err(BadAddress::Login)),
        ] {
            assert_eq!(shown(text), expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn logins_are_parsed_and_never_shown() {
        let address = Address::parse("nats://me:s%40cr%3Aet@a").expect("good");
        assert!(address.login == Login::User { user: "me".into(), password: "s@cr:et".into() });
        assert!(Address::parse("nats://s3cret@a").expect("good").login == Login::Token("s3cret".into()));
        assert!(!format!("{address:?} {address}").contains("cr"));
    }

    #[test]
    fn fuzz_addresses() {
        let seeds = ["nats://user:p%40ss@a:1,[::1]:2,nats://c/", "nats://token@host", "tls://x"];
        let tokens = ["nats://", "@", ":", "%", ",", "["];
        fuzz::Fuzz::new("addresses of NATS").seeds(seeds).tokens(tokens).run(|input| {
            let address = Address::parse(&String::from_utf8_lossy(input));
            if let Ok(address) = &address {
                let shown = address.to_string();
                assert!(Address::parse(&shown.replace("…", "x:y")).is_ok(), "{shown}");
            }
            address.err().map(|error| error.to_string())
        });
    }
}

//! The targets of webhooks: addresses that may be registered, and addresses that may be connected to
//! (`docs/spec/drops.md#targets`, `docs/adr/0015-where-webhooks-may-go.md`).
//!
//! A publisher chooses the address, and this service calls it from inside the operator's network. So an
//! address is parsed strictly, in one spelling only. [`Zone`] judges it when it is registered and again
//! before each connection, because the DNS name may have been changed to another address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address_fault::AddressFault;
use crate::limits::URL_BYTES_MAX;
use crate::{Invalid, Rule};

/// Maximum length of a DNS name (RFC 1035, 2.3.4) without the final dot, in bytes.
const NAME_BYTES_MAX: usize = 253;
/// Maximum length of one label of a DNS name, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// The addresses that the configuration allows besides public ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// This machine: 127.0.0.0/8, `::1`, `localhost`.
    pub loopback: bool,
    /// The operator's own networks: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7, and names that exist
    /// only in such networks.
    pub private: bool,
}

impl Reach {
    /// Public addresses only.
    pub const PUBLIC: Self = Self { loopback: false, private: false };

    /// Whether addresses in `zone` may be called.
    pub const fn allows(self, zone: Zone) -> bool {
        match zone {
            Zone::Public => true,
            Zone::Loopback => self.loopback,
            Zone::Private => self.private,
            Zone::Never => false,
        }
    }
}

/// The zone of an address or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Any host on the internet.
    Public,
    /// This machine.
    Loopback,
    /// A network that belongs to the operator.
    Private,
    /// Addresses that no configuration allows: metadata services, link-local, carriers' networks, multicast,
    /// addresses that contain another address, documentation, and every other reserved address.
    Never,
}

/// IPv4 networks that are not public, as address, prefix length and zone (IANA's special-purpose registry,
/// RFC 6890).
const V4: [(Ipv4Addr, u32, Zone); 18] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, Zone::Never), // "this network": Linux treats 0.0.0.0 as loopback
    (Ipv4Addr::new(10, 0, 0, 0), 8, Zone::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Zone::Never), // carriers' networks; metadata of one cloud
    (Ipv4Addr::new(127, 0, 0, 0), 8, Zone::Loopback),
    (Ipv4Addr::new(168, 63, 129, 16), 32, Zone::Never), // looks public, but one cloud uses it for the host
    (Ipv4Addr::new(169, 254, 0, 0), 16, Zone::Never),   // link-local; metadata of most clouds
    (Ipv4Addr::new(172, 16, 0, 0), 12, Zone::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Zone::Never), // protocol assignments; metadata of one cloud
    (Ipv4Addr::new(192, 0, 2, 0), 24, Zone::Never), // documentation
    (Ipv4Addr::new(192, 31, 196, 0), 24, Zone::Never), // AS112 sinks
    (Ipv4Addr::new(192, 52, 193, 0), 24, Zone::Never), // AMT
    (Ipv4Addr::new(192, 88, 99, 0), 24, Zone::Never), // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16, Zone::Private),
    (Ipv4Addr::new(192, 175, 48, 0), 24, Zone::Never), // AS112 sinks
    (Ipv4Addr::new(198, 18, 0, 0), 15, Zone::Never),   // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24, Zone::Never), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24, Zone::Never),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 3, Zone::Never),     // multicast, reserved, broadcast
];

/// IPv6 networks, the narrow ones first. Every other address is [`Zone::Never`]: mapped and compatible IPv4,
/// NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard (100::/64), SRv6 (5f00::/16), link-local, site-local,
/// multicast.
const V6: [(Ipv6Addr, u32, Zone); 10] = [
    (Ipv6Addr::LOCALHOST, 128, Zone::Loopback),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32, Zone::Never), // metadata of a cloud, inside the private ones
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0), 32, Zone::Never),  // metadata of another
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Zone::Private),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Zone::Never), // Teredo, benchmarking, ORCHID and the like
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Zone::Never), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, Zone::Never), // 6to4: an IPv4 address within
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48, Zone::Never), // AS112 sinks
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Zone::Never), // documentation
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, Zone::Public), // the only space that registries assign
];

impl Zone {
    /// The zone of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => V4
                .iter()
                .find(|(network, prefix, _)| shares_prefix_v4(address, *network, *prefix))
                .map_or(Self::Public, |(_, _, zone)| *zone),
            // An ISATAP host is an IPv4 address after a fixed word, in any network.
            IpAddr::V6(address) if is_isatap(address) => Self::Never,
            IpAddr::V6(address) => V6
                .iter()
                .find(|(network, prefix, _)| shares_prefix_v6(address, *network, *prefix))
                .map_or(Self::Never, |(_, _, zone)| *zone),
        }
    }

    /// The zone of a DNS name in lower case, judged by the name alone. [`Zone::Public`] means only that its
    /// addresses have to be judged.
    fn of_name(name: &str) -> Self {
        let ends_with = |words: &[&str]| {
            words.iter().any(|word| {
                name.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            })
        };
        if ends_with(&["localhost", "localdomain"]) {
            Self::Loopback
        } else if !name.contains('.') || ends_with(&PRIVATE_NAMES) {
            Self::Private
        } else {
            Self::Public
        }
    }
}

/// Suffixes of names that exist only in private networks (RFC 6762 with its appendix G, RFC 8375; ICANN
/// 2024).
const PRIVATE_NAMES: [&str; 8] =
    ["local", "internal", "home.arpa", "intranet", "private", "corp", "home", "lan"];

const fn shares_prefix_v4(address: Ipv4Addr, network: Ipv4Addr, prefix: u32) -> bool {
    (address.to_bits() ^ network.to_bits()) >> (u32::BITS - prefix) == 0
}

const fn shares_prefix_v6(address: Ipv6Addr, network: Ipv6Addr, prefix: u32) -> bool {
    (address.to_bits() ^ network.to_bits()) >> (u128::BITS - prefix) == 0
}

const fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, flags, word, _, _] = address.segments();
    matches!(flags, 0 | 0x100 | 0x200 | 0x300) && word == 0x5efe
}

/// Why an attempt got no answer. The names are part of answers, metrics and the store, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFailure {
    /// The name of the host was not found.
    Dns,
    /// The host has no address that may be called, or its address is no longer allowed.
    Address,
    /// The connection was not accepted.
    Connect,
    /// TLS failed: the certificate is not trusted, is for another name or has expired, or the peer does not
    /// speak TLS.
    Tls,
    /// The whole answer did not arrive before the deadline.
    Timeout,
    /// The connection ended before the whole answer had arrived.
    Closed,
    /// The answer was not HTTP, or its head or the whole answer was too large.
    Protocol,
}

impl SendFailure {
    /// Every failure.
    pub const ALL: [Self; 7] =
        [Self::Dns, Self::Address, Self::Connect, Self::Tls, Self::Timeout, Self::Closed, Self::Protocol];

    /// The failure's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Address => "address",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Protocol => "protocol",
        }
    }

    /// The failure with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| failure.name() == name)
    }
}

/// The host of a webhook's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A DNS name, in lower case.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl Host {
    /// The host's zone. The zone of a name is judged by the name alone.
    pub fn zone(&self) -> Zone {
        match self {
            Self::Name(name) => Zone::of_name(name),
            Self::Address(address) => Zone::of(*address),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(inside) = text.strip_prefix('[') {
            let address: Ipv6Addr = inside.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(address.into()));
        }
        // Other programs read a host that ends in a number as an IPv4 address, in many spellings. Here only
        // one spelling is valid: `Ipv4Addr` accepts neither octal nor hexadecimal numbers, nor fewer than
        // four.
        let last = text.rsplit('.').next().unwrap_or(text);
        if last.starts_with(|first: char| first.is_ascii_digit()) && is_number(last) {
            let address: Ipv4Addr = text.parse().ok()?;
            return Some(Self::Address(address.into()));
        }
        is_name(text).then(|| Self::Name(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Decimal digits, or `0x` and hexadecimal ones.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => label.bytes().all(|b| b.is_ascii_digit()),
    }
}

/// Letters, digits and hyphens between single dots. A dot at the end would be a second spelling of a name.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= NAME_BYTES_MAX && text.split('.').all(is_label)
}

/// The address of a webhook, with its original text. `Debug` shows only [`WebhookUrl::origin`], because path
/// and query may contain a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    text: String,
    secure: bool,
    host: Host,
    port: u16,
    /// Index of the path in the text.
    path_at: usize,
}

impl WebhookUrl {
    /// Parses an address: `https` for public hosts, at most 2,048 bytes, no user information, no fragment.
    /// Addresses that `reach` allows may also be `http`.
    ///
    /// # Errors
    /// `Invalid` naming `url`.
    pub fn parse(text: &str, reach: Reach) -> Result<Self, Invalid> {
        if text.len() > URL_BYTES_MAX {
            return Err(Invalid::new("url", Rule::Bytes { max: URL_BYTES_MAX }));
        }
        Self::read(text, reach).map_err(|fault| Invalid::new("url", Rule::WebhookAddress(fault)))
    }

    fn read(text: &str, reach: Reach) -> Result<Self, AddressFault> {
        let (scheme, rest) = text.split_once("://").ok_or(AddressFault::Scheme)?;
        let secure = scheme.eq_ignore_ascii_case("https");
        if !secure && !scheme.eq_ignore_ascii_case("http") {
            return Err(AddressFault::Scheme);
        }
        let authority_ends = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(authority_ends);
        if authority.contains('@') {
            return Err(AddressFault::UserInformation);
        }
        if path.contains('#') {
            return Err(AddressFault::Fragment);
        }
        if !is_path_and_query(path) {
            return Err(AddressFault::Characters);
        }
        let (host, port) = split_port(authority);
        let host = Host::parse(host).ok_or(AddressFault::Host)?;
        let port = match port {
            Some(digits) => read_port(digits).ok_or(AddressFault::Port)?,
            None if secure => 443,
            None => 80,
        };
        let url = Self { secure, port, path_at: text.len() - path.len(), text: text.to_owned(), host };
        match url.host.zone() {
            zone if !reach.allows(zone) => Err(AddressFault::Zone),
            Zone::Public if !secure => Err(AddressFault::Scheme),
            _ => Ok(url),
        }
    }

    /// Whether a delivery to this URL may connect to `address`, an address of its host. Without TLS no
    /// delivery goes to a public address, even if the name looked private.
    pub fn may_connect(&self, address: IpAddr, reach: Reach) -> bool {
        let zone = Zone::of(address);
        reach.allows(zone) && (self.secure || zone != Zone::Public)
    }

    /// The original text. It may contain a secret, so it is only for its publisher and the store.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is `https`.
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The port, or the scheme's default port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The value of the header `Host`: the host, and the port if it is not the scheme's default.
    pub fn authority(&self) -> String {
        match (self.secure, self.port) {
            (true, 443) | (false, 80) => self.host.to_string(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }

    /// Scheme, host and port, which may be logged.
    pub fn origin(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// The original path and query; `/` if there is no path. They may contain a secret.
    pub fn path_and_query(&self) -> String {
        let given = &self.text[self.path_at..];
        if given.starts_with('/') { given.to_owned() } else { format!("/{given}") }
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({})", self.origin())
    }
}

/// The host, with the brackets of an IPv6 address, and the text after its colon.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    let host_ends = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[host_ends..].find(':') {
        Some(at) => (&authority[..host_ends + at], Some(&authority[host_ends + at + 1..])),
        None => (authority, None),
    }
}

/// Digits only: `parse` alone would accept `+80`.
fn read_port(digits: &str) -> Option<u16> {
    let port: u16 = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
    (port > 0).then_some(port)
}

/// The characters of RFC 3986, each `%` with its two digits.
fn is_path_and_query(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_escape =
        |at: usize| bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    bytes.iter().enumerate().all(|(at, byte)| match byte {
        b'%' => is_escape(at),
        b'/' | b'?' | b':' | b'@' | b'-' | b'.' | b'_' | b'~' => true,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => true,
        byte => byte.is_ascii_alphanumeric(),
    })
}

#[cfg(test)]
#[path = "outbound_tests.rs"]
mod tests;

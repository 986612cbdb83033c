//! The client address that a request is counted under (`docs/operating.md#client-addresses`).
//!
//! The client is the TCP peer. If the peer is a trusted proxy, the client is the right-most address of
//! `X-Forwarded-For` or of `Forwarded` (RFC 7239) that is not a trusted proxy's. The client itself may have
//! written everything to the left of it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net};

/// Prefix length of IPv6 addresses that count as one caller: the smallest network that a subscriber is given.
const IPV6_BLOCK_BITS: u8 = 64;
/// Prefix length of the IPv6 networks that sites are given.
const IPV6_NETWORK_BITS: u8 = 48;
/// Prefix length of the network of IPv4 addresses within IPv6 (::ffff:0:0/96).
const MAPPED_BITS: u8 = 96;

/// A block of addresses that counts as one caller: an IPv4 address, or the /64 of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressBlock(IpAddr);

impl From<IpAddr> for AddressBlock {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let mask = u128::MAX << (Ipv6Addr::BITS - u32::from(IPV6_BLOCK_BITS));
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
            v4 => v4,
        })
    }
}

impl AddressBlock {
    /// The network that the block is part of: the /48 of an IPv6 address, the largest that a site is usually
    /// given. An IPv4 address stands for itself.
    pub fn network(self) -> IpAddr {
        match self.0 {
            IpAddr::V6(address) => {
                let mask = u128::MAX << (Ipv6Addr::BITS - u32::from(IPV6_NETWORK_BITS));
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
            v4 => v4,
        }
    }
}

impl fmt::Display for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(address) => write!(f, "{address}/{IPV6_BLOCK_BITS}"),
        }
    }
}

/// The proxies that may name their clients: addresses and networks. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// The headers of a request that name clients, each line by itself, in their order.
#[derive(Clone, Copy, Debug)]
pub struct ForwardingHeaders<X, F> {
    /// The lines of `X-Forwarded-For`.
    pub x_forwarded_for: X,
    /// The lines of `Forwarded`.
    pub forwarded: F,
}

impl TrustedProxies {
    /// Parses a list with commas: addresses and networks as in `10.0.0.5,192.168.0.0/16,fd00::/8`.
    ///
    /// # Errors
    /// A sentence without its subject, about the first invalid item.
    pub fn parse(list: &str) -> Result<Self, String> {
        list.split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(network)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether no proxy is trusted.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an address belongs to a trusted proxy.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a request from `peer`. Without a trusted peer the headers are ignored. If both headers
    /// exist and name different clients, the client itself wrote one of them, and the node cannot know which.
    /// Then the peer counts.
    pub fn client<'h, X, F>(&self, peer: IpAddr, headers: ForwardingHeaders<X, F>) -> IpAddr
    where
        X: DoubleEndedIterator<Item = &'h [u8]>,
        F: DoubleEndedIterator<Item = &'h [u8]>,
    {
        let peer = peer.to_canonical();
        if !self.contains(peer) {
            return peer;
        }
        let lines = headers.x_forwarded_for.rev();
        let listed = self.outermost(peer, lines.flat_map(|line| list_hops(line).rev()));
        let lines = headers.forwarded.rev();
        let forwarded = self.outermost(peer, lines.flat_map(|line| forwarded_hops(line).into_iter().rev()));
        match (listed, forwarded) {
            (Some(client), None) | (None, Some(client)) => client,
            (Some(client), Some(other)) if client == other => client,
            _ => peer,
        }
    }

    /// The first address that is not a trusted proxy's, of the hops from the right to the left; the left-most
    /// one if all are trusted. The search ends at a hop without an address, because the hops to its left
    /// cannot be checked. `None` if there is no hop.
    fn outermost(&self, peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut client = None;
        for hop in hops {
            let Some(address) = hop else { return Some(client.unwrap_or(peer)) };
            client = Some(address);
            if !self.contains(address) {
                break;
            }
        }
        client
    }
}

fn network(item: &str) -> Result<IpNet, String> {
    if let Ok(address) = item.parse::<IpAddr>() {
        return Ok(address.to_canonical().into());
    }
    let Ok(network) = item.parse::<IpNet>() else {
        return Err(format!("holds '{item}', which is neither an address nor a network like 10.0.0.0/8"));
    };
    if network.prefix_len() == 0 {
        return Err(format!("holds '{item}', which is every address: then each client could choose its own"));
    }
    if network.trunc() != network {
        return Err(format!(
            "holds '{item}', which has bits behind its prefix: is {} meant?",
            network.trunc()
        ));
    }
    Ok(unmapped(network))
}

/// Converts a network of IPv4 addresses within IPv6 to a network of IPv4 addresses.
fn unmapped(network: IpNet) -> IpNet {
    match (network.addr().to_canonical(), network.prefix_len().checked_sub(MAPPED_BITS)) {
        (IpAddr::V4(address), Some(bits)) if network.addr().is_ipv6() => {
            Ipv4Net::new(address, bits).map_or(network, IpNet::V4)
        }
        _ => network,
    }
}

/// The hops of a line of `X-Forwarded-For`. Empty hops are skipped, as in any list of HTTP.
fn list_hops(line: &[u8]) -> impl DoubleEndedIterator<Item = Option<IpAddr>> {
    let hops = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    hops.filter(|hop| !hop.is_empty()).map(node_address)
}

/// The hops of a line of `Forwarded`. A malformed line is one hop without an address: otherwise an open quote
/// of the client could hide what a proxy added after it.
fn forwarded_hops(line: &[u8]) -> Vec<Option<IpAddr>> {
    let Some(elements) = split_unquoted(line, b',') else { return vec![None] };
    let elements = elements.into_iter().map(<[u8]>::trim_ascii);
    elements.filter(|element| !element.is_empty()).map(|element| element_address(element).flatten()).collect()
}

/// The address of an element's `for`. The outer `None` means that the element is malformed.
fn element_address(element: &[u8]) -> Option<Option<IpAddr>> {
    let mut address = None;
    for pair in split_unquoted(element, b';')? {
        let pair = pair.trim_ascii();
        if pair.is_empty() {
            continue;
        }
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        let value = match value {
            [b'"', value @ .., b'"'] => value,
            // The quotes do not enclose the whole value.
            value if value.contains(&b'"') => return None,
            value => value,
        };
        if name.eq_ignore_ascii_case(b"for") && address.replace(node_address(value)).is_some() {
            return None;
        }
    }
    address
}

/// The parts between separators outside of quotes; `None` when a quote stays open.
fn split_unquoted(text: &[u8], separator: u8) -> Option<Vec<&[u8]>> {
    let (mut parts, mut begin, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            byte if *byte == separator && !quoted => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    (!quoted).then_some(parts)
}

/// The address of a hop: bare, in brackets, with a port. `unknown` and made-up names have none.
fn node_address(node: &[u8]) -> Option<IpAddr> {
    let node = std::str::from_utf8(node).ok()?;
    let bracketed = || node.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok();
    let address = node.parse::<IpAddr>().ok().or_else(|| bracketed().map(IpAddr::V6));
    let address = address.or_else(|| node.parse::<SocketAddr>().ok().map(|socket| socket.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn client(trusted: &str, peer: &str, listed: &[&str], forwarded: &[&str]) -> String {
        let trusted = TrustedProxies::parse(trusted).expect("a list");
        let headers = ForwardingHeaders {
            x_forwarded_for: listed.iter().map(|line| line.as_bytes()),
            forwarded: forwarded.iter().map(|line| line.as_bytes()),
        };
        trusted.client(ip(peer), headers).to_string()
    }

    #[test]
    fn ipv6_is_counted_by_64_bits_and_mapped_ipv4_as_ipv4() {
        let block = |text: &str| AddressBlock::from(ip(text));
        assert_eq!(block("2001:db8:1:2::1"), block("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(block("2001:db8:1:2::1"), block("2001:db8:1:3::1"));
        assert_eq!(block("::ffff:203.0.113.7"), block("203.0.113.7"));
        assert_ne!(block("203.0.113.7"), block("203.0.113.8"));
        assert_ne!(block("::ffff:203.0.113.7"), block("::ffff:203.0.113.8"));
        assert_eq!(block("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
        assert_eq!(block("::ffff:203.0.113.7").to_string(), "203.0.113.7");
    }

    #[test]
    fn trusted_proxies_are_addresses_and_networks() {
        let read = TrustedProxies::parse(" 10.0.0.5, fd00::/8,,::ffff:192.168.0.0/112 ,::1").expect("a list");
        assert_eq!(format!("{read:?}"), "TrustedProxies([10.0.0.5/32, fd00::/8, 192.168.0.0/16, ::1/128])");
        for (address, inside) in [
            ("10.0.0.5", true),
            ("::ffff:10.0.0.5", true),
            ("10.0.0.6", false),
            ("fdff::1", true),
            ("fe80::1", false),
            ("192.168.255.255", true),
            ("192.169.0.0", false),
        ] {
            assert_eq!(read.contains(ip(address)), inside, "{address}");
        }
        assert!(TrustedProxies::parse("").expect("a list").is_empty());
        for (list, problem) in [
            (
                "proxy.internal",
                "holds 'proxy.internal', which is neither an address nor a network like 10.0.0.0/8",
            ),
            ("10.0.0.0/33", "holds '10.0.0.0/33', which is neither an address nor a network like 10.0.0.0/8"),
            ("10.0.0.1:80", "holds '10.0.0.1:80', which is neither an address nor a network like 10.0.0.0/8"),
            ("::/0", "holds '::/0', which is every address: then each client could choose its own"),
            ("::1,10.0.0.1/8", "holds '10.0.0.1/8', which has bits behind its prefix: is 10.0.0.0/8 meant?"),
        ] {
            assert_eq!(TrustedProxies::parse(list), Err(problem.to_owned()));
        }
    }

    #[test]
    fn headers_count_only_from_a_trusted_peer() {
        let headers: &[&str] = &["203.0.113.7"];
        assert_eq!(client("", "10.0.0.1", headers, &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.2", "10.0.0.1", headers, &["for=203.0.113.7"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", "10.0.0.1", headers, &[]), "203.0.113.7");
        assert_eq!(client("10.0.0.1", "::ffff:10.0.0.1", headers, &[]), "203.0.113.7");
        assert_eq!(client("10.0.0.1", "10.0.0.1", &[], &[]), "10.0.0.1");
        assert_eq!(client("", "::ffff:10.0.0.1", &[], &[]), "10.0.0.1");
    }

    #[test]
    fn the_right_most_untrusted_address_is_the_client() {
        let from = |lines: &[&str]| client("10.0.0.0/8,fd00::/8", "10.0.0.1", lines, &[]);
        for (lines, expected) in [
            (&["198.51.100.1, 203.0.113.7"][..], "203.0.113.7"),
            (&["198.51.100.1, 203.0.113.7, 10.0.0.2"], "203.0.113.7"),
            (&["198.51.100.1", "203.0.113.7", "10.0.0.2,fd00::2"], "203.0.113.7"),
            (&["203.0.113.7, , 10.0.0.2,"], "203.0.113.7"),
            (&["10.0.0.4, 10.0.0.3", "10.0.0.2"], "10.0.0.4"),
            (&["203.0.113.7:4711"], "203.0.113.7"),
            (&["[2001:db8::7]:4711"], "2001:db8::7"),
            (&["[2001:db8::7]"], "2001:db8::7"),
            (&["2001:db8::7"], "2001:db8::7"),
            (&["::ffff:203.0.113.7"], "203.0.113.7"),
            // A hop without an address ends the search at the last trusted proxy.
            (&["203.0.113.7, unknown"], "10.0.0.1"),
            (&["203.0.113.7, unknown, 10.0.0.2"], "10.0.0.2"),
            (&["203.0.113.7, \u{1F600}, 10.0.0.2"], "10.0.0.2"),
            (&["203.0.113.7 10.0.0.2"], "10.0.0.1"),
            (&["fe80::1%eth0"], "10.0.0.1"),
            (&[""], "10.0.0.1"),
        ] {
            assert_eq!(from(lines), expected, "{lines:?}");
        }
        let trusted = TrustedProxies::parse("10.0.0.1").expect("a list");
        let headers = ForwardingHeaders {
            x_forwarded_for: [&b"203.0.113.7, \xff"[..]].into_iter(),
            forwarded: std::iter::empty(),
        };
        assert_eq!(trusted.client(ip("10.0.0.1"), headers), ip("10.0.0.1"), "no UTF-8");
    }

    #[test]
    fn forwarded_is_read_as_rfc_7239_says() {
        let from = |lines: &[&str]| client("10.0.0.0/8", "10.0.0.1", &[], lines);
        for (lines, expected) in [
            (&["for=192.0.2.43, for=203.0.113.7"][..], "203.0.113.7"),
            (&["FOR=203.0.113.7;proto=https;by=203.0.113.43"], "203.0.113.7"),
            (&["by=203.0.113.43; For=\"203.0.113.7:4711\" "], "203.0.113.7"),
            (&["for=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::17"),
            (&["for=\"[2001:db8:cafe::17]\""], "2001:db8:cafe::17"),
            (&["for=203.0.113.7;host=\"a,b;for=198.51.100.1\""], "203.0.113.7"),
            (&["for=203.0.113.7;host=\"a\\\"b\", for=10.0.0.2"], "203.0.113.7"),
            (&["for=192.0.2.43", "for=203.0.113.7", "for=10.0.0.2"], "203.0.113.7"),
            (&["for=203.0.113.7, for=unknown"], "10.0.0.1"),
            (&["for=203.0.113.7, for=_hidden, for=10.0.0.2"], "10.0.0.2"),
            (&["for=203.0.113.7, proto=https"], "10.0.0.1"),
            (&["for=203.0.113.7;for=198.51.100.1"], "10.0.0.1"),
            (&["for=203.0.113.7, nonsense, for=10.0.0.2"], "10.0.0.2"),
            // A client's open quote must not hide the address that the proxy adds, nor change it.
            (&["for=198.51.100.1;x=\", for=203.0.113.7"], "10.0.0.1"),
            (&["for=198.51.100.1;x=\", for=\"[2001:db8::7]:1\""], "10.0.0.1"),
            (&["for=198.51.100.1;x=\"", "for=203.0.113.7"], "203.0.113.7"),
        ] {
            assert_eq!(from(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn two_headers_that_disagree_are_ignored() {
        let from = |listed, forwarded| client("10.0.0.1", "10.0.0.1", &[listed], &[forwarded]);
        assert_eq!(from("203.0.113.7", "for=203.0.113.7"), "203.0.113.7");
        assert_eq!(from("203.0.113.7", "for=198.51.100.1"), "10.0.0.1");
        assert_eq!(from("203.0.113.7", "for=unknown"), "10.0.0.1");
        assert_eq!(from("203.0.113.7", ""), "203.0.113.7");
    }
}

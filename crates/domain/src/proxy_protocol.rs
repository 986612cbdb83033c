//! The PROXY protocol, versions 1 and 2 (<https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt>): a
//! header before the first byte of a connection, in which a proxy names the client. The header is read in two
//! steps, so that no byte after it is consumed. [`Prefix`] identifies the version, and the version gives the
//! length.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of the prefix that identifies the version, in bytes. No header of either version is shorter.
pub const PREFIX_BYTES: usize = 12;
/// Maximum length of a header of version 1, its line end included, in bytes.
pub const TEXT_BYTES_MAX: usize = 107;
/// Length of the fixed part of a header of version 2, in bytes.
pub const BINARY_HEAD_BYTES: usize = 16;
/// Maximum length of a header of version 2, in bytes: the addresses, and more extensions than any proxy
/// sends.
pub const BINARY_BYTES_MAX: usize = 2_048;

const SIGNATURE: [u8; PREFIX_BYTES] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The kind of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// A line of text, up to its line feed: at most [`TEXT_BYTES_MAX`].
    Text,
    /// [`BINARY_HEAD_BYTES`], then the number of bytes that [`binary_length`] returns.
    Binary,
}

/// The address that a header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The client.
    Client(IpAddr),
    /// The connection is the proxy's own, as for health checks, or the client is unknown to the proxy.
    Proxy,
}

impl Prefix {
    /// The kind of header that begins with these bytes; `None` for any other beginning.
    pub fn of(bytes: &[u8; PREFIX_BYTES]) -> Option<Self> {
        match bytes {
            bytes if *bytes == SIGNATURE => Some(Self::Binary),
            [b'P', b'R', b'O', b'X', b'Y', b' ', ..] => Some(Self::Text),
            _ => None,
        }
    }
}

/// Length of a whole header of version 2, in bytes; `None` when it is too long.
pub fn binary_length(head: &[u8; BINARY_HEAD_BYTES]) -> Option<usize> {
    let length = BINARY_HEAD_BYTES + usize::from(u16::from_be_bytes([head[14], head[15]]));
    (length <= BINARY_BYTES_MAX).then_some(length)
}

/// Parses a whole header of version 1, its line end included; `None` when it is malformed.
pub fn parse_text(line: &[u8]) -> Option<Named> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix("\r\n")?;
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["PROXY", "UNKNOWN", ..] => Some(Named::Proxy),
        ["PROXY", family, source, target, source_port, target_port] => {
            for port in [source_port, target_port] {
                port.parse::<u16>().ok()?;
            }
            let addresses: [IpAddr; 2] = [source.parse().ok()?, target.parse().ok()?];
            let fits = match family {
                "TCP4" => addresses.iter().all(IpAddr::is_ipv4),
                "TCP6" => addresses.iter().all(IpAddr::is_ipv6),
                _ => false,
            };
            fits.then(|| Named::Client(addresses[0].to_canonical()))
        }
        _ => None,
    }
}

/// Parses a whole header of version 2; `None` when it is malformed.
pub fn parse_binary(header: &[u8]) -> Option<Named> {
    let (head, rest) = header.split_first_chunk::<BINARY_HEAD_BYTES>()?;
    if head[..PREFIX_BYTES] != SIGNATURE || binary_length(head) != Some(header.len()) {
        return None;
    }
    match (head[12], head[13]) {
        // LOCAL: everything after it is ignored.
        (0x20, _) => Some(Named::Proxy),
        (0x21, 0x11) => {
            let (source, _ports) = rest.split_at_checked(12)?.0.split_first_chunk::<4>()?;
            Some(Named::Client(Ipv4Addr::from(*source).into()))
        }
        (0x21, 0x21) => {
            let (source, _ports) = rest.split_at_checked(36)?.0.split_first_chunk::<16>()?;
            Some(Named::Client(IpAddr::from(Ipv6Addr::from(*source)).to_canonical()))
        }
        // The other address families and protocols of version 2: unspecified, datagrams, unix sockets.
        (0x21, kind) if kind >> 4 <= 3 && kind & 0x0f <= 2 => Some(Named::Proxy),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Option<Named> {
        Some(Named::Client(text.parse().expect("an address")))
    }

    fn binary(command: u8, kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).expect("short").to_be_bytes();
        [&SIGNATURE[..], &[command, kind], &length, payload].concat()
    }

    #[test]
    fn a_text_header_names_the_source() {
        for (line, expected) in [
            ("PROXY TCP4 203.0.113.7 10.0.0.1 4711 8080\r\n", client("203.0.113.7")),
            ("PROXY TCP6 2001:db8::7 fd00::1 4711 8080\r\n", client("2001:db8::7")),
            ("PROXY TCP6 ::ffff:203.0.113.7 ::ffff:10.0.0.1 4711 8080\r\n", client("203.0.113.7")),
            ("PROXY UNKNOWN\r\n", Some(Named::Proxy)),
            ("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", Some(Named::Proxy)),
            ("PROXY TCP4 203.0.113.7 10.0.0.1 4711 8080\n", None),
            ("PROXY TCP4 2001:db8::7 fd00::1 4711 8080\r\n", None),
            ("PROXY TCP4 203.0.113.7 10.0.0.1 4711 65536\r\n", None),
            ("PROXY TCP4 203.0.113.7 10.0.0.1 4711\r\n", None),
            ("PROXY TCP4  203.0.113.7 10.0.0.1 4711 8080\r\n", None),
            ("PROXY UDP4 203.0.113.7 10.0.0.1 4711 8080\r\n", None),
            ("PROXY / HTTP/1.1\r\n", None),
            ("GET / HTTP/1.1\r\n", None),
        ] {
            assert_eq!(parse_text(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn a_binary_header_names_the_source() {
        let v4 = [203, 0, 113, 7, 10, 0, 0, 1, 1, 2, 3, 4];
        let mut v6 = [0; 36];
        v6[..16].copy_from_slice(&"2001:db8::7".parse::<Ipv6Addr>().expect("an address").octets());
        let with_more = [&v4[..], &[4, 0, 1, 0]].concat();
        for (header, expected) in [
            (binary(0x21, 0x11, &v4), client("203.0.113.7")),
            (binary(0x21, 0x11, &with_more), client("203.0.113.7")),
            (binary(0x21, 0x21, &v6), client("2001:db8::7")),
            (binary(0x20, 0x00, &[]), Some(Named::Proxy)),
            (binary(0x20, 0x11, &v4), Some(Named::Proxy)),
            (binary(0x21, 0x00, &[]), Some(Named::Proxy)),
            (binary(0x21, 0x31, &[0; 216]), Some(Named::Proxy)),
            (binary(0x21, 0x11, &v4[..11]), None),
            (binary(0x21, 0x21, &v6[..35]), None),
            (binary(0x22, 0x11, &v4), None),
            (binary(0x11, 0x11, &v4), None),
            (binary(0x21, 0x41, &v4), None),
            (binary(0x21, 0x11, &[0; BINARY_BYTES_MAX]), None),
        ] {
            assert_eq!(parse_binary(&header), expected, "{header:?}");
            assert_eq!(parse_binary(&header[..header.len() - 1]), None, "cut");
            assert_eq!(parse_binary(&[&header[..], &[0]].concat()), None, "longer than it says");
        }
    }

    #[test]
    fn the_prefix_identifies_the_version() {
        let prefix = |bytes: &[u8]| Prefix::of(bytes[..PREFIX_BYTES].try_into().expect("twelve"));
        assert_eq!(prefix(b"PROXY TCP4 203.0.113.7"), Some(Prefix::Text));
        assert_eq!(prefix(&binary(0x21, 0x11, &[])), Some(Prefix::Binary));
        assert_eq!(prefix(b"GET / HTTP/1.1\r\n"), None);
        assert_eq!(prefix(b"proxy tcp4 1.2.3.4"), None);
        let head = |length: u16| {
            let mut head = [0; BINARY_HEAD_BYTES];
            head[14..].copy_from_slice(&length.to_be_bytes());
            binary_length(&head)
        };
        assert_eq!((head(0), head(12)), (Some(16), Some(28)));
        assert_eq!((head(2_032), head(2_033)), (Some(BINARY_BYTES_MAX), None));
    }
}

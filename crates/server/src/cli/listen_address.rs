//! The address of `--listen`, as people write it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Parses an address with a port, or a port alone, which is on loopback. The only name is `localhost`.
///
/// # Errors
/// What the address must be.
pub(super) fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Err(format!("the port is missing: {}", SocketAddr::new(address, 8080)));
    }
    if text.eq_ignore_ascii_case("localhost") {
        return Err("the port is missing: localhost:8080".to_owned());
    }
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Err("it must be an address and a port, as in 127.0.0.1:8080, [::1]:8080 or localhost:8080, \
                    or a port alone. Other host names are not looked up"
            .to_owned());
    }
    // A sign would be accepted by the parser of numbers.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|_| digits);
    let port = port.ok_or("the port must be a number from 0 to 65535; 0 picks a free port")?;
    Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_in_many_ways() {
        for (text, expected) in [
            ("8080", "127.0.0.1:8080"),
            (":8080", "127.0.0.1:8080"),
            ("0", "127.0.0.1:0"),
            ("localhost:8080", "127.0.0.1:8080"),
            ("LOCALHOST:1", "127.0.0.1:1"),
            ("0.0.0.0:8080", "0.0.0.0:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("[::]:65535", "[::]:65535"),
        ] {
            assert_eq!(parse(text).map(|address| address.to_string()), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_wrong_address_is_refused_with_its_remedy() {
        for (text, part) in [
            ("127.0.0.1", "the port is missing: 127.0.0.1:8080"),
            ("::1", "the port is missing: [::1]:8080"),
            ("[::1]", "the port is missing: [::1]:8080"),
            ("localhost", "localhost:8080"),
            ("", "number from 0 to 65535"),
            ("65536", "number from 0 to 65535"),
            ("+80", "number from 0 to 65535"),
            ("localhost:http", "number from 0 to 65535"),
            ("example.com:80", "not looked up"),
            ("http://127.0.0.1:80", "an address and a port"),
        ] {
            let refused = parse(text).expect_err(text);
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }
}

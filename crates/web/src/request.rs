//! What the listener adds to the extensions of each request.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderValue;

/// The id of a request, in its answer, its log lines and its error page. The listener adds it to each
/// request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct RequestId([u8; 20]);

impl RequestId {
    /// The id of the `n`th request of a connection, from 80 random bits of the connection. Randomness is
    /// drawn once a connection, because it costs a system call.
    pub fn new(connection: [u8; 10], n: u64) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut bytes = [0; 16];
        bytes[6..].copy_from_slice(&connection);
        let id = u128::from_be_bytes(bytes).wrapping_add(n.into());
        let mut digits = [0; 20];
        for (place, digit) in digits.iter_mut().rev().enumerate() {
            *digit = DIGITS[(id >> (4 * place)) as usize & 0xf];
        }
        Self(digits)
    }

    /// The value of `X-Request-Id`.
    pub fn header(&self) -> HeaderValue {
        // Hexadecimal digits are valid in a header.
        HeaderValue::from_bytes(&self.0).unwrap_or(HeaderValue::from_static(""))
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

/// Keeps the place of a request whose body is still arriving. Otherwise the connection may be closed when
/// another needs its place, because any caller can begin a body. The listener adds this to the extensions of
/// each request with a body.
#[derive(Clone)]
pub struct KeepPlace(Arc<dyn Fn() + Send + Sync>);

impl KeepPlace {
    /// A value that calls this function.
    pub fn new(keep: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(keep))
    }

    /// Keeps the place until the request is answered. Called for authenticated callers.
    pub(crate) fn keep(&self) {
        (self.0)();
    }
}

/// The address of the client that a request counts for: the TCP peer, or the client that a trusted proxy
/// names. The listener adds it to each request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress(pub IpAddr);

/// The origin that a client reached over the TLS of a sandbox, as in `https://api.example:8443`. The listener
/// adds it to each request of such a connection.
#[derive(Clone, Debug)]
pub struct SecureOrigin(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_connection_are_twenty_digits_and_differ() {
        let id = |connection, n| RequestId::new(connection, n).to_string();
        assert_eq!(id([0; 10], 0), "00000000000000000000");
        assert_eq!(id([0x1f; 10], 1), "1f1f1f1f1f1f1f1f1f20");
        assert_eq!(id([0xff; 10], 2), "00000000000000000001");
        assert_eq!(RequestId::new([0x1f; 10], 1).header(), "1f1f1f1f1f1f1f1f1f20");
    }
}

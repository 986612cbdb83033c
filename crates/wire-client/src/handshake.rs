//! The opening of a websocket.

use crate::Head;

/// The key of every handshake and its proof, from section 1.3 of RFC 6455. A random key would keep a confused
/// proxy from answering out of a cache. Tests and measurements have no such proxy.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The headers that ask for a websocket, beside `Host`.
pub const HANDSHAKE_HEADERS: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", KEY),
];

/// The request for a websocket. `more` is further header lines, each with its end.
pub fn handshake(host: &str, target: &str, more: &str) -> String {
    let headers = HANDSHAKE_HEADERS.map(|(name, value)| format!("{name}: {value}\r\n")).concat();
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{headers}{more}\r\n")
}

/// Whether the answer opens the websocket.
///
/// # Errors
/// What is wrong, in a few words.
pub fn check_handshake(answer: &Head) -> Result<(), String> {
    let says = |name, value: &str| answer.header(name).is_some_and(|found| found.eq_ignore_ascii_case(value));
    if answer.status != 101 {
        Err(format!("HTTP {}", answer.status))
    } else if !says("upgrade", "websocket") || !says("connection", "upgrade") {
        Err("101 without its headers".to_owned())
    } else if answer.header("sec-websocket-accept") != Some(PROOF) {
        Err("101 with a wrong proof".to_owned())
    } else if answer.header("sec-websocket-extensions").is_some() {
        Err("101 with an extension".to_owned())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_head_with_the_headers_of_the_protocol() {
        assert_eq!(
            handshake("h:1", "/p?q", "A: b\r\n"),
            "GET /p?q HTTP/1.1\r\nHost: h:1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nA: b\r\n\r\n"
        );
    }

    #[test]
    fn only_a_proper_101_opens_a_websocket() {
        let check = |head: &str, expected: Result<(), &str>| {
            let (head, _) = Head::read(format!("{head}\r\n\r\n").as_bytes()).unwrap().unwrap();
            assert_eq!(check_handshake(&head), expected.map_err(str::to_owned));
        };
        let good = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {PROOF}"
        );
        check(&good, Ok(()));
        check("HTTP/1.1 401 Unauthorized", Err("HTTP 401"));
        check("HTTP/1.1 101 Switching Protocols", Err("101 without its headers"));
        check(&good.replace("xOo=", "xOO="), Err("101 with a wrong proof"));
        let extended = format!("{good}\r\nSec-WebSocket-Extensions: permessage-deflate");
        check(&extended, Err("101 with an extension"));
    }
}

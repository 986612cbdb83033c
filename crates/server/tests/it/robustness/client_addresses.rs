//! The address that a request counts for (`docs/operating.md#client-addresses`), shown by the remaining tries
//! for client secrets.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;
use testkit::{Connection, Request, Response, Setup, World, both};

fn behind(trusted_proxies: &'static str) -> Setup {
    Setup { quotas: true, trusted_proxies, ..Setup::default() }
}

fn wrong_secret() -> Request {
    let body = json!({ "grantType": "refresh_token", "clientId": "missing", "clientSecret": "x", "refreshToken": "x" });
    Request::post("/auth/v1/token").json(&body)
}

#[track_caller]
fn left(answer: &Response) -> i64 {
    answer.assert_refused(401, "INVALID_CLIENT");
    answer.number("ratelimit-remaining")
}

/// Sends a wrong secret with header lines, and returns the remaining tries of the address.
async fn left_with(world: &World, lines: &[(&str, &str)]) -> i64 {
    let request = lines.iter().fold(wrong_secret(), |request, (name, value)| request.header(name, *value));
    left(&world.send(request).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_headers_are_ignored_unless_a_trusted_proxy_sends_them() {
    for trusted in ["", "10.0.0.0/8,127.0.0.2"] {
        both(behind(trusted), |world| async move {
            for (line, expected) in [
                ("X-Forwarded-For", 9),
                ("Forwarded", 8),
                ("X-Real-IP", 7),
                ("X-Forwarded-For", 6),
                ("CF-Connecting-IP", 5),
            ] {
                let value = format!("{}203.0.113.{expected}", if line == "Forwarded" { "for=" } else { "" });
                assert_eq!(left_with(&world, &[(line, &value)]).await, expected);
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_behind_a_trusted_proxy_has_its_own_failures() {
    both(behind("127.0.0.1,10.0.0.0/8"), |world| async move {
        const LIST: &str = "X-Forwarded-For";
        for (lines, expected) in [
            (&[(LIST, "203.0.113.7")][..], 9),
            // Addresses that the client itself wrote do not count.
            (&[(LIST, "198.51.100.1, 203.0.113.7")], 8),
            (&[(LIST, "198.51.100.2"), (LIST, "203.0.113.7, 10.0.0.9")], 7),
            (&[(LIST, "203.0.113.7:4711")], 6),
            (&[(LIST, "::ffff:203.0.113.7")], 5),
            (&[("Forwarded", "for=198.51.100.1;proto=http, for=\"203.0.113.7:4711\";proto=https")], 4),
            (&[(LIST, "203.0.113.7"), ("Forwarded", "for=203.0.113.7")], 3),
            (&[(LIST, "203.0.113.8")], 9),
            // Addresses of one /64 are one client.
            (&[(LIST, "2001:db8:1:2::1")], 9),
            (&[("Forwarded", "for=\"[2001:db8:1:2:3:4:5:6]:99\"")], 8),
            (&[(LIST, "2001:db8:1:3::1")], 9),
            // The proxy itself, and clients that cannot be identified.
            (&[], 9),
            (&[(LIST, "unknown")], 8),
            (&[(LIST, "203.0.113.9"), ("Forwarded", "for=198.51.100.1")], 7),
        ] {
            assert_eq!(left_with(&world, lines).await, expected, "{lines:?}");
        }
        for _ in 0..3 {
            left_with(&world, &[(LIST, "203.0.113.7")]).await;
        }
        let refused = world.send(wrong_secret().header(LIST, "203.0.113.7")).await;
        refused.assert_refused(429, "TOO_MANY_REQUESTS");
    })
    .await;
}

/// A connection from another address of this machine.
async fn connect(from: [u8; 4], to: SocketAddr) -> Connection {
    Connection::open_from(Ipv4Addr::from(from), to).await
}

/// Sends parts one after the other, and gives the answer. `None` when the server closes without one.
async fn answer(connection: &mut Connection, parts: &[&[u8]]) -> Option<Response> {
    for part in parts {
        connection.write(part).await;
        tokio::task::yield_now().await;
    }
    connection.read_response(false).await
}

fn request() -> Vec<u8> {
    let body = r#"{"grantType":"refresh_token","clientId":"missing","clientSecret":"x","refreshToken":"x"}"#;
    let head = "POST /auth/v1/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

const BINARY: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x07\x0a\0\0\x01\x12\x34\x56\x78";
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_names_the_client_with_the_proxy_protocol() {
    let setup = Setup { proxy_protocol: true, ..behind("127.0.0.2,127.0.0.3") };
    both(setup, |world| async move {
        let (address, request) = (world.address(), request());
        let text: &[u8] = b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 8080\r\n";
        for (parts, expected) in [
            (&[text, &request][..], 9),
            (&[&[text, &request].concat()], 8),
            (&[&text[..3], &text[3..20], &text[20..], &request], 7),
            (&[BINARY, &request], 6),
            (&[&[BINARY, &request].concat()], 5),
            (&[&BINARY[..14], &BINARY[14..], &request[..10], &request[10..]], 4),
            (&[b"PROXY TCP6 2001:db8:1:2::1 ::1 1 2\r\n", &request], 9),
            (&[b"PROXY TCP6 2001:db8:1:2::2 ::1 1 2\r\n", &request], 8),
            // The header names no client, so the connection counts for the proxy.
            (&[LOCAL, &request], 9),
            (&[b"PROXY UNKNOWN\r\n", &request], 8),
        ] {
            let mut stream = connect([127, 0, 0, 2], address).await;
            let answer = answer(&mut stream, parts).await;
            assert_eq!(left(&answer.expect("an answer")), expected);
        }
        // A proxy that does not name its client passes on what the client wrote, so no header is believed.
        for (expected, header) in [(7, LOCAL), (6, &b"PROXY UNKNOWN\r\n"[..])] {
            let mut stream = connect([127, 0, 0, 2], address).await;
            let line_end = request.windows(2).position(|pair| pair == b"\r\n").expect("a line") + 2;
            let (line, rest) = request.split_at(line_end);
            let forwarded = [line, b"X-Forwarded-For: 203.0.113.99\r\n", rest].concat();
            assert_eq!(left(&answer(&mut stream, &[header, &forwarded]).await.expect("an answer")), expected);
        }
        // If the named client is a trusted proxy too, its header names the client.
        let mut stream = connect([127, 0, 0, 2], address).await;
        let head_end = request.windows(2).position(|pair| pair == b"\r\n").expect("a line") + 2;
        let (line, rest) = request.split_at(head_end);
        let forwarded = [line, b"X-Forwarded-For: 203.0.113.7\r\n", rest].concat();
        let proxy: &[u8] = b"PROXY TCP4 127.0.0.3 10.0.0.1 4711 8080\r\n";
        assert_eq!(left(&answer(&mut stream, &[proxy, &forwarded]).await.expect("an answer")), 3);
        // A named client that is not a proxy cannot name another client.
        let mut stream = connect([127, 0, 0, 2], address).await;
        let client: &[u8] = b"PROXY TCP4 203.0.113.8 10.0.0.1 4711 8080\r\n";
        assert_eq!(left(&answer(&mut stream, &[client, &forwarded]).await.expect("an answer")), 9);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_trusted_proxy_must_send_the_proxy_header() {
    let setup = Setup { proxy_protocol: true, ..behind("127.0.0.2") };
    both(setup, |world| async move {
        let (address, request) = (world.address(), request());
        let endless = [b"PROXY TCP4 ", &[b'1'; 200][..], b"\r\n"].concat();
        let mut too_long = BINARY.to_vec();
        too_long[14..16].copy_from_slice(&[0xff, 0xff]);
        for header in [&b""[..], b"PROXY TCP4 203.0.113.7\r\n", b"PROXY / HTTP/1.1\r\n", &endless, &too_long]
        {
            let mut stream = connect([127, 0, 0, 2], address).await;
            let answer = answer(&mut stream, &[header, &request]).await;
            assert!(answer.is_none(), "{}: {answer:?}", header.escape_ascii());
        }
        for header in [&b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 8080\r\n"[..], BINARY] {
            let mut stream = connect([127, 0, 0, 1], address).await;
            let answer = answer(&mut stream, &[header, &request]).await;
            assert!(answer.as_ref().is_none_or(|answer| answer.status == 400), "{answer:?}");
        }
        // Only connections of the proxy need a header.
        assert_eq!(left_with(&world, &[("X-Forwarded-For", "203.0.113.7")]).await, 9);
        assert_eq!(left_with(&world, &[]).await, 8);
    })
    .await;
}

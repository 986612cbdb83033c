//! Fuzz tests of texts from callers. No decoder panics, and an accepted text keeps its meaning when it is
//! encoded and decoded again.

use std::net::IpAddr;

use domain::application::{RedirectUri, origin_of};
use domain::client_address::{ForwardingHeaders, TrustedProxies};
use domain::cursor::CursorKey;
use domain::delivery::{excerpt, retry_after};
use domain::limits::{WEBHOOK_EXCERPT_CHARS_MAX, WEBHOOK_RETRY_AFTER_MAX_MS};
use domain::proxy_protocol::{self, Named, PREFIX_BYTES, Prefix};
use domain::seal::ServiceKey;
use domain::secret::WebhookSecret;
use domain::{ChannelId, Scope, Timestamp};
use fuzz::Fuzz;

/// The input as a caller's text. Input that is not UTF-8 is refused before the decoders.
fn text(input: &[u8]) -> &str {
    std::str::from_utf8(input).unwrap_or_default()
}

#[test]
fn fuzz_cursors() {
    let key = CursorKey::new([7; 32]);
    let contexts = ["lives", "lives 3", ""];
    let made = contexts.map(|context| (context, key.seal(context, "1784385132345 haneul")));
    let seeds: Vec<_> = made.iter().map(|(_, cursor)| cursor.clone()).collect();
    Fuzz::new("cursors").seeds(&seeds).tokens(["=", "-", "_", "AAAA"]).bytes_max(1_100).run(|input| {
        let cursor = text(input);
        contexts.map(|context| {
            let opened = key.open("next", context, cursor).is_ok();
            // No mutation of a cursor passes the check.
            assert!(!opened || made.contains(&(context, cursor.to_owned())), "{cursor} is forged");
            opened
        })
    });
}

#[test]
fn fuzz_sealed_secrets() {
    let key = ServiceKey::of_text("a key");
    let sealed = key.seal("stream key of a", "비밀", [7; 24]);
    Fuzz::new("sealed secrets").seeds([&sealed]).tokens(["=", "-", "_"]).bytes_max(300).run(|input| {
        let opened = key.open("stream key of a", text(input));
        assert!(opened.is_none() || text(input) == sealed, "it is forged");
        opened
    });
}

#[test]
fn fuzz_dates() {
    let seeds = [
        "2026-07-18T14:32:12.345Z",
        "1970-01-01T09:00:00+09:00",
        "0000-01-01T00:00:00-23:59",
        "9999-12-31T23:59:60Z",
    ];
    let tokens = ["-", ":", "T", "Z", "+", ".999999999"];
    Fuzz::new("dates").seeds(seeds).tokens(tokens).bytes_max(60).run(|input| {
        let date = Timestamp::parse_rfc3339(text(input))?;
        assert_eq!(Timestamp::parse_rfc3339(&date.rfc3339()), Some(date));
        Some(date.rfc3339().len())
    });
}

#[test]
fn fuzz_answers_of_receivers() {
    let seeds = [
        "120",
        "0",
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "점검 중입니다",
    ];
    let tokens = ["99999999999999999999", "GMT", " ", "-", "+", "9999", "\0", "\u{fffd}", "한"];
    let now = Timestamp::from_millis(784_111_777_000);
    Fuzz::new("answers of receivers").seeds(seeds).tokens(tokens).bytes_max(2_100).run(|input| {
        let after = retry_after(text(input), now);
        assert!(after.is_none_or(|at| now <= at && at <= now.plus_ms(WEBHOOK_RETRY_AFTER_MAX_MS)));
        let shown = excerpt(input);
        assert!(shown.chars().count() <= WEBHOOK_EXCERPT_CHARS_MAX && !shown.contains(char::is_control));
        let given = WebhookSecret::given(text(input));
        assert!(!given.is_ok_and(|given| given.expose() != text(input) || given.expose().len() < 32));
        (after.is_some(), shown.is_empty())
    });
}

#[test]
fn fuzz_names() {
    const LOOPBACK: [&str; 3] = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let seeds = [
        "haneul",
        "a.b-c_9",
        "https://e.example/callback?x=1",
        "http://127.0.0.1:9999/cb",
        "http://[::1]/",
        "http://localhost/",
    ];
    let tokens =
        ["//", "@", "#", "*", "[", "]", ":", "\\", "%2f", "..", "localhost", "127.0.0.1", "\0", "한"];
    let seeds = seeds.into_iter().chain(Scope::ALL.map(Scope::name));
    Fuzz::new("names").seeds(seeds).tokens(tokens).bytes_max(2_100).run(|input| {
        let text = text(input);
        let id = ChannelId::parse("channelId", text);
        if let Ok(id) = &id {
            assert!(id.as_str() == text && (1..=64).contains(&text.len()) && text.is_ascii());
        }
        let address = RedirectUri::parse(text);
        if address.is_ok() {
            let origin = origin_of(text);
            assert!(text.starts_with(origin) && !text.contains(['#', ' ', '\\', '\n']), "{text}");
            let is_loopback = LOOPBACK.iter().any(|host| origin.starts_with(host));
            assert!(origin.starts_with("https://") || is_loopback, "{text}");
            assert!(!origin.contains('@'), "{text}");
        }
        let scope = Scope::from_name(text);
        assert!(scope.is_none_or(|scope| scope.name() == text));
        (id.is_ok(), address.is_ok(), scope.is_some())
    });
}

#[test]
fn fuzz_forwarding_headers() {
    let trusted = TrustedProxies::parse("10.0.0.0/8").expect("a list");
    let proxy = "10.0.0.1".parse().expect("an address");
    let seeds = [
        "203.0.113.7, unknown, 10.0.0.2",
        "[2001:db8::7]:4711, ::ffff:10.0.0.9",
        "for=\"[2001:db8::7]:4711\";proto=https, for=_hidden",
        "by=1.2.3.4;For=203.0.113.7;host=\"a\\\"b,c;d\"",
    ];
    let tokens = ["for=", "\"", "\\", ",", ";", "10.0.0.2", "203.0.113.7", "[", "]:1", "unknown"];
    Fuzz::new("forwarding headers").seeds(seeds).tokens(tokens).bytes_max(300).run(|input| {
        // The address that a proxy adds after any text of the client is found, or the request counts for the
        // proxy.
        let added = ["203.0.113.99", "for=203.0.113.99", "for=\"[2001:db8::99]:1\""];
        let named = added.map(|added| {
            let line = [input, b", ", added.as_bytes()].concat();
            let none = || [].iter().map(|line: &Vec<u8>| line.as_slice());
            let line = std::iter::once(line.as_slice());
            if added.starts_with("for") {
                trusted.client(proxy, ForwardingHeaders { x_forwarded_for: none(), forwarded: line })
            } else {
                trusted.client(proxy, ForwardingHeaders { x_forwarded_for: line, forwarded: none() })
            }
        });
        let expected = ["203.0.113.99", "203.0.113.99", "2001:db8::99"];
        let expected = expected.map(|address| address.parse::<IpAddr>().expect("an address"));
        assert_eq!(named[0], expected[0]);
        for (named, expected) in named.iter().zip(expected).skip(1) {
            assert!(*named == expected || *named == proxy, "{named} was made up");
        }
        named.map(|named| named == proxy)
    });
}

#[test]
fn fuzz_proxy_headers() {
    let seeds: [&[u8]; 4] = [
        b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 8080\r\n",
        b"PROXY TCP6 2001:db8::7 fd00::1 4711 8080\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x07\x0a\0\0\x01\x12\x34\x56\x78",
        b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
    ];
    Fuzz::new("proxy headers").seeds(seeds).tokens(["PROXY ", "UNKNOWN", "\r\n"]).bytes_max(300).run(
        |input| {
            let prefix = input.first_chunk::<PREFIX_BYTES>().and_then(Prefix::of);
            let named = [proxy_protocol::parse_text(input), proxy_protocol::parse_binary(input)];
            // The prefix identifies every header that parses.
            assert!(named[0].is_none() || prefix == Some(Prefix::Text));
            assert!(named[1].is_none() || prefix == Some(Prefix::Binary));
            named.map(|named| named.map(|named| matches!(named, Named::Client(_))))
        },
    );
}

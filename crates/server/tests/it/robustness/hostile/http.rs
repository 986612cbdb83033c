//! Malformed HTTP: oversized or slow heads, ambiguous requests, garbage.

use std::net::SocketAddr;

use testkit::{Connection, Request, Response, Setup, both, handshake};

use super::crowd::Crowd;
use super::sessions::session_queries;

/// All received bytes as text, for a peer that closes its sending side.
async fn answer(address: SocketAddr, bytes: &[u8]) -> String {
    let mut peer = Connection::open(address).await;
    peer.write(bytes).await;
    peer.finish_writing().await;
    String::from_utf8_lossy(&peer.rest().await).into_owned()
}

/// The same for a peer that keeps its side open. The server ends the connection.
async fn patient_answer(address: SocketAddr, bytes: &[u8]) -> String {
    let mut peer = Connection::open(address).await;
    peer.write(bytes).await;
    String::from_utf8_lossy(&peer.rest().await).into_owned()
}

/// The number of answers with a status.
fn answers(text: &str, status: u16) -> usize {
    text.matches(&format!("HTTP/1.1 {status} ")).count()
        + text.matches(&format!("HTTP/1.0 {status} ")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_may_have_16_kib() {
    both(Setup::default(), |world| async move {
        for (bytes, status) in [(15_000, 404), (17_000, 414)] {
            let query = "x".repeat(bytes);
            let head = format!("GET /nowhere?{query} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let received = patient_answer(world.address(), head.as_bytes()).await;
            assert_eq!(answers(&received, status), 1, "{bytes}: {received}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_http_get_a_400_at_most_and_end_the_connection() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 5).await;
        let long = |size: usize| "x".repeat(size);
        let cases = [
            "\0\0\0\0".to_owned(),
            "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03".to_owned(),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            "GET\r\n\r\n".to_owned(),
            "GET / HTTP/9.9\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nName : spaced\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nA: 1\r\n folded\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(),
            "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            format!("GET /{} HTTP/1.1\r\n\r\n", long(70_000)),
            format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", long(200_000)),
            format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(2_000)),
            format!("{} / HTTP/1.1\r\n\r\n", long(100_000)),
        ];
        for case in cases {
            for _ in 0..3 {
                let received = answer(world.address(), case.as_bytes()).await;
                let status = received.get(9..12).unwrap_or_default();
                assert!(
                    matches!(status, "" | "400" | "414" | "431" | "404" | "405"),
                    "{}: {received}",
                    &case[..20.min(case.len())]
                );
                assert!(!received.contains(&long(1_000)), "nothing is echoed");
            }
        }
        assert_eq!(world.sockets().await.all_closed(), 0);
        crowd.disperse().await;
    })
    .await;
}

/// Sends bytes that are not a request. Expects one answer in the envelope, with an id, and then the end of
/// the connection.
async fn refused(address: SocketAddr, bytes: &[u8]) -> Response {
    let mut connection = Connection::open(address).await;
    connection.write(bytes).await;
    let answer = connection.read_response(false).await.expect("an answer");
    assert!(!answer.message().is_empty());
    assert_eq!(answer.header("x-request-id").map(str::len), Some(20));
    assert_eq!(
        (answer.header("connection"), answer.header("cache-control")),
        (Some("close"), Some("no-store"))
    );
    assert!(connection.is_closed().await, "nothing follows");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_refused_in_the_envelope_with_an_id() {
    both(Setup::default(), |world| async move {
        let long = |size: usize| "x".repeat(size);
        for (status, bytes) in [
            (400, "\0\0\0\0\r\n\r\n".to_owned()),
            (400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
            (400, "GET\r\n\r\n".to_owned()),
            (400, "G@T / HTTP/1.1\r\n\r\n".to_owned()),
            (400, "GET / HTTP/9.9\r\n\r\n".to_owned()),
            (400, "GET / SIP/2.0\r\n\r\n".to_owned()),
            (400, "GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned()),
            (400, "GET / HTTP/1.1\r\nName : spaced\r\n\r\n".to_owned()),
            (400, "GET / HTTP/1.1\r\nA: 1\r\n folded\r\n\r\n".to_owned()),
            (400, "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned()),
            (400, "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned()),
            (400, "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned()),
            (400, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()),
            (414, format!("GET /{} HTTP/1.1\r\n\r\n", long(16 * 1024))),
            (414, format!("GET /{} HTTP/1.1\r\n\r\n", long(200_000))),
            (414, format!("{} / HTTP/1.1\r\n\r\n", long(100_000))),
            (431, format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", long(16 * 1024))),
            (431, format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", long(200_000))),
            (431, format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(101))),
        ] {
            let answer = refused(world.address(), bytes.as_bytes()).await;
            assert_eq!(answer.status, status, "{}", &bytes[..40.min(bytes.len())]);
            let reason = match status {
                414 => "address-too-long",
                431 => "headers-too-large",
                _ => "http-malformed",
            };
            assert_eq!(answer.header("stagedoor-reason"), Some(reason));
        }
        // A head that is cut off.
        let mut cut = Connection::open(world.address()).await;
        cut.write(b"GET / HTTP/1.1\r\nHost: x\r\n").await;
        cut.finish_writing().await;
        assert_eq!(cut.read_response(false).await.map(|answer| answer.status), Some(400));
        // An earlier answer is not affected, and the ids differ.
        let mut connection = Connection::open(world.address()).await;
        let good = "GET /open/v1/users/me HTTP/1.1\r\nHost: x\r\n\r\n";
        connection.write(format!("{good}{good}nonsense\r\n\r\n").as_bytes()).await;
        let mut ids = Vec::new();
        for status in [401, 401, 400] {
            let answer = connection.read_response(false).await.expect("an answer");
            assert_eq!(answer.status, status);
            ids.push(answer.header("x-request-id").expect("an id").to_owned());
        }
        ids.dedup();
        assert_eq!(ids.len(), 3);
        assert!(connection.is_closed().await);
        // Malformed chunks are an invalid body, and end the connection.
        for chunks in ["x\r\n", "1\r\nab\r\n", "fffffffffffffffff\r\n"] {
            let head = "POST /auth/v1/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
            let answer = refused(world.address(), format!("{head}{chunks}").as_bytes()).await;
            assert_eq!(answer.status, 400, "{chunks}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_after_a_request_does_not_affect_its_answer() {
    both(Setup::default(), |world| async move {
        let good = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
        let received =
            answer(world.address(), format!("{good}{good}\0\0garbage\r\n\r\n{good}").as_bytes()).await;
        assert_eq!((answers(&received, 200), answers(&received, 400)), (2, 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_content_length_is_ignored_with_chunks() {
    both(Setup::default(), |world| async move {
        let inner = "GET /open/v1/users/me HTTP/1.1\r\nHost: x\r\n\r\n";
        let chunked = "1\r\n{\r\n0\r\n\r\n";
        for lengths in [
            "Content-Length: 4\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 4",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\nContent-Length: 999",
        ] {
            let head = format!("POST /auth/v1/token HTTP/1.1\r\nHost: x\r\n{lengths}\r\n\r\n");
            let received = answer(world.address(), format!("{head}{chunked}{inner}").as_bytes()).await;
            // The chunks are the body, so the bytes after them are exactly one more request.
            assert!(answers(&received, 400) == 1 && answers(&received, 401) <= 1, "{received}");
        }
        // Unknown transfer codings are refused.
        for coding in ["xchunked", "chunked, identity", "\"chunked\"", "chunked;x=y"] {
            let head = format!("POST /auth/v1/token HTTP/1.1\r\nTransfer-Encoding: {coding}\r\n\r\n");
            let received = answer(world.address(), format!("{head}{chunked}{inner}").as_bytes()).await;
            assert!(answers(&received, 401) == 0 && answers(&received, 200) == 0, "{coding}: {received}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_hosts_and_versions_of_all_forms_are_accepted() {
    both(Setup::default(), |world| async move {
        let query = &session_queries(&world, "target", 1).await[0];
        let refused = "EIO=3&transport=polling&auth=x";
        for (target, host, status) in [
            (format!("http://evil.example/socket.io/?{refused}"), "evil.example", 401),
            (format!("/socket.io/?{refused}"), "evil.example", 401),
            (format!("/socket.io/?{refused}"), "", 401),
            (format!("//socket.io/?{refused}"), "x", 404),
            (format!("/socket.io/../socket.io/?{refused}"), "x", 404),
            (format!("/%73ocket.io/?{refused}"), "x", 404),
            (format!("/SOCKET.IO/?{refused}"), "x", 404),
            (format!("/socket.io/x?{refused}"), "x", 404),
            ("*".to_owned(), "x", 404),
        ] {
            for version in ["1.0", "1.1"] {
                let head =
                    format!("GET {target} HTTP/{version}\r\nHost: {host}\r\nConnection: close\r\n\r\n");
                let received = patient_answer(world.address(), head.as_bytes()).await;
                assert_eq!(answers(&received, status), 1, "{head}{received}");
                assert!(!received.contains("evil"), "{received}");
            }
        }
        // The session URL contains the configured base URL, regardless of `Host`.
        let app = world.application("hosted").create().await;
        let request =
            Request::get("/open/v1/sessions/auth/client").client(&app.client_id, &app.client_secret);
        let url = world.send(request.header("Host", "evil.example")).await.content()["url"].clone();
        assert!(
            url.as_str().is_some_and(|url| url.starts_with(&format!("http://{}?", world.address()))),
            "{url}"
        );
        // HTTP/1.0 has no upgrade.
        let head = handshake("x", &format!("/socket.io/?{query}&EIO=3&transport=websocket"), "");
        let received = patient_answer(world.address(), head.replace("HTTP/1.1", "HTTP/1.0").as_bytes()).await;
        assert_eq!(answers(&received, 101), 0, "{received}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_one_host() {
    both(Setup::default(), |world| async move {
        for target in
            ["/health/live", "/openapi.json", "/socket.io/?EIO=3&transport=polling", "http://a/nowhere"]
        {
            for hosts in ["", "Host: a\r\nHost: b\r\n", "Host: a\r\nhost: a\r\n", "Host: a\r\nHost:\r\n"] {
                let answer =
                    refused(world.address(), format!("GET {target} HTTP/1.1\r\n{hosts}\r\n").as_bytes())
                        .await;
                assert_eq!((answer.status, answer.header("stagedoor-reason")), (400, Some("http-malformed")));
                assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            }
        }
        // HTTP/1.0 knows no header Host.
        let received = patient_answer(world.address(), b"GET /health/live HTTP/1.0\r\n\r\n").await;
        assert_eq!(answers(&received, 200), 1, "{received}");
        let two = b"GET /health/live HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n";
        assert_eq!(answers(&patient_answer(world.address(), two).await, 400), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_forbids_to_guess_its_kind() {
    both(Setup::default(), |world| async move {
        let query = &session_queries(&world, "sniffed", 1).await[0];
        for target in [
            "/health/live".to_owned(),
            "/open/v1/users/me".to_owned(),
            "/openapi.json".to_owned(),
            "/nowhere".to_owned(),
            "/metrics".to_owned(),
            "/docs".to_owned(),
            "/socket.io/?EIO=3&transport=polling&auth=x".to_owned(),
            format!("/socket.io/?{query}&EIO=3&transport=polling"),
        ] {
            let answer = world.send(Request::get(&target)).await;
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{target}");
        }
        let answer = refused(world.address(), b"GET\r\n\r\n").await;
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_methods_are_refused_in_the_envelope() {
    both(Setup::default(), |world| async move {
        let target = "/socket.io/?EIO=3&transport=polling&auth=x";
        for method in ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW", "HEAD"] {
            let mut connection = Connection::open(world.address()).await;
            if method == "CONNECT" {
                // The target is not a path, so it is not found.
                connection.write(b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n").await;
                assert_eq!(connection.read_response(false).await.map(|answer| answer.status), Some(404));
                continue;
            }
            let answer = connection.send(&Request::new(method, target)).await;
            assert_eq!(answer.status, 405, "{method}");
        }
    })
    .await;
}

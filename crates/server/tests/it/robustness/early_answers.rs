//! Answers that are sent before the body was read reach callers that are still sending it, and the connection
//! stays open.

use std::time::Duration;

use testkit::{Connection, Request, Response, Setup, World, both};

/// Delay between head and body, so that the body is a separate segment.
const BEHIND: Duration = Duration::from_millis(2);
/// Number of tries of each kind, because the timing of head and body varies.
const TRIES: usize = 6;
/// Maximum number of body bytes that are dropped to keep a connection open.
const DROPPED_MAX: usize = 1024 * 1024;

/// The framing of a body.
#[derive(Clone, Copy, Debug)]
enum Framing {
    Length,
    Chunks,
}

/// A request that is refused without reading its body.
struct Case {
    status: u16,
    line: &'static str,
    headers: String,
}

/// Sends the head, and then the body. A broken pipe is a failure.
async fn send(connection: &mut Connection, case: &Case, framing: Framing, size: usize) {
    let (length, body) = match framing {
        Framing::Length => (format!("Content-Length: {size}"), vec![b' '; size]),
        Framing::Chunks => (
            "Transfer-Encoding: chunked".to_owned(),
            [format!("{size:x}\r\n").as_bytes(), &vec![b' '; size], b"\r\n0\r\n\r\n"].concat(),
        ),
    };
    let head = format!("{} HTTP/1.1\r\nHost: x\r\n{}{length}\r\n\r\n", case.line, case.headers);
    connection.write_all(head.as_bytes()).await.expect("the head is taken");
    tokio::time::sleep(BEHIND).await;
    connection.write_all(&body).await.unwrap_or_else(|error| panic!("{}: {size} bytes: {error}", case.line));
}

async fn answer(connection: &mut Connection, case: &Case) -> Response {
    let answer =
        connection.read_response(false).await.unwrap_or_else(|| panic!("no answer to {}", case.line));
    assert_eq!(answer.status, case.status, "{}: {}", case.line, answer.text());
    assert!(!answer.message().is_empty() && answer.header("x-request-id").is_some());
    answer
}

async fn cases(world: &World) -> Vec<Case> {
    let app = world.application("early").create().await;
    let person = world.person("early").create().await;
    let token = world.sign_in(&app, &person).await.access;
    while world.send_chat(&token, "hello").await.status != 429 {}
    let case = |status, line, headers: &str| Case { status, line, headers: headers.to_owned() };
    vec![
        case(401, "POST /open/v1/chats/send", "Authorization: Bearer missing\r\n"),
        case(401, "POST /platform/v1/events", ""),
        case(404, "POST /nowhere", ""),
        case(405, "PUT /open/v1/users/me", ""),
        case(429, "POST /open/v1/chats/send", &format!("Authorization: Bearer {token}\r\n")),
        case(400, "POST /socket.io/?EIO=3&transport=polling&sid=unknown", ""),
        case(405, "POST /socket.io/?EIO=3&transport=polling", ""),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_before_the_body_arrives_and_the_connection_stays_open() {
    both(Setup { quotas: true, ..Setup::default() }, |world| async move {
        let mut cases = cases(&world).await;
        let too_large = "POST /auth/v1/token";
        cases.push(Case { status: 400, line: too_large, headers: String::new() });
        for case in &cases {
            for (framing, size) in [
                (Framing::Length, 16),
                (Framing::Chunks, 16),
                (Framing::Length, 200_000),
                (Framing::Chunks, 200_000),
                (Framing::Length, DROPPED_MAX),
            ] {
                if case.line == too_large && size == 16 {
                    continue;
                }
                let mut connection = Connection::open(world.address()).await;
                for _ in 0..TRIES {
                    send(&mut connection, case, framing, size).await;
                    let answer = answer(&mut connection, case).await;
                    assert_eq!(answer.header("connection"), None, "{}: {framing:?} of {size}", case.line);
                }
                assert_eq!(connection.send(&Request::get("/open/v1/users/me")).await.status, 401);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_before_a_huge_body_arrives_and_closes_the_connection() {
    both(Setup { quotas: true, ..Setup::default() }, |world| async move {
        for case in cases(&world).await {
            for framing in [Framing::Length, Framing::Chunks] {
                for _ in 0..TRIES {
                    let mut connection = Connection::open(world.address()).await;
                    send(&mut connection, &case, framing, 5_000_000).await;
                    let answer = answer(&mut connection, &case).await;
                    assert_eq!(answer.header("connection"), Some("close"), "{}: {framing:?}", case.line);
                    assert!(connection.is_closed().await, "{}: {framing:?}", case.line);
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_gets_no_100_continue() {
    both(Setup::default(), |world| async move {
        let mut connection = Connection::open(world.address()).await;
        let expect = "Expect: 100-continue\r\nContent-Length: 200000\r\n\r\n";
        connection.write(format!("POST /nowhere HTTP/1.1\r\nHost: x\r\n{expect}").as_bytes()).await;
        let answer = connection.read_response(false).await.expect("an answer");
        assert_eq!((answer.status, answer.header("connection")), (404, Some("close")));
        assert!(connection.is_closed().await);
        // A peer whose body is needed gets `100 Continue`, and continues.
        let mut connection = Connection::open(world.address()).await;
        let expect = "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        connection.write(format!("POST /auth/v1/token HTTP/1.1\r\nHost: x\r\n{expect}").as_bytes()).await;
        assert_eq!(connection.read_response(true).await.map(|answer| answer.status), Some(100));
        connection.write(b"{}").await;
        let answer = connection.read_response(false).await.expect("an answer");
        assert_eq!((answer.status, answer.header("connection")), (400, None));
        assert_eq!(connection.send(&Request::get("/open/v1/users/me")).await.status, 401);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_body_delays_a_refusal_by_two_seconds_at_most() {
    both(Setup::default(), |world| async move {
        let mut connection = Connection::open(world.address()).await;
        connection.write(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{").await;
        let answer = connection.read_response(false).await.expect("an answer");
        assert_eq!((answer.status, answer.header("connection")), (404, Some("close")));
        connection.write(&[b' '; 99]).await;
        assert!(connection.is_closed().await);
    })
    .await;
}

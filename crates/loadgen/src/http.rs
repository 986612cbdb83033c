//! A minimal HTTP/1.1 client for the load: one connection, one call at a time, bodies of known length.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire_client::{BadHead, Head};

use crate::clock::{Clock, Nanos, SECOND_NS};

/// Deadline of one call, including the connection.
pub(crate) const CALL_DEADLINE: Duration = Duration::from_secs(30);
/// Maximum idle time of a reused connection. The server may be closing an older one, and after a broken call
/// it is unknown whether the server has processed it.
const IDLE_MAX: Nanos = 5 * SECOND_NS;
/// Maximum length of an answer's body, in bytes.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes read from the socket at once.
const READ_BYTES: usize = 4 * 1024;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its socket address.
    pub(crate) address: SocketAddr,
    /// The value of `Host`.
    pub(crate) host: String,
}

impl Origin {
    /// Splits `http://host:port/rest` into the server and the rest, which may be empty.
    ///
    /// # Errors
    /// A sentence, if the URL is not plain HTTP with a numeric host or `localhost`.
    pub(crate) fn split(url: &str) -> Result<(Self, &str), String> {
        let rest = url.strip_prefix("http://").ok_or("only http:// addresses are supported")?;
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let numeric = host.replacen("localhost", "127.0.0.1", 1);
        let address = numeric
            .parse::<SocketAddr>()
            .or_else(|_| format!("{numeric}:80").parse::<SocketAddr>())
            .map_err(|_| format!("{host} is neither a numeric address nor localhost"))?;
        Ok((Self { address, host: host.to_owned() }, path))
    }
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    /// Path and query.
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Body<'a>,
}

/// The body of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    Nothing,
    Json(&'a str),
    Form(&'a str),
    /// One document on each line.
    Lines(&'a str),
}

impl Call<'_> {
    pub(crate) fn bytes(&self, host: &str) -> Vec<u8> {
        let (kind, body) = match self.body {
            Body::Nothing => (None, ""),
            Body::Json(body) => (Some("application/json"), body),
            Body::Form(body) => (Some("application/x-www-form-urlencoded"), body),
            Body::Lines(body) => (Some("application/x-ndjson"), body),
        };
        let mut out = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", self.method, self.path);
        let mut header = |name: &str, value: &str| out.extend([name, ": ", value, "\r\n"]);
        self.headers.iter().for_each(|(name, value)| header(name, value));
        if let Some(kind) = kind {
            header("Content-Type", kind);
        }
        if kind.is_some() || self.method != "GET" {
            header("Content-Length", &body.len().to_string());
        }
        out.extend(["\r\n", body]);
        out.into_bytes()
    }
}

/// Why a call got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The connection was refused.
    Refused,
    /// The connection ended before the answer did.
    Closed,
    /// The deadline passed without an answer.
    TimedOut,
    /// The answer is not HTTP, or not in a form that this client supports.
    Malformed,
}

impl CallError {
    /// The name of the error, for the tally.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Closed => "connection ended",
            Self::TimedOut => "timed out",
            Self::Malformed => "malformed answer",
        }
    }
}

impl From<BadHead> for CallError {
    fn from(_: BadHead) -> Self {
        Self::Malformed
    }
}

/// The length of the body behind a head.
fn body_length(head: &Head) -> Result<usize, CallError> {
    match head.header("content-length") {
        Some(length) => match length.parse() {
            Ok(length) if length <= BODY_BYTES_MAX => Ok(length),
            _ => Err(CallError::Malformed),
        },
        None if matches!(head.status, 204 | 304) => Ok(0),
        None => Err(CallError::Malformed),
    }
}

fn closes(head: &Head) -> bool {
    head.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The `content` of the service's success envelope.
    ///
    /// # Errors
    /// The kind of error: the status, or that there is no envelope.
    pub(crate) fn content(&self) -> Result<serde_json::Value, String> {
        if self.head.status != 200 {
            return Err(format!("HTTP {}", self.head.status));
        }
        let envelope = serde_json::from_slice::<serde_json::Value>(&self.body).ok();
        let content = envelope.and_then(|mut envelope| {
            let good = envelope.get("code")?.as_u64() == Some(200) && envelope.get("message")?.is_null();
            good.then(|| envelope.get_mut("content").map(serde_json::Value::take)).flatten()
        });
        content.ok_or_else(|| "no envelope".to_owned())
    }
}

/// A connection to a server, opened when needed and kept between calls.
#[derive(Debug)]
pub(crate) struct Client {
    origin: Origin,
    clock: Clock,
    connection: Option<(TcpStream, Nanos)>,
}

impl Client {
    /// A client of `origin`, not yet connected.
    pub(crate) fn new(origin: Origin, clock: Clock) -> Self {
        Self { origin, clock, connection: None }
    }

    /// Makes a call. A broken call is not repeated, because the server may have processed it.
    ///
    /// # Errors
    /// [`CallError`]; the connection is closed then.
    pub(crate) async fn call(&mut self, call: &Call<'_>) -> Result<Answer, CallError> {
        match tokio::time::timeout(CALL_DEADLINE, self.attempt(call)).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::TimedOut),
        }
    }

    async fn attempt(&mut self, call: &Call<'_>) -> Result<Answer, CallError> {
        // Taken out of `self`, so that a broken or aborted call leaves no half-read connection.
        let rested = |(stream, since)| (self.clock.now().saturating_sub(since) < IDLE_MAX).then_some(stream);
        let mut stream = match self.connection.take().and_then(rested) {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.origin.address).await.map_err(|_| CallError::Refused)?;
                let _ = stream.set_nodelay(true);
                stream
            }
        };
        stream.write_all(&call.bytes(&self.origin.host)).await.map_err(|_| CallError::Closed)?;
        let answer = read_answer(&mut stream).await?;
        if !closes(&answer.head) {
            self.connection = Some((stream, self.clock.now()));
        }
        Ok(answer)
    }
}

async fn read_answer(stream: &mut TcpStream) -> Result<Answer, CallError> {
    let mut bytes = Vec::with_capacity(READ_BYTES);
    let (head, head_length) = loop {
        if let Some(head) = Head::read(&bytes)? {
            break head;
        }
        read_more(stream, &mut bytes).await?;
    };
    let length = body_length(&head)?;
    while bytes.len() < head_length + length {
        read_more(stream, &mut bytes).await?;
    }
    if bytes.len() > head_length + length {
        return Err(CallError::Malformed);
    }
    Ok(Answer { head, body: bytes.split_off(head_length) })
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<(), CallError> {
    bytes.reserve(READ_BYTES);
    match stream.read_buf(bytes).await {
        Ok(0) | Err(_) => Err(CallError::Closed),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn addresses_are_split_into_server_and_rest() {
        let check = |url: &str, address: &str, rest: &str| {
            let (origin, found) = Origin::split(url).unwrap();
            assert_eq!((origin.address.to_string().as_str(), found), (address, rest), "{url}");
        };
        check("http://127.0.0.1:8080", "127.0.0.1:8080", "");
        check("http://127.0.0.1:8080?auth=x", "127.0.0.1:8080", "?auth=x");
        check("http://localhost:81/a?b", "127.0.0.1:81", "/a?b");
        check("http://127.0.0.1/a", "127.0.0.1:80", "/a");
        check("http://[::1]:9/", "[::1]:9", "/");
        for url in
            ["https://127.0.0.1:1/", "127.0.0.1:1", "http://", "http://example.com/", "http://127.0.0.1:x"]
        {
            assert!(Origin::split(url).is_err(), "{url}");
        }
    }

    #[test]
    fn calls_have_a_content_length() {
        let check = |method, body, expected: &str| {
            let call = Call { method, path: "/p", headers: &[("A", "b")], body };
            assert_eq!(String::from_utf8(call.bytes("h:1")).unwrap(), expected);
        };
        check("GET", Body::Nothing, "GET /p HTTP/1.1\r\nHost: h:1\r\nA: b\r\n\r\n");
        check("POST", Body::Nothing, "POST /p HTTP/1.1\r\nHost: h:1\r\nA: b\r\nContent-Length: 0\r\n\r\n");
        check(
            "POST",
            Body::Json("{}"),
            "POST /p HTTP/1.1\r\nHost: h:1\r\nA: b\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        );
    }

    #[test]
    fn an_envelope_returns_its_content_or_the_kind_of_error() {
        let content = |status, body: &str| {
            let head = Head { status, headers: Vec::new() };
            Answer { head, body: body.into() }.content()
        };
        assert_eq!(content(200, r#"{"code":200,"message":null,"content":{"a":1}}"#).unwrap()["a"], 1);
        assert!(content(200, r#"{"code":200,"message":null,"content":null}"#).unwrap().is_null());
        assert_eq!(content(429, r#"{"code":429,"message":"TOO_MANY_REQUESTS"}"#), Err("HTTP 429".into()));
        for body in ["", "[]", r#"{"code":200,"content":{}}"#, r#"{"code":200,"message":null}"#] {
            assert_eq!(content(200, body), Err("no envelope".into()), "{body}");
        }
    }

    #[tokio::test]
    async fn a_connection_is_kept_and_a_broken_one_replaced() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = Origin { address: listener.local_addr().unwrap(), host: "h".into() };
        let server = tokio::spawn(async move {
            let mut buffer = [0; 1024];
            let (mut first, _) = listener.accept().await.unwrap();
            assert!(first.read(&mut buffer).await.unwrap() > 0);
            for part in ["HTTP/1.1 200 OK\r\nContent-Le", "ngth: 5\r\n\r\nhe", "llo"] {
                first.writable().await.unwrap();
                first.write_all(part.as_bytes()).await.unwrap();
                tokio::task::yield_now().await;
            }
            assert!(first.read(&mut buffer).await.unwrap() > 0);
            assert!(buffer.starts_with(b"GET /2"));
            drop(first);
            let (mut second, _) = listener.accept().await.unwrap();
            second.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            let _ = second.read(&mut buffer).await;
        });
        let mut client = Client::new(origin, Clock::start());
        let call = |path| Call { method: "GET", path, headers: &[], body: Body::Nothing };
        assert_eq!(client.call(&call("/1")).await.unwrap().body, b"hello");
        assert_eq!(client.call(&call("/2")).await.unwrap_err(), CallError::Closed);
        assert_eq!(client.call(&call("/3")).await.unwrap().head.status, 204);
        server.await.unwrap();
    }
}

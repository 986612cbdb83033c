//! The HTTP client of the commands: HTTP/1.1, one connection for each call, with a limit on every wait and
//! answer.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use domain::reason::REASON_HEADER;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use http_client::{Answer, Connection, Limits, Tls, system_roots};
use serde_json::Value;
use tokio::net::TcpStream;

/// Deadline of a call, including the connection.
const CALL_DEADLINE: Duration = Duration::from_secs(15);
/// Maximum length of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The limits of one exchange: a whole answer, its head and its framing.
const LIMITS: Limits =
    Limits { received_max: 2 * ANSWER_BYTES_MAX, body_max: ANSWER_BYTES_MAX, kept_max: ANSWER_BYTES_MAX };

/// A service, by its base URL.
#[derive(Clone)]
pub struct Server {
    base: String,
    address: (String, u16),
    /// `None` for `http`.
    tls: Option<Tls>,
}

/// A request without its host.
pub struct Call<'p> {
    /// The method.
    pub method: Method,
    /// The path, with its query.
    pub path: &'p str,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// What extends the deadline of 15 seconds.
    pub patience: Duration,
}

impl<'p> Call<'p> {
    /// A request without headers, a body and patience.
    pub fn new(method: Method, path: &'p str) -> Self {
        Self { method, path, headers: HeaderMap::new(), body: Bytes::new(), patience: Duration::ZERO }
    }
}

/// Why a call failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The service refused the call.
    Refused {
        /// The status.
        status: u16,
        /// The message of the service.
        message: String,
        /// The reason, as in the header `Stagedoor-Reason`.
        reason: Option<String>,
        /// Seconds until the call may be repeated.
        retry_after_s: Option<u64>,
        /// Further content of the refusal.
        content: Value,
    },
    /// There was no answer, or the answer does not have the form of Stagedoor's answers.
    Unreachable(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { status, message, reason: Some(reason), .. } => {
                write!(f, "{status} {message} ({reason})")
            }
            Self::Refused { status, message, .. } => write!(f, "{status} {message}"),
            Self::Unreachable(why) => f.write_str(why),
        }
    }
}

impl Failure {
    /// Whether the server does not know the path. A thing that does not exist is another 404.
    pub fn is_unknown_path(&self) -> bool {
        let Self::Refused { status: 404, message, reason, .. } = self else { return false };
        message == "NOT_FOUND" && reason.as_deref().is_none_or(|reason| reason.contains("what=path"))
    }
}

impl Server {
    /// Parses a base URL, as in `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = || format!("--server {url}: it must be scheme and host, as in http://127.0.0.1:8080");
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().filter(|_| matches!(uri.path(), "" | "/") && uri.query().is_none());
        let (host, port, tls) = match (host, uri.scheme_str()) {
            (Some(host), Some("http")) => (host, 80, None),
            (Some(host), Some("https")) => {
                let tls =
                    Tls::new(system_roots()).map_err(|error| format!("TLS is not available: {error}"))?;
                (host, 443, Some(tls))
            }
            _ => return Err(wrong()),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let base = url.trim_end_matches('/').to_owned();
        Ok(Self { base, address: (host, uri.port_u16().unwrap_or(port)), tls })
    }

    /// The base URL without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Calls an operation and returns the content of its answer. `patience` extends the deadline of 15
    /// seconds.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Option<&Value>,
        patience: Duration,
    ) -> Result<Value, Failure> {
        let mut headers = headers;
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let body = Bytes::from(body.map(Value::to_string).unwrap_or_default());
        self.read(&self.ask(Call { method, path, headers, body, patience }).await?)
    }

    /// Makes a request, and returns its whole answer.
    ///
    /// # Errors
    /// [`Failure::Unreachable`].
    pub async fn ask(&self, call: Call<'_>) -> Result<Answer, Failure> {
        let Call { method, path, headers, body, patience } = call;
        let request = Request::builder().method(method).uri(path).body(Full::new(body));
        let mut request = request.map_err(|error| Failure::Unreachable(error.to_string()))?;
        *request.headers_mut() = headers;
        let agent = concat!("stagedoor/", env!("CARGO_PKG_VERSION"));
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(agent));
        let authority = self.base.split_once("://").map_or(self.base.as_str(), |(_, rest)| rest);
        let host = HeaderValue::from_str(authority).map_err(|error| self.unreachable(&error))?;
        request.headers_mut().insert(HOST, host);
        let answer = tokio::time::timeout(CALL_DEADLINE + patience, self.exchange(request)).await;
        let late = |_| Failure::Unreachable(format!("{} did not answer in time", self.base));
        answer.map_err(late)?
    }

    /// Makes one exchange. The connection ends with the answer, or when the caller stops waiting, which the
    /// service notices.
    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, Failure> {
        let (host, port) = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|error| self.unreachable(&error))?;
        let tls = self.tls.as_ref().map(|tls| (tls, host.as_str()));
        let connection = Connection::open(stream, tls, LIMITS).await;
        let mut connection = connection.map_err(|error| self.unreachable(&error))?;
        connection.send(request).await.map_err(|error| self.unreachable(&error))
    }

    /// Why an answer is no success.
    pub fn refusal(&self, answer: &Answer) -> Failure {
        let status = answer.status;
        let unexpected = || Failure::Unreachable(format!("{} answered {status}", self.base));
        self.read(answer).err().unwrap_or_else(unexpected)
    }

    fn unreachable(&self, error: &dyn fmt::Display) -> Failure {
        Failure::Unreachable(format!("{} cannot be reached: {error}", self.base))
    }

    /// The content of an answer's envelope.
    pub fn read(&self, answer: &Answer) -> Result<Value, Failure> {
        let status = answer.status.as_u16();
        let envelope: Option<Value> = serde_json::from_slice(&answer.beginning).ok();
        let Some(Value::Object(mut envelope)) = envelope.filter(|body| body["code"] == status) else {
            let why = format!("{} answered {status}, but the answer is not Stagedoor's", self.base);
            return Err(Failure::Unreachable(why));
        };
        let content = envelope.remove("content").unwrap_or_default();
        if answer.status.is_success() {
            return Ok(content);
        }
        let message = envelope["message"].as_str().unwrap_or_default().to_owned();
        let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
        let retry_after_s = header(RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok());
        let reason = header(REASON_HEADER).map(str::to_owned);
        Err(Failure::Refused { status, message, reason, retry_after_s, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_scheme_and_host() {
        let check = |url: &str, expected: Option<(&str, &str, u16)>| {
            let server = Server::parse(url).ok();
            let found = server.as_ref().map(|s| (s.base(), s.address.0.as_str(), s.address.1));
            assert_eq!(found, expected, "{url}");
        };
        check("http://127.0.0.1:8080", Some(("http://127.0.0.1:8080", "127.0.0.1", 8080)));
        check("http://localhost/", Some(("http://localhost", "localhost", 80)));
        check("http://[::1]:80", Some(("http://[::1]:80", "::1", 80)));
        check("https://api.example.com", Some(("https://api.example.com", "api.example.com", 443)));
        for url in ["127.0.0.1:8080", "", "ftp://a", "http://", "http://a/b", "http://a?b", "a b"] {
            check(url, None);
        }
    }

    #[test]
    fn only_an_envelope_is_an_answer() {
        let server = Server::parse("http://a").expect("a server");
        let check = |status: u16, body: &'static str, expected: Result<Value, &str>| {
            let answer = Answer {
                status: http::StatusCode::from_u16(status).expect("a status"),
                headers: HeaderMap::new(),
                beginning: body.into(),
                is_whole: true,
            };
            let found = server.read(&answer).map_err(|failure| failure.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{body}");
        };
        check(200, r#"{"code":200,"message":null,"content":[1]}"#, Ok(serde_json::json!([1])));
        check(404, r#"{"code":404,"message":"NOT_FOUND"}"#, Err("404 NOT_FOUND"));
        check(404, r#"{"code":200}"#, Err("http://a answered 404, but the answer is not Stagedoor's"));
        check(200, "<html>", Err("http://a answered 200, but the answer is not Stagedoor's"));
    }
}

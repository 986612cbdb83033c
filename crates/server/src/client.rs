//! The commands' way to a service that runs somewhere: HTTP/1.1, one connection a call, every wait and answer bounded.

use std::fmt;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// How long a call may take, the connecting included.
const CALL_DEADLINE: Duration = Duration::from_secs(15);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A service, by its base URL.
#[derive(Clone, Debug)]
pub struct Server {
    base: String,
    address: (String, u16),
}

/// Why a call came to nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The service refused it.
    Refused {
        /// The status.
        status: u16,
        /// Its message, as the service worded it.
        message: String,
    },
    /// There was no answer, or none of a service like this one.
    Unreachable(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { status, message } => write!(f, "{status} {message}"),
            Self::Unreachable(why) => f.write_str(why),
        }
    }
}

impl Server {
    /// Reads a base URL, as in `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = || format!("--server {url}: it must be scheme and host, as in http://127.0.0.1:8080");
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().filter(|_| matches!(uri.path(), "" | "/") && uri.query().is_none());
        let (Some(host), Some("http")) = (host, uri.scheme_str()) else { return Err(wrong()) };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let base = url.trim_end_matches('/').to_owned();
        Ok(Self { base, address: (host, uri.port_u16().unwrap_or(80)) })
    }

    /// Its base URL, without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Calls an operation, and gives the content of its answer.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let text = body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder().method(method).uri(path).body(Full::new(Bytes::from(text)));
        let request = request.as_mut().map_err(|error| Failure::Unreachable(error.to_string()))?;
        *request.headers_mut() = headers;
        if body.is_some() {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let answer = tokio::time::timeout(CALL_DEADLINE, self.exchange(request.clone())).await;
        let late = |_| Failure::Unreachable(format!("{} did not answer in time", self.base));
        self.read(&answer.map_err(late)??)
    }

    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Bytes>, Failure> {
        let unreachable = |what: &str, error: &dyn fmt::Display| {
            Failure::Unreachable(format!("{} {what}: {error}", self.base))
        };
        let (host, port) = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|error| unreachable("cannot be reached", &error))?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| unreachable("hung up", &error))?;
        let authority = self.base.split_once("://").map_or(self.base.as_str(), |(_, rest)| rest);
        let host = HeaderValue::from_str(authority).map_err(|error| unreachable("has no name", &error))?;
        request.headers_mut().insert(HOST, host);
        let agent = concat!("stagedoor/", env!("CARGO_PKG_VERSION"));
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(agent));
        // The connection ends with the answer: whatever drives it ends with it too.
        let driver = tokio::spawn(connection);
        let answer = async {
            let answer =
                sender.send_request(request).await.map_err(|error| unreachable("hung up", &error))?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| unreachable("hung up", &error))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        let answer = answer.await;
        driver.abort();
        answer
    }

    /// What an answer's envelope holds.
    fn read(&self, answer: &Response<Bytes>) -> Result<Value, Failure> {
        let status = answer.status().as_u16();
        let envelope: Option<Value> = serde_json::from_slice(answer.body()).ok();
        let Some(Value::Object(mut envelope)) = envelope.filter(|body| body["code"] == status) else {
            let why = format!("{} answered {status}, but not as Stagedoor does", self.base);
            return Err(Failure::Unreachable(why));
        };
        if answer.status().is_success() {
            return Ok(envelope.remove("content").unwrap_or_default());
        }
        let message = envelope["message"].as_str().unwrap_or_default().to_owned();
        Err(Failure::Refused { status, message })
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
        for url in ["127.0.0.1:8080", "", "ftp://a", "http://", "http://a/b", "http://a?b", "a b"] {
            check(url, None);
        }
    }

    #[test]
    fn only_an_envelope_is_an_answer() {
        let server = Server::parse("http://a").expect("a server");
        let check = |status: u16, body: &'static str, expected: Result<Value, &str>| {
            let answer = Response::builder().status(status).body(Bytes::from(body)).expect("an answer");
            let found = server.read(&answer).map_err(|failure| failure.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{body}");
        };
        check(200, r#"{"code":200,"message":null,"content":[1]}"#, Ok(serde_json::json!([1])));
        check(404, r#"{"code":404,"message":"NOT_FOUND"}"#, Err("404 NOT_FOUND"));
        check(404, r#"{"code":200}"#, Err("http://a answered 404, but not as Stagedoor does"));
        check(200, "<html>", Err("http://a answered 200, but not as Stagedoor does"));
    }
}

//! The call that exchanges a code, over HTTP as an application makes it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use domain::ClientId;
use domain::secret::ClientSecret;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use http_client::{Connection, Limits};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::http::answer::Problem;
use crate::sandbox::Parts;

/// The path of the call.
const PATH: &str = "/auth/v1/token";
/// Deadline of the call.
const DEADLINE: Duration = Duration::from_secs(15);
/// Maximum length of the answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The call. `Debug` is left out, because it holds a secret.
pub(super) struct TokenCall {
    body: String,
}

/// The answer to the call.
pub(super) struct TokenAnswer {
    pub status: StatusCode,
    /// The body as it came, with line breaks if it is JSON.
    pub body: String,
    /// The tokens by their names; none if the code was refused.
    pub tokens: Vec<(&'static str, String)>,
}

impl TokenCall {
    pub fn new(client_id: &ClientId, secret: &ClientSecret, code: &str, state: &str) -> Self {
        let body = json!({
            "grantType": "authorization_code",
            "clientId": client_id.as_str(),
            "clientSecret": secret.expose(),
            "code": code,
            "state": state,
        });
        Self { body: body.to_string() }
    }

    /// The call for a shell.
    pub fn as_curl(&self, base_url: &str) -> String {
        let body = self.body.replace('\'', r"'\''");
        format!("curl {base_url}{PATH} \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'")
    }

    /// Makes the call, on a connection to this node.
    pub async fn send(&self, parts: &Parts) -> Result<TokenAnswer, Problem> {
        let failed = |why: &dyn std::fmt::Display| {
            Problem::new(StatusCode::BAD_GATEWAY, format!("the exchange got no answer: {why}"))
        };
        let answered = tokio::time::timeout(DEADLINE, self.exchange(parts)).await;
        answered.map_err(|_| failed(&"it took too long"))?.map_err(|why| failed(&why))
    }

    async fn exchange(&self, parts: &Parts) -> Result<TokenAnswer, String> {
        let limits = Limits {
            received_max: 2 * ANSWER_BYTES_MAX,
            body_max: ANSWER_BYTES_MAX,
            kept_max: ANSWER_BYTES_MAX,
        };
        let stream = TcpStream::connect(reached(parts.address)).await.map_err(|error| error.to_string())?;
        let connection = Connection::open(stream, None, limits).await;
        let mut connection = connection.map_err(|error| error.to_string())?;
        let authority = parts.base_url.split_once("://").map_or("localhost", |(_, authority)| authority);
        let host = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(PATH)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(self.body.clone())))
            .map_err(|error| error.to_string())?;
        let answer = connection.send(request).await.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&answer.beginning).into_owned();
        let json: Option<Value> = serde_json::from_str(&text).ok();
        let token = |name: &'static str| {
            let token = json.as_ref()?["content"][name].as_str()?;
            Some((name, token.to_owned()))
        };
        let tokens = ["accessToken", "refreshToken"].into_iter().filter_map(token).collect();
        let pretty = json.as_ref().and_then(|json| serde_json::to_string_pretty(json).ok());
        Ok(TokenAnswer { status: answer.status, body: pretty.unwrap_or(text), tokens })
    }
}

/// The address by which a node reaches its own listener.
fn reached(listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        IpAddr::V4(any) if any.is_unspecified() => (Ipv4Addr::LOCALHOST, listen.port()).into(),
        _ => listen,
    }
}

//! The call that exchanges a code, over HTTP as an application makes it.

use bytes::Bytes;
use domain::ClientId;
use domain::secret::ClientSecret;
use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::http::answer::Problem;
use crate::http::own_call::call;
use crate::sandbox::Parts;

/// The path of the call.
const PATH: &str = "/auth/v1/token";

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
        let request = Request::builder()
            .method(Method::POST)
            .uri(PATH)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(self.body.clone())))
            .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        let answer = call(parts, request).await?;
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

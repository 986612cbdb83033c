//! The form of answers: the envelope of the service.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::Value;

/// A success with its content.
pub(super) struct Content<T>(pub T);

/// The result of handlers.
pub(super) type Answer<T> = Result<Content<T>, Problem>;

/// A refusal of the sandbox API. The message says what to do next.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    message: String,
    /// Further content of the refusal, such as the nearest misses of an expectation.
    content: Option<Value>,
}

impl Problem {
    /// A refusal.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), content: None }
    }

    /// A wrong value of a field. `rule` continues the sentence: "must be …".
    pub(crate) fn invalid(field: &str, rule: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("{field}: {rule}"))
    }

    /// What is asked for is right in itself, but the sandbox is in another state now. `why` continues the
    /// sentence.
    pub(crate) fn unmet(field: &str, why: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::CONFLICT, format!("{field}: {why}"))
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// What is wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds content.
    pub(crate) fn with_content(self, content: Value) -> Self {
        Self { content: Some(content), ..self }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status.as_u16(), self.message)
    }
}

impl From<service::Error> for Problem {
    /// A refusal of the service keeps its status and its message. Only an unknown path is `NOT_FOUND`
    /// without a name: callers take that for a server that has no sandbox.
    fn from(error: service::Error) -> Self {
        let refusal = error.refusal();
        let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        match refusal {
            domain::Refusal::NotFound(what) => {
                Self::new(status, format!("there is no such {}", what.name().replace('-', " ")))
            }
            refusal => Self::new(status, refusal.message(domain::Language::English)),
        }
    }
}

impl<T: Serialize> IntoResponse for Content<T> {
    fn into_response(self) -> Response {
        envelope(StatusCode::OK, &Success { code: 200, message: (), content: self.0 })
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, message, content } = self;
        envelope(status, &Refusal { code: status.as_u16(), message, content })
    }
}

#[derive(Serialize)]
struct Success<T> {
    code: u16,
    message: (),
    content: T,
}

#[derive(Serialize)]
struct Refusal {
    code: u16,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
}

fn envelope(status: StatusCode, body: &impl Serialize) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    // A value of texts and numbers can always be serialized.
    (status, headers, serde_json::to_vec(body).unwrap_or_default()).into_response()
}

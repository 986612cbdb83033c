//! The handle of the console, shared by its handlers.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use tokio::sync::watch;
use tower::ServiceExt;

use crate::http::access::Access;
use crate::http::answer::Problem;
use crate::http::surroundings::Surroundings;
use crate::sandbox::Sandbox;

/// Maximum length of a form, in bytes.
pub(super) const FORM_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of an answer of the API that is shown, in bytes.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The console of one sandbox. Cheap to clone.
#[derive(Clone)]
pub(super) struct Console(Arc<ConsoleParts>);

struct ConsoleParts {
    sandbox: Sandbox,
    access: Access,
    /// The API, without its check of the caller.
    api: Router,
    surroundings: Surroundings,
    /// Changes with every form, because the API's own requests are not recorded.
    acted: watch::Sender<u64>,
}

impl Console {
    /// The console of a sandbox. `api` does not check its caller.
    pub fn new(sandbox: Sandbox, access: Access, api: Router, surroundings: Surroundings) -> Self {
        let acted = watch::Sender::new(0);
        Self(Arc::new(ConsoleParts { sandbox, access, api, surroundings, acted }))
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    pub fn access(&self) -> &Access {
        &self.0.access
    }

    pub fn surroundings(&self) -> Surroundings {
        self.0.surroundings
    }

    /// Refuses a browser without the cookie, and pages of other origins.
    pub fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        self.0.access.check(method, headers)
    }

    /// Calls the API. The answer is empty if it is no JSON.
    pub async fn call(&self, method: Method, path: &str, body: String) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path).body(Body::from(body));
        let Ok(request) = request else { return (StatusCode::BAD_REQUEST, Value::Null) };
        let Ok(answer) = self.0.api.clone().oneshot(request).await;
        let status = answer.status();
        let bytes = to_bytes(answer.into_body(), ANSWER_BYTES_MAX).await.unwrap_or_default();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// The content of a successful `GET`; `None` if this build has no such call.
    pub async fn content(&self, path: &str) -> Option<Value> {
        let (status, mut answer) = self.call(Method::GET, path, String::new()).await;
        status.is_success().then(|| answer["content"].take())
    }

    /// Notifies the open pages that a form was sent.
    pub fn note_form(&self) {
        self.0.acted.send_modify(|forms| *forms += 1);
    }

    /// Changes with every form.
    pub fn forms(&self) -> watch::Receiver<u64> {
        self.0.acted.subscribe()
    }
}

/// The names and values of a form of at most `bytes_max` bytes.
pub(super) async fn read_form(body: Body, bytes_max: usize) -> Result<Vec<(String, String)>, Problem> {
    let too_large = |_| Problem::invalid("body", format!("must be at most {} KiB", bytes_max / 1024));
    let bytes = to_bytes(body, bytes_max).await.map_err(too_large)?;
    Ok(form_urlencoded::parse(&bytes).into_owned().collect())
}

/// A value of a form; empty if the form does not have it.
pub(super) fn field<'a>(fields: &'a [(String, String)], wanted: &str) -> &'a str {
    fields.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str())
}

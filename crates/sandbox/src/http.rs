//! The sandbox API, `/sandbox/v1`. Its answers have the envelope of the service. The caller has the
//! operator's key. Texts are English: their readers are developers.

mod access;
mod answer;
mod body;
mod clock;
mod environment;
mod expect;
mod explain;
mod faults;
mod hosts;
mod log;
mod names;
mod openapi;
mod sign_in;
mod tokens;
mod trigger;

use axum::Router;
use axum::body::Body;
use axum::routing::{delete, get, post};
use bytes::Bytes;
use domain::secret::SecretHash;
use http::{Request, Response, StatusCode};
use serde_json::Value;

use crate::interceptor::{Cut, Interceptor};
use crate::request_copy::RequestCopy;
use crate::sandbox::Sandbox;
use answer::Problem;

/// The first part of every path of the API.
const PREFIX: &str = "/sandbox/v1";

/// The API of one sandbox, for the listener of its node.
#[derive(Clone)]
pub struct Api {
    routes: Router,
    document: Router,
    interceptor: Interceptor,
}

/// The kinds of triggers with their fields, for the help of the command line.
pub fn trigger_help() -> String {
    trigger::help()
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// The API of a sandbox, for callers with the operator's key. `document` makes the OpenAPI document of
    /// the service, to which the sandbox adds its calls.
    pub fn new(sandbox: Sandbox, operator_key: SecretHash, document: fn() -> Value) -> Self {
        let routes = Router::new()
            .route("/sandbox/v1/clock", get(clock::show).post(clock::steer))
            .route("/sandbox/v1/clock/next", get(clock::next))
            .route("/sandbox/v1/hosts", get(hosts::show))
            .route("/sandbox/v1/log", get(log::show))
            .route("/sandbox/v1/faults", get(faults::list).post(faults::add).delete(faults::clear))
            .route("/sandbox/v1/faults/{id}", delete(faults::remove))
            .route("/sandbox/v1/expect", post(expect::expect))
            .route("/sandbox/v1/trigger", get(trigger::list))
            .route("/sandbox/v1/trigger/{kind}", post(trigger::run))
            .route("/sandbox/v1/tokens", post(tokens::issue))
            .route("/sandbox/v1/explain", get(explain::show))
            .route("/sandbox/v1/sign-in", get(sign_in::show))
            .route("/sandbox/v1/environment", post(environment::collect))
            .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "NOT_FOUND") })
            .method_not_allowed_fallback(|| async {
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED")
            });
        let interceptor = Interceptor::new(sandbox.clone());
        let routes = access::layer(routes, operator_key).with_state(sandbox);
        Self { routes, document: openapi::route(document), interceptor }
    }

    /// The router of a path, if the path belongs to this API.
    pub fn router(&self, path: &str) -> Option<Router> {
        match path {
            openapi::PATH => Some(self.document.clone()),
            path => is_own(path).then(|| self.routes.clone()),
        }
    }

    /// Answers a request of the node by its handler, injects a fault if a rule says so, and records both. The
    /// API's own requests are neither faulted nor recorded.
    ///
    /// # Errors
    /// [`Cut`] when the connection has to end without an answer.
    pub async fn intercept<B, F>(
        &self,
        id: String,
        request: Request<B>,
        handle: impl FnOnce(Request<RequestCopy<B>>) -> F,
    ) -> Result<Response<Body>, Cut>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        F: Future<Output = Response<Body>>,
    {
        if is_own(request.uri().path()) {
            return Ok(handle(request.map(|body| RequestCopy::new(body).0)).await);
        }
        self.interceptor.answer(id, request, handle).await
    }
}

fn is_own(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

//! The sandbox API, `/sandbox/v1`, and the console, `/`. The API's answers have the envelope of the service.
//! The caller has the operator's key or the console's cookie. The API's texts are English: their readers are
//! developers.

mod access;
mod answer;
mod bilingual;
mod body;
mod catch;
mod clock;
mod close_reason;
mod codes;
mod console;
mod console_link;
mod environment;
mod expect;
mod explain;
mod faults;
mod hosts;
mod log;
mod names;
mod openapi;
mod own_call;
mod own_form;
mod runs;
mod scenario_check;
mod sign_in;
mod state;
mod surroundings;
mod tokens;
mod trigger;
mod try_it;
mod worlds;

use std::time::{Duration, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::routing::{delete, get, post};
use bytes::Bytes;
use domain::secret::SecretHash;
use http::{HeaderValue, Request, Response, StatusCode};
use serde_json::Value;
use service::SandboxClock;

use crate::catch_address::CATCH_PATH;
use crate::interceptor::{Cut, Interceptor};
use crate::request_copy::RequestCopy;
use crate::sandbox::Sandbox;
use access::Access;
use answer::Problem;

pub use surroundings::Surroundings;

/// The first part of every path of the API.
const PREFIX: &str = "/sandbox/v1";

/// The API of one sandbox, for the listener of its node.
#[derive(Clone)]
pub struct Api {
    routes: Router,
    document: Router,
    catch: Router,
    try_it: Router,
    /// The console; `None` on a listener without one.
    console: Option<Router>,
    interceptor: Interceptor,
    clock: SandboxClock,
}

/// The end of the year 9999, from 1970.
const DATE_LAST: Duration = Duration::from_secs(253_402_300_799);

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
    /// The API and the console of a sandbox, for callers with the operator's key. `document` makes the
    /// OpenAPI document of the service, to which the sandbox adds its calls.
    pub fn new(
        sandbox: Sandbox,
        operator_key: SecretHash,
        document: fn() -> Value,
        surroundings: Surroundings,
    ) -> Self {
        let routes = Router::new()
            .route("/sandbox/v1/clock", get(clock::show).post(clock::steer))
            .route("/sandbox/v1/clock/next", get(clock::next))
            .route("/sandbox/v1/hosts", get(hosts::show))
            .route("/sandbox/v1/log", get(log::show))
            .route("/sandbox/v1/faults", get(faults::list).post(faults::add).delete(faults::clear))
            .route("/sandbox/v1/faults/profiles", get(faults::profiles))
            .route("/sandbox/v1/faults/{id}", delete(faults::remove))
            .route("/sandbox/v1/expect", post(expect::expect))
            .route("/sandbox/v1/trigger", get(trigger::list))
            .route("/sandbox/v1/trigger/{kind}", post(trigger::run))
            .route("/sandbox/v1/scenario-check", post(scenario_check::check))
            .route("/sandbox/v1/state", get(state::show))
            .route("/sandbox/v1/runs", get(runs::list).post(runs::report))
            .route("/sandbox/v1/tokens", post(tokens::issue))
            .route("/sandbox/v1/codes", post(codes::issue))
            .route("/sandbox/v1/explain", get(explain::show))
            .route("/sandbox/v1/sign-in", get(sign_in::show))
            .route("/sandbox/v1/console-link", post(console_link::make))
            .route("/sandbox/v1/environment", post(environment::collect))
            .route("/sandbox/v1/worlds", get(worlds::list).post(worlds::create))
            .route("/sandbox/v1/worlds/import", post(worlds::import))
            .route("/sandbox/v1/worlds/{id}", delete(worlds::delete))
            .route("/sandbox/v1/worlds/{id}/reset", post(worlds::reset))
            .route("/sandbox/v1/worlds/{id}/snapshots", post(worlds::snapshot))
            .route("/sandbox/v1/worlds/{id}/restore", post(worlds::restore))
            .route("/sandbox/v1/worlds/{id}/export", get(worlds::export))
            .route("/sandbox/v1/snapshots", get(worlds::snapshots))
            .route("/sandbox/v1/snapshots/{name}", delete(worlds::delete_snapshot))
            .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "NOT_FOUND") })
            .method_not_allowed_fallback(|| async {
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED")
            });
        let (interceptor, clock) = (Interceptor::new(sandbox.clone()), sandbox.clock().clone());
        let access = Access::new(operator_key, surroundings.is_secure);
        let unchecked = routes.clone().with_state(sandbox.clone());
        let console = console::routes(sandbox.clone(), access.clone(), unchecked, surroundings);
        Self {
            catch: catch::routes(sandbox.clone(), access.clone()),
            try_it: try_it::routes(sandbox.clone(), access.clone()),
            routes: access::layer(routes, access).with_state(sandbox),
            document: openapi::route(document),
            console: Some(console),
            interceptor,
            clock,
        }
    }

    /// The same for a listener without the console.
    #[must_use]
    pub fn without_console(self) -> Self {
        Self { console: None, ..self }
    }

    /// The router of a path, if the path belongs to this API or to the console.
    pub fn router(&self, path: &str) -> Option<Router> {
        match (&self.console, path) {
            (_, openapi::PATH) => Some(self.document.clone()),
            (Some(_), path) if is_below(CATCH_PATH, path) => Some(self.catch.clone()),
            (Some(_), try_it::PATH) => Some(self.try_it.clone()),
            (Some(console), path) if is_of_console(path) => Some(console.clone()),
            _ => is_below(PREFIX, path).then(|| self.routes.clone()),
        }
    }

    /// The header `Date` of an answer, on the sandbox's clock.
    pub fn date(&self) -> HeaderValue {
        let since_1970 = u64::try_from(self.clock.now().as_millis()).unwrap_or_default();
        // The format has years of four digits.
        let since_1970 = Duration::from_millis(since_1970).min(DATE_LAST);
        let date = httpdate::fmt_http_date(UNIX_EPOCH + since_1970);
        HeaderValue::from_str(&date).unwrap_or(HeaderValue::from_static(""))
    }

    /// Answers a request of the node by its handler, injects a fault if a rule says so, and records both. The
    /// API's own requests and those of the console are neither faulted nor recorded.
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
    is_below(PREFIX, path) || is_below(CATCH_PATH, path) || path == try_it::PATH || is_of_console(path)
}

fn is_of_console(path: &str) -> bool {
    path == console::PATH || is_below(console::PREFIX, path)
}

fn is_below(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

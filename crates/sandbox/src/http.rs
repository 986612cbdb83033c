//! The sandbox API, `/sandbox/v1`. Its answers have the envelope of the service. The caller has the
//! operator's key. Texts are English: their readers are developers.

mod access;
mod answer;
mod body;
mod clock;

use axum::Router;
use axum::routing::get;
use domain::secret::SecretHash;
use http::StatusCode;

use crate::sandbox::Sandbox;
use answer::Problem;

/// The first part of every path of the API.
const PREFIX: &str = "/sandbox/v1";

/// The API of one sandbox, for the listener of its node.
#[derive(Clone)]
pub struct Api(Router);

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// The API of a sandbox, for callers with the operator's key.
    pub fn new(sandbox: Sandbox, operator_key: SecretHash) -> Self {
        let routes = Router::new()
            .route("/sandbox/v1/clock", get(clock::show).post(clock::steer))
            .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "NOT_FOUND") })
            .method_not_allowed_fallback(|| async {
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED")
            });
        Self(access::layer(routes, operator_key).with_state(sandbox))
    }

    /// The router of a path, if the path belongs to this API.
    pub fn router(&self, path: &str) -> Option<Router> {
        let rest = path.strip_prefix(PREFIX)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| self.0.clone())
    }
}

//! Every endpoint: its path, its method, its handler and its summary. The handler's signature has its scope
//! and quota.

mod open;
mod platform;

use std::sync::LazyLock;

use domain::Scope;

use crate::contract::{Operation, Security};

pub(crate) use open::open;
pub(crate) use platform::platform;

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| open().and(platform()).into_operations());

/// Every operation, in the order of the routes.
pub(crate) fn operations() -> &'static [Operation] {
    &OPERATIONS
}

/// The facts about one endpoint that a request needs.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// The method, in capitals.
    pub method: &'static str,
    /// The path, with `{names}` for its parameters.
    pub path: &'static str,
    /// How the caller authenticates.
    pub security: Security,
    /// The scope that the caller needs.
    pub scope: Option<Scope>,
    /// Whether a request without a body is refused.
    pub needs_body: bool,
}

/// Every endpoint, in the order of the routes.
pub fn endpoints() -> Vec<Endpoint> {
    let endpoint = |operation: &Operation| {
        let Operation { method, path, security, scope, ref body, body_required, .. } = *operation;
        Endpoint { method, path, security, scope, needs_body: body.is_some() && body_required }
    };
    operations().iter().map(endpoint).collect()
}

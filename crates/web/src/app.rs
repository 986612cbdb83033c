//! The HTTP application of a listener: its routes, the documents, health and metrics, and what surrounds each
//! request.

use axum::Router;

use crate::contract::routes::Routes;
use crate::router::{self, open, platform};
use crate::{Web, documents, finish, health, operations, pictures};

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Everything.
    All,
    /// Everything but the platform API, which has a listener of its own.
    Open,
    /// The platform API alone.
    Platform,
    /// Only what every node answers: whether it is well, and what it counts.
    Health,
}

/// All of a listener's HTTP but the sockets: an unknown path, a wrong method, a panic and a refusal all leave
/// here in the envelope.
pub fn router(web: Web, served: Served) -> Router {
    let described = |routes: Routes| routes.into_router().merge(documents::paths()).merge(pictures::paths());
    let routes = match served {
        Served::All => described(open().and(platform())).merge(operations::paths()),
        Served::Open => described(open()),
        Served::Platform => described(platform()).merge(operations::paths()),
        Served::Health => operations::paths(),
    };
    finish::around(routes.merge(health::paths()), web)
}

/// Every pattern that a listener may serve, with each of its methods.
pub(crate) fn served() -> impl Iterator<Item = (&'static str, &'static str)> {
    let operations = router::operations().into_iter().map(|operation| (operation.path, operation.method));
    let others = documents::PATHS.into_iter().chain(pictures::PATHS.iter().copied());
    operations.chain(others).chain(operations::PATHS).chain(health::PATHS)
}

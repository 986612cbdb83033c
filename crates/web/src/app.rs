//! The HTTP application of a listener: its routes, the documents, health, metrics, and the layers around
//! them.

use std::sync::Arc;

use axum::Router;
use service::Service;

use crate::contract::routes::Routes;
use crate::router::{self, open, platform};
use crate::traffic::Traffic;
use crate::{Config, NodeInfo, Web, assets, documents, finish, health, logos, operations, pictures};

/// The routes of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// All routes.
    All,
    /// All routes except the platform API, which has its own listener.
    Open,
    /// Only the platform API.
    Platform,
    /// Only health and metrics, which every node serves.
    Health,
}

impl Web {
    /// The HTTP side of a service. `pages` are the route patterns of further pages, with their methods.
    pub fn new(
        service: Service,
        config: Config,
        node: Arc<dyn NodeInfo>,
        pages: &[(&'static str, &'static str)],
    ) -> Self {
        Self::with_traffic(service, config, node, Traffic::of(served().chain(pages.iter().copied())))
    }
}

/// All HTTP of a listener except the sockets. Unknown paths, wrong methods, panics and refusals are answered
/// in the envelope, and for browsers with a page. `pages` are the routes of further pages.
pub fn router(web: Web, served: Served, pages: Router<Web>) -> Router {
    let described = |routes: Routes| {
        routes
            .into_router()
            .merge(documents::paths())
            .merge(pictures::paths())
            .merge(assets::paths())
            .merge(logos::paths())
    };
    let shown_again = pages.clone();
    let routes = match served {
        Served::All => described(open().and(platform())).merge(operations::paths()).merge(pages),
        Served::Open => described(open()).merge(pages),
        Served::Platform => described(platform()).merge(operations::paths()),
        Served::Health => operations::paths(),
    };
    let has_pages = matches!(served, Served::All | Served::Open);
    let web = if has_pages { web.with_pages(shown_again) } else { web };
    finish::layer(routes.merge(health::paths()), web, has_pages)
}

/// Every route pattern that a listener may serve, with each of its methods.
fn served() -> impl Iterator<Item = (&'static str, &'static str)> {
    let operations = router::operations().iter().map(|operation| (operation.path, operation.method));
    let others = documents::PATHS
        .into_iter()
        .chain(pictures::PATHS.iter().copied())
        .chain(assets::PATHS)
        .chain(logos::PATHS);
    operations.chain(others).chain(operations::PATHS).chain(health::PATHS)
}

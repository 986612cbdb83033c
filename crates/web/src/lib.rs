//! The HTTP side of the service: paths, authentication, and the form of answers.
//!
//! `router.rs` is the index of every endpoint. A handler is thin: extractors check the caller (`caller.rs`),
//! the quota (`quota.rs`) and the request (`input.rs`), in the order of `docs/spec/rest.md#checks`. The
//! service does the work, and `envelope.rs` writes the answer. A handler gets its caller only from an
//! extractor, so no handler can forget a scope.

mod app;
mod auth;
mod caller;
mod context;
mod contract;
mod deletion;
pub mod documents;
mod envelope;
mod failures;
mod finish;
mod health;
mod input;
mod language;
mod open;
mod operations;
mod pages;
mod path;
mod pictures;
mod platform;
mod quota;
mod request;
mod router;
mod traffic;

pub use app::{Served, router};
pub use auth::sign_in_cookie;
pub use axum::Router;
pub use axum::body::Body;
pub use context::{BoxFuture, Config, NodeInfo, Web};
pub use contract::Security;
pub use failures::FailureFigures;
pub use request::{ClientAddress, KeepPlace, RequestId, SecureOrigin};
pub use router::{Endpoint, endpoints};
pub use traffic::{DURATION_BOUNDS_US, RouteFigures, STATUS_CLASSES, TrafficFigures};

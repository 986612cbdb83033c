//! HTTP shapes: which path is which function of the service, who may call it, and how answers look.
//!
//! [`router()`] is the index of every endpoint. A handler is thin: extractors prove the caller (`caller.rs`), the quota
//! (`quota.rs`) and the request (`input.rs`), in the order in which the decisions say that checks are made; the service
//! does the work; `envelope.rs` spells the answer. There is no other way to learn who the caller is,
//! so no handler can forget a scope.

mod auth;
mod caller;
pub mod contract;
mod envelope;
mod finish;
mod input;
mod open;
mod pages;
mod platform;
mod quota;
mod router;

use std::net::SocketAddr;
use std::sync::Arc;

use domain::secret::SecretHash;
use domain::{Language, Profile};
use http::HeaderValue;
use service::Service;

pub use axum::Router;
pub use axum::body::Body;
pub use router::{Served, router};

/// How this node's HTTP side is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The language of messages in the envelope.
    pub language: Language,
    /// Where the REST interface is reached, without a slash at its end.
    pub base_url: String,
    /// Where this node's socket sessions are reached, without a slash at its end.
    pub session_base: String,
    /// The hash of the operator's key; `None` turns the platform API off.
    pub operator_key: Option<SecretHash>,
    /// Whether the sign-in page lists people to pick from without a password: only in the sandbox.
    pub sandbox: bool,
}

/// What every handler is given. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Web(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    config: Config,
}

impl Web {
    /// The HTTP side of a service.
    pub fn new(service: Service, config: Config) -> Self {
        Self(Arc::new(Inner { service, config }))
    }

    /// The service behind.
    pub fn service(&self) -> &Service {
        &self.0.service
    }

    /// How this side is set up.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The profile that answers to an application follow.
    pub(crate) fn profile(&self, own: Option<Profile>) -> Profile {
        self.service().profile(own)
    }
}

/// The id of a request: in its answer, in its log lines, on its error page. The listener puts it into each request's
/// extensions.
#[derive(Clone, Debug)]
pub struct RequestId(String);

impl RequestId {
    /// A new id from 80 random bits.
    pub fn generate(random: [u8; 10]) -> Self {
        Self(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The value of `X-Request-Id`.
    pub fn header(&self) -> HeaderValue {
        // Hexadecimal digits fit into a header.
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static(""))
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who is on the other end of the connection. The listener puts it into each request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

//! The HTTP side of the service: paths, authentication, and the form of answers.
//!
//! `router.rs` is the index of every endpoint. A handler is thin: extractors check the caller (`caller.rs`),
//! the quota (`quota.rs`) and the request (`input.rs`), in the order of `docs/spec/rest.md#checks`. The
//! service does the work, and `envelope.rs` writes the answer. A handler gets its caller only from an
//! extractor, so no handler can forget a scope.

mod app;
mod auth;
mod caller;
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
mod router;
mod traffic;

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::secret::SecretHash;
use domain::{Language, Profile, Refusal, SessionKey};
use http::HeaderValue;
use service::Service;
use tokio::sync::{Semaphore, SemaphorePermit};

pub use app::{Served, router};
pub use axum::Router;
pub use axum::body::Body;
pub use contract::Security;
pub use failures::FailureFigures;
pub use router::{Endpoint, endpoints};
pub use traffic::{DURATION_BOUNDS_US, RouteFigures, STATUS_CLASSES, TrafficFigures};

use auth::KnownAddresses;
use traffic::Traffic;

/// Maximum number of concurrent secret look-ups for addresses with many failures.
const FAILED_LOOKUPS_MAX: usize = 4;
/// How long a caller from such an address waits for its look-up, in seconds.
const FAILED_LOOKUP_WAIT_S: u32 = 3;

/// The configuration of a node's HTTP side.
#[derive(Clone, Debug)]
pub struct Config {
    /// The language of messages in the envelope.
    pub language: Language,
    /// The base URL of the REST interface, without a slash at the end.
    pub base_url: String,
    /// The hash of the operator's key; `None` turns the platform API off.
    pub operator_key: Option<SecretHash>,
    /// Whether the sign-in page lists people to choose from without a password. Only the sandbox does.
    pub sandbox: bool,
}

/// The facts about the node that operators can read.
pub trait NodeInfo: Send + Sync {
    /// All metrics of the node, in the text format of Prometheus. `traffic` is the metrics of this HTTP side.
    fn metrics(&self, traffic: TrafficFigures) -> BoxFuture<'_, String>;

    /// How a session is connected to this node: `websocket` or `polling`; `None` if it is not.
    fn transport<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, Option<&'static str>>;
}

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The state of all handlers. Cheap to clone.
#[derive(Clone)]
pub struct Web(Arc<Inner>);

struct Inner {
    service: Service,
    config: Config,
    node: Arc<dyn NodeInfo>,
    traffic: Traffic,
    known_addresses: KnownAddresses,
    /// Limits the look-ups for addresses with many failures.
    failed_lookups: Semaphore,
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Web").field("config", &self.0.config).finish_non_exhaustive()
    }
}

impl Web {
    /// The HTTP side of a service.
    pub fn new(service: Service, config: Config, node: Arc<dyn NodeInfo>) -> Self {
        let traffic = Traffic::of(app::served());
        let (known_addresses, failed_lookups) =
            (KnownAddresses::default(), Semaphore::new(FAILED_LOOKUPS_MAX));
        Self(Arc::new(Inner { service, config, node, traffic, known_addresses, failed_lookups }))
    }

    /// The service.
    pub fn service(&self) -> &Service {
        &self.0.service
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The node.
    pub(crate) fn node(&self) -> &dyn NodeInfo {
        &*self.0.node
    }

    /// The metrics of this side.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    /// The known addresses of accounts.
    pub(crate) fn known_addresses(&self) -> &KnownAddresses {
        &self.0.known_addresses
    }

    /// Waits for a look-up on behalf of an address with many failures. All such addresses together have
    /// [`FAILED_LOOKUPS_MAX`] look-ups, so they do not keep other callers from the store.
    pub(crate) async fn failed_lookup_permit(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        let busy = Refusal::Busy { retry_after_s: FAILED_LOOKUP_WAIT_S };
        tokio::select! {
            permit = self.0.failed_lookups.acquire() => permit.map_err(|_| busy),
            () = self.service().clock().sleep(Duration::from_secs(FAILED_LOOKUP_WAIT_S.into())) => Err(busy),
        }
    }

    /// The profile of answers to an application.
    pub(crate) fn profile(&self, own: Option<Profile>) -> Profile {
        self.service().profile(own)
    }
}

/// The id of a request, in its answer, its log lines and its error page. The listener adds it to each
/// request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct RequestId([u8; 20]);

impl RequestId {
    /// The id of the `n`th request of a connection, from 80 random bits of the connection. Randomness is
    /// drawn once a connection, because it costs a system call.
    pub fn new(connection: [u8; 10], n: u64) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut bytes = [0; 16];
        bytes[6..].copy_from_slice(&connection);
        let id = u128::from_be_bytes(bytes).wrapping_add(n.into());
        let mut digits = [0; 20];
        for (place, digit) in digits.iter_mut().rev().enumerate() {
            *digit = DIGITS[(id >> (4 * place)) as usize & 0xf];
        }
        Self(digits)
    }

    /// The value of `X-Request-Id`.
    pub fn header(&self) -> HeaderValue {
        // Hexadecimal digits are valid in a header.
        HeaderValue::from_bytes(&self.0).unwrap_or(HeaderValue::from_static(""))
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

/// Keeps the place of a request whose body is still arriving. Otherwise the connection may be closed when
/// another needs its place, because any caller can begin a body. The listener adds this to the extensions of
/// each request with a body.
#[derive(Clone)]
pub struct KeepPlace(Arc<dyn Fn() + Send + Sync>);

impl KeepPlace {
    /// A value that calls this function.
    pub fn new(keep: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(keep))
    }

    /// Keeps the place until the request is answered. Called for authenticated callers.
    pub(crate) fn keep(&self) {
        (self.0)();
    }
}

/// The address of the client that a request counts for: the TCP peer, or the client that a trusted proxy
/// names. The listener adds it to each request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress(pub IpAddr);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_connection_are_twenty_digits_and_differ() {
        let id = |connection, n| RequestId::new(connection, n).to_string();
        assert_eq!(id([0; 10], 0), "00000000000000000000");
        assert_eq!(id([0x1f; 10], 1), "1f1f1f1f1f1f1f1f1f20");
        assert_eq!(id([0xff; 10], 2), "00000000000000000001");
        assert_eq!(RequestId::new([0x1f; 10], 1).header(), "1f1f1f1f1f1f1f1f1f20");
    }
}

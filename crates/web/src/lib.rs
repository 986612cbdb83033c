//! HTTP shapes: which path is which function of the service, who may call it, and how answers look.
//!
//! `router.rs` is the index of every endpoint. A handler is thin: extractors prove the caller (`caller.rs`),
//! the quota (`quota.rs`) and the request (`input.rs`), in the order of `docs/spec/rest.md#checks`. The
//! service does the work, and `envelope.rs` writes the answer. There is no other way to learn who the caller
//! is, so no handler can forget a scope.

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

use auth::Places;
use traffic::Traffic;

/// Callers from addresses that failed too often whose secrets are looked up at once.
const FAILED_AT_ONCE: usize = 4;
/// How long such a caller waits for its turn, in seconds.
const FAILED_WAIT_MAX_S: u32 = 3;

/// How this node's HTTP side is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The language of messages in the envelope.
    pub language: Language,
    /// Where the REST interface is reached, without a slash at its end.
    pub base_url: String,
    /// The hash of the operator's key; `None` turns the platform API off.
    pub operator_key: Option<SecretHash>,
    /// Whether the sign-in page lists people to pick from without a password: only in the sandbox.
    pub sandbox: bool,
}

/// What the HTTP side asks of the node around it, for the operator.
pub trait NodeInfo: Send + Sync {
    /// Everything that the node counts, in the text format of Prometheus. `traffic` are this side's own
    /// figures.
    fn metrics(&self, traffic: TrafficFigures) -> BoxFuture<'_, String>;

    /// How a session is connected to this node: `websocket` or `polling`; `None` when it is not.
    fn transport<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, Option<&'static str>>;
}

/// A boxed future: what [`NodeInfo`] gives.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What every handler is given. Cheap to clone.
#[derive(Clone)]
pub struct Web(Arc<Inner>);

struct Inner {
    service: Service,
    config: Config,
    node: Arc<dyn NodeInfo>,
    traffic: Traffic,
    places: Places,
    /// Turns of addresses that failed too often.
    failed: Semaphore,
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
        let (places, failed) = (Places::default(), Semaphore::new(FAILED_AT_ONCE));
        Self(Arc::new(Inner { service, config, node, traffic, places, failed }))
    }

    /// The service behind.
    pub fn service(&self) -> &Service {
        &self.0.service
    }

    /// How this side is set up.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The node around this side.
    pub(crate) fn node(&self) -> &dyn NodeInfo {
        &*self.0.node
    }

    /// What this side counts.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    /// Where accounts were signed in to.
    pub(crate) fn places(&self) -> &Places {
        &self.0.places
    }

    /// A turn at the store for an address that failed too often: of all such addresses together,
    /// [`FAILED_AT_ONCE`] are answered at once, so that they do not keep the store from others.
    pub(crate) async fn turn_of_those_who_failed(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        let busy = Refusal::Busy { retry_after_s: FAILED_WAIT_MAX_S };
        tokio::select! {
            permit = self.0.failed.acquire() => permit.map_err(|_| busy),
            () = self.service().clock().sleep(Duration::from_secs(FAILED_WAIT_MAX_S.into())) => Err(busy),
        }
    }

    /// The profile that answers to an application follow.
    pub(crate) fn profile(&self, own: Option<Profile>) -> Profile {
        self.service().profile(own)
    }
}

/// The id of a request: in its answer, in its log lines, on its error page. The listener puts it into each
/// request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct RequestId([u8; 20]);

impl RequestId {
    /// The id of the `n`th request of a connection that drew 80 random bits: randomness is asked for once a
    /// connection, because it costs a call of the system.
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
        // Hexadecimal digits fit into a header.
        HeaderValue::from_bytes(&self.0).unwrap_or(HeaderValue::from_static(""))
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

/// Keeps the place of a request whose body is still arriving. Without it the connection may be closed when
/// another needs its place, because anybody can begin a body. The listener puts it into the extensions of
/// each request with a body.
#[derive(Clone)]
pub struct KeepPlace(Arc<dyn Fn() + Send + Sync>);

impl KeepPlace {
    /// One that calls this.
    pub fn new(keep: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(keep))
    }

    /// Keeps the place until the request is answered: for callers that have proved who they are.
    pub(crate) fn keep(&self) {
        (self.0)();
    }
}

/// The address of the client that a request counts for: the TCP peer, or whom a trusted proxy names. The
/// listener puts it into each request's extensions.
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

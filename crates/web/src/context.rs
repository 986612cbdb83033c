//! The context of all handlers: the service, the configuration, the node, and the metrics of this side.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use domain::secret::SecretHash;
use domain::{Language, Profile, Refusal, SessionKey};
use service::Service;
use service::routed_sessions::RouterComparison;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::ClientAddress;
use crate::auth::KnownAddresses;
use crate::brand::{Brand, StaticFiles};
use crate::failures::Failed;
use crate::page_cache::PageCache;
use crate::traffic::{Traffic, TrafficFigures};

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
    /// The hashes of the operator's keys: one, or two while the key is changed. Without any the configuration
    /// has no key of the platform API.
    pub operator_keys: Vec<SecretHash>,
    /// Whether the sign-in page lists people to choose from without a password. Only the sandbox does.
    pub sandbox: bool,
    /// The brand of the pages.
    pub brand: Brand,
    /// The providers at which people can sign in.
    pub providers: Vec<SignInProvider>,
}

/// A provider at which people can sign in.
#[derive(Clone, Debug)]
pub struct SignInProvider {
    /// Its name in addresses.
    pub name: String,
    /// Its label, in Korean and in English.
    pub labels: [String; 2],
}

/// The facts about the node that operators can read.
pub trait NodeInfo: Send + Sync {
    /// All metrics of the node, in the text format of Prometheus. `traffic` is the metrics of this HTTP side.
    fn metrics(&self, traffic: TrafficFigures) -> BoxFuture<'_, String>;

    /// The router of this node beside the store. It is empty on a node without sockets.
    fn compare_router(&self) -> BoxFuture<'_, Result<RouterComparison, service::Error>>;

    /// How a session is connected to this node; `None` if it is not.
    fn connection<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, Option<Connection>>;
}

/// The connection of a session to this node.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// `websocket` or `polling`.
    pub transport: &'static str,
    /// The time since the client's last sign of life, a packet or the answer to a ping.
    pub silent_for: Duration,
}

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The state of all handlers. Cheap to clone.
#[derive(Clone)]
pub struct Web(Arc<Inner>, Option<Router>);

struct Inner {
    service: Service,
    config: Config,
    node: Arc<dyn NodeInfo>,
    traffic: Traffic,
    files: StaticFiles,
    /// The pages of the documentation.
    docs: PageCache,
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
    pub(crate) fn with_traffic(
        service: Service,
        config: Config,
        node: Arc<dyn NodeInfo>,
        traffic: Traffic,
    ) -> Self {
        let (known_addresses, failed_lookups) =
            (KnownAddresses::default(), Semaphore::new(FAILED_LOOKUPS_MAX));
        let files = StaticFiles::of(&config.brand);
        let docs = PageCache::default();
        let inner = Inner { service, config, node, traffic, files, docs, known_addresses, failed_lookups };
        Self(Arc::new(inner), None)
    }

    /// The same, with the pages that a form can be shown again on. They have a state of their own without
    /// pages, so that nothing holds itself.
    pub(crate) fn with_pages(&self, pages: Router<Self>) -> Self {
        Self(self.0.clone(), Some(pages.with_state(self.clone())))
    }

    /// The pages of people.
    pub(crate) fn pages(&self) -> Option<&Router> {
        self.1.as_ref()
    }

    /// The service.
    pub fn service(&self) -> &Service {
        &self.0.service
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The files that the pages load.
    pub(crate) fn files(&self) -> &StaticFiles {
        &self.0.files
    }

    /// The pages of the documentation.
    pub(crate) fn docs(&self) -> &PageCache {
        &self.0.docs
    }

    /// The address of the page on which a person chooses a new password.
    pub fn reset_page(&self) -> String {
        format!("{}/reset-password", self.config().base_url)
    }

    /// The node.
    pub fn node(&self) -> &dyn NodeInfo {
        &*self.0.node
    }

    /// The metrics of this side.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    /// Counts a failed authentication.
    pub(crate) fn count_failure(&self, failed: Failed, client: Option<ClientAddress>) {
        self.0.traffic.failures.count(failed, client, self.service().clock().monotonic());
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

//! Connects to the address of a webhook. The name is resolved once, every IP address is judged, and only a
//! judged IP address is connected to.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::limits::WEBHOOK_EXCERPT_CHARS_MAX;
use domain::outbound::{Host, Reach, SendFailure, WebhookUrl};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use http_client::{Error, Limits, Tls};
use service::Clock;
use tokio::net::TcpStream;

/// Maximum number of IP addresses of one name that are tried, in the order of the resolver.
const ADDRESSES_TRIED_MAX: usize = 4;
/// Deadline of one IP address while other addresses are left.
const ADDRESS_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Maximum number of bytes received in one exchange, of any kind: a TLS handshake, or an answer with interim
/// answers and framing. Any useful answer is far smaller.
const EXCHANGE_BYTES_MAX: usize = 128 * 1024;
/// Maximum number of bytes of an answer's body that are read. The client does not wait for the rest.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of bytes of an answer's body that are kept: the longest excerpt that is shown.
pub const BEGINNING_BYTES_MAX: usize = 4 * WEBHOOK_EXCERPT_CHARS_MAX;
/// The limits of one exchange.
const LIMITS: Limits =
    Limits { received_max: EXCHANGE_BYTES_MAX, body_max: ANSWER_BYTES_MAX, kept_max: BEGINNING_BYTES_MAX };

/// Resolves names.
pub type Resolver = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The system's resolver.
pub fn system_resolver() -> Resolver {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// Makes connections.
pub(super) struct Connector {
    pub reach: Reach,
    pub clock: Clock,
    pub tls: Tls,
    pub lookups: Lookups,
}

/// A connection to a receiver.
pub(super) struct Connection {
    pub http: http_client::Connection,
    /// The time of the connection, on the monotonic clock.
    pub opened_at: Duration,
}

/// IP addresses that may be called. Only [`Connector::judged`] makes them.
pub(super) struct Judged(Vec<IpAddr>);

impl Connector {
    /// Connects, without a deadline. The caller sets one.
    pub async fn connect(&self, url: &WebhookUrl) -> Result<Connection, SendFailure> {
        let addresses = self.look_up(url).await?;
        let judged = self.judged(url, addresses)?;
        let stream = self.open(url, &judged).await?;
        let http = self.speak(url, stream).await.map_err(|error| failure_of(&error))?;
        Ok(Connection { http, opened_at: self.clock.monotonic() })
    }

    /// Opens HTTP over a stream to the host of the address, over TLS if the address says so.
    pub async fn speak(&self, url: &WebhookUrl, stream: TcpStream) -> Result<http_client::Connection, Error> {
        let host = match url.host() {
            Host::Name(name) => name.clone(),
            Host::Address(address) => address.to_string(),
        };
        let tls = url.is_secure().then_some((&self.tls, host.as_str()));
        http_client::Connection::open(stream, tls, LIMITS).await.inspect_err(|error| {
            if let Error::Tls(error) = error {
                tracing::debug!(receiver = %url.origin(), %error, "TLS handshake with a webhook receiver failed");
            }
        })
    }

    /// The addresses that may be called.
    pub fn judged(&self, url: &WebhookUrl, addresses: Vec<IpAddr>) -> Result<Judged, SendFailure> {
        let mut addresses = addresses;
        addresses.retain(|address| url.may_connect(*address, self.reach));
        addresses.truncate(ADDRESSES_TRIED_MAX);
        if addresses.is_empty() { Err(SendFailure::Address) } else { Ok(Judged(addresses)) }
    }

    /// Connects to one of the addresses.
    pub async fn open(&self, url: &WebhookUrl, Judged(addresses): &Judged) -> Result<TcpStream, SendFailure> {
        let Some((last, others)) = addresses.split_last() else { return Err(SendFailure::Address) };
        for address in others {
            let timeout = self.clock.sleep(ADDRESS_TIMEOUT);
            tokio::select! {
                opened = self.open_one(url, *address) => if opened.is_ok() { return opened },
                () = timeout => {}
            }
        }
        self.open_one(url, *last).await
    }

    async fn open_one(&self, url: &WebhookUrl, address: IpAddr) -> Result<TcpStream, SendFailure> {
        let opened = TcpStream::connect(SocketAddr::new(address, url.port())).await;
        let stream = opened.map_err(|_| SendFailure::Connect)?;
        // The operating system may redirect the connection to another address. Then nothing is sent.
        let peer = stream.peer_addr().map_err(|_| SendFailure::Connect)?;
        if !url.may_connect(peer.ip(), self.reach) {
            return Err(SendFailure::Address);
        }
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    /// The IP addresses of the host.
    pub async fn look_up(&self, url: &WebhookUrl) -> Result<Vec<IpAddr>, SendFailure> {
        match url.host() {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) => self.lookups.find(name).await.ok_or(SendFailure::Dns),
        }
    }
}

/// The reason of a failed exchange.
pub(super) fn failure_of(error: &Error) -> SendFailure {
    match error {
        Error::Tls(_) => SendFailure::Tls,
        Error::Protocol => SendFailure::Protocol,
        Error::Closed | Error::Unsent(_) => SendFailure::Closed,
    }
}

type Lookup = Shared<BoxFuture<'static, Option<Vec<IpAddr>>>>;

/// Resolves names, with one lookup for each name at a time. The system's lookup occupies a thread until the
/// name server answers, even after its caller is gone. Without this limit, a slow name server would soon
/// occupy every thread.
pub(super) struct Lookups {
    resolver: Resolver,
    running: Arc<Mutex<HashMap<String, Lookup>>>,
}

impl Lookups {
    pub fn new(resolver: Resolver) -> Self {
        Self { resolver, running: Arc::default() }
    }

    /// The addresses of a name; `None` when there are none.
    async fn find(&self, name: &str) -> Option<Vec<IpAddr>> {
        let lookup = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            match running.get(name) {
                Some(lookup) => lookup.clone(),
                None => {
                    let lookup = self.start(name);
                    running.insert(name.to_owned(), lookup.clone());
                    lookup
                }
            }
        };
        lookup.await
    }

    /// Starts a lookup that continues without its callers.
    fn start(&self, name: &str) -> Lookup {
        let (resolving, running, name) =
            ((self.resolver)(name.to_owned()), self.running.clone(), name.to_owned());
        let looking = tokio::spawn(async move {
            let found = resolving.await;
            running.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            found.ok().filter(|addresses| !addresses.is_empty())
        });
        let looking: BoxFuture<'static, _> = Box::pin(async move { looking.await.ok().flatten() });
        looking.shared()
    }
}

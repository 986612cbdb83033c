//! From a webhook's address to a connection: the name is looked up once, every address is judged, and one of the very
//! addresses that were judged is connected to.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use domain::outbound::{Host, Reach, SendFailure, WebhookUrl};
use futures_util::FutureExt;
use futures_util::future::Shared;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use service::Clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::metered::{Allowance, Metered, UsedUp};

/// Addresses of one name that are tried, in the order in which the system gives them.
const ADDRESSES_TRIED_MAX: usize = 4;
/// How long one address is given while there are others to try.
const TURN: Duration = Duration::from_millis(1_500);
/// Bytes of the head of an answer, and of what is read ahead.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Headers of an answer.
const HEADERS_MAX: usize = 100;

/// Bytes that come in over one connection for one exchange, whatever they are: the shaking of hands for TLS or an answer with
/// its interim answers and the framing of both. An answer that anybody needs is far below it.
const EXCHANGE_BYTES_MAX: usize = 128 * 1024;

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How names become addresses.
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
    pub tls: TlsConnector,
    pub lookups: Lookups,
}

/// A connection to a receiver. Dropped, it is closed at once, whether or not the peer reads.
pub(super) struct Connection {
    pub sender: SendRequest<Full<Bytes>>,
    allowance: Allowance,
    driver: JoinHandle<()>,
    /// On the clock's monotonic side.
    pub opened_at: Duration,
}

impl Connection {
    /// To be called before each exchange.
    pub fn begin(&self) {
        self.allowance.renew(EXCHANGE_BYTES_MAX);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connector {
    /// Connects. Whoever calls sets the limit of time.
    pub async fn connect(&self, url: &WebhookUrl) -> Result<Connection, SendFailure> {
        let allowance = Allowance::new(EXCHANGE_BYTES_MAX);
        let stream = Metered::new(self.open(url).await?, allowance.clone());
        if !url.is_secure() {
            return self.speak(stream, allowance).await;
        }
        let name = match url.host() {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| SendFailure::Tls)?,
            Host::Address(address) => ServerName::IpAddress((*address).into()),
        };
        let stream = self.tls.connect(name, stream).await.map_err(|error| {
            tracing::debug!(receiver = %url.origin(), %error, "no TLS with a webhook's receiver");
            SendFailure::Tls
        })?;
        self.speak(stream, allowance).await
    }

    async fn speak<S>(&self, stream: S, allowance: Allowance) -> Result<Connection, SendFailure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut http = http1::Builder::new();
        // Names are spelled as the specification spells them.
        http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX).title_case_headers(true);
        let shaken = http.handshake(TokioIo::new(stream)).await.map_err(|error| failure_of(&error))?;
        let (sender, connection) = shaken;
        let driver = tokio::spawn(async move {
            // Whoever waits for the answer hears of it.
            let _ = connection.await;
        });
        Ok(Connection { sender, allowance, driver, opened_at: self.clock.monotonic() })
    }

    /// A connection to one of the addresses that may be connected to.
    async fn open(&self, url: &WebhookUrl) -> Result<TcpStream, SendFailure> {
        let mut addresses = self.addresses(url).await?;
        addresses.retain(|address| url.may_connect(*address, self.reach));
        addresses.truncate(ADDRESSES_TRIED_MAX);
        let Some((last, others)) = addresses.split_last() else { return Err(SendFailure::Address) };
        for address in others {
            let turn = self.clock.sleep(TURN);
            tokio::select! {
                opened = self.open_one(url, *address) => if opened.is_ok() { return opened },
                () = turn => {}
            }
        }
        self.open_one(url, *last).await
    }

    async fn open_one(&self, url: &WebhookUrl, address: IpAddr) -> Result<TcpStream, SendFailure> {
        let opened = TcpStream::connect(SocketAddr::new(address, url.port())).await;
        let stream = opened.map_err(|_| SendFailure::Connect)?;
        // The system may have been told to lead connections elsewhere; then nothing is sent.
        let peer = stream.peer_addr().map_err(|_| SendFailure::Connect)?;
        if !url.may_connect(peer.ip(), self.reach) {
            return Err(SendFailure::Address);
        }
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    async fn addresses(&self, url: &WebhookUrl) -> Result<Vec<IpAddr>, SendFailure> {
        match url.host() {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) => self.lookups.find(name).await.ok_or(SendFailure::Dns),
        }
    }
}

/// What a failed exchange is called.
pub(super) fn failure_of(error: &hyper::Error) -> SendFailure {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    let is_wrong = cause.is_some_and(|cause| {
        // The first two are what the HTTP library calls chunks that are none.
        matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
            || cause.get_ref().is_some_and(|cause| cause.is::<UsedUp>())
    });
    if error.is_parse() || is_wrong { SendFailure::Protocol } else { SendFailure::Closed }
}

type Lookup = Shared<BoxFuture<'static, Option<Vec<IpAddr>>>>;

/// Looks names up: of one name, one at a time. The system's look-up occupies a thread until its name server has answered,
/// also when nobody waits any more. Without this, a name server that keeps everybody waiting would soon have all of them.
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

    /// Starts one that goes on without those who wait for it.
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

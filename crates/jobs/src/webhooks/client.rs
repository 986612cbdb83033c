//! The HTTP client for webhooks: sends a POST, and reads the beginning of the answer.
//!
//! The client follows no redirect, uses no proxy from the environment, and sends nothing twice. One attempt
//! has 5 seconds for everything, from the DNS lookup to the end of the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::outbound::{Reach, SendFailure, WebhookUrl};
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Full;
use http_client::{Error, RootCertStore, Tls, TlsUnavailable, system_roots};
use service::Clock;

use super::connect::{Connection, Connector, Lookups, Resolver, failure_of, system_resolver};
use super::pool::ConnectionPool;

/// Deadline of one attempt: lookup, connection, TLS, request and the whole answer
/// (`docs/spec/drops.md#webhook`).
pub const ATTEMPT_MAX: Duration = Duration::from_secs(5);

/// The configuration of a client.
pub struct ClientConfig {
    /// The addresses that may be called besides public ones.
    pub reach: Reach,
    /// The clock of deadlines.
    pub clock: Clock,
    /// Resolves names.
    pub resolver: Resolver,
    /// The certificate authorities that are trusted.
    pub roots: RootCertStore,
    /// Maximum number of idle connections.
    pub idle_max: usize,
}

impl ClientConfig {
    /// The system's resolver and certificate authorities, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    /// Reads files.
    pub fn system(reach: Reach, clock: Clock, idle_max: usize) -> Self {
        let roots = system_roots();
        if roots.is_empty() {
            tracing::warn!("no certificate authorities found: webhooks to https addresses will fail");
        }
        Self { reach, clock, resolver: system_resolver(), roots, idle_max }
    }
}

/// The request of one attempt.
#[derive(Clone)]
pub struct Outgoing {
    /// The address.
    pub url: WebhookUrl,
    /// Every header but `Host` and `Content-Length`.
    pub headers: HeaderMap,
    /// The raw bytes that were signed.
    pub body: Bytes,
}

impl Outgoing {
    /// A request with these headers; `None` when one of them is invalid.
    pub fn new(url: WebhookUrl, headers: &[(String, String)], body: Vec<u8>) -> Option<Self> {
        let headers = headers.iter().map(|(name, value)| {
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
        });
        let mut headers = headers.collect::<Option<HeaderMap>>()?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let agent = concat!("stagedoor/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        Some(Self { url, headers, body: Bytes::from(body) })
    }
}

/// The answer of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status, which may be a redirect.
    pub status: u16,
    /// `Retry-After` as received.
    pub retry_after: Option<String>,
    /// The beginning of the body.
    pub beginning: Vec<u8>,
}

/// Sends webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    connector: Connector,
    pool: ConnectionPool,
}

impl Client {
    /// Creates a client.
    ///
    /// # Errors
    /// When the TLS library refuses its own defaults.
    pub fn new(config: ClientConfig) -> Result<Self, TlsUnavailable> {
        let ClientConfig { reach, clock, resolver, roots, idle_max } = config;
        let tls = Tls::new(roots)?;
        let pool = ConnectionPool::new(clock.clone(), idle_max);
        let connector = Connector { reach, clock, tls, lookups: Lookups::new(resolver) };
        Ok(Self(Arc::new(Inner { connector, pool })))
    }

    /// Makes one attempt.
    ///
    /// # Errors
    /// Why there is no answer. The receiver may have processed the message anyway.
    pub async fn send(&self, outgoing: Outgoing) -> Result<Answer, SendFailure> {
        let in_time = self.0.connector.clock.sleep(ATTEMPT_MAX);
        tokio::select! {
            outcome = self.attempt(outgoing) => outcome,
            () = in_time => Err(SendFailure::Timeout),
        }
    }

    /// Closes expired connections. The caller calls this regularly.
    pub fn close_idle(&self) {
        self.0.pool.close_idle();
    }

    async fn attempt(&self, outgoing: Outgoing) -> Result<Answer, SendFailure> {
        let Inner { connector, pool } = &*self.0;
        let url = outgoing.url.clone();
        let request = request(outgoing)?;
        let mut connection = self.connection(&url).await?;
        let answered = match connection.http.send(request).await {
            // The idle connection had ended before anything was written.
            Err(Error::Unsent(request)) => {
                connection = connector.connect(&url).await?;
                connection.http.send(*request).await
            }
            answered => answered,
        };
        let answer = answered.map_err(|error| failure_of(&error))?;
        if answer.is_whole && answer.status != StatusCode::SWITCHING_PROTOCOLS {
            pool.put(&url, connection);
        }
        let retry_after = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Ok(Answer {
            status: answer.status.as_u16(),
            retry_after: retry_after.map(str::to_owned),
            beginning: answer.beginning,
        })
    }
}

impl Client {
    /// An idle connection, or a new one.
    async fn connection(&self, url: &WebhookUrl) -> Result<Connection, SendFailure> {
        while let Some(mut connection) = self.0.pool.take(url) {
            // The connection may not have finished its last exchange.
            if connection.http.is_ready().await {
                return Ok(connection);
            }
        }
        self.0.connector.connect(url).await
    }
}

fn request(outgoing: Outgoing) -> Result<Request<Full<Bytes>>, SendFailure> {
    let Outgoing { url, headers, body } = outgoing;
    // The HTTP library accepts every `WebhookUrl`.
    let mut request =
        Request::post(url.path_and_query()).body(Full::new(body)).map_err(|_| SendFailure::Address)?;
    let host = HeaderValue::from_str(&url.authority()).map_err(|_| SendFailure::Address)?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, host);
    Ok(request)
}

//! The one HTTP client of the service: a POST to a webhook, and as much of its answer as anybody needs.
//!
//! It does what it is told and nothing else: no redirect is followed, no proxy is taken from the environment, nothing is
//! sent twice. One attempt has 5 seconds for everything, from the look-up of the name to the end of the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::limits::WEBHOOK_EXCERPT_CHARS_MAX;
use domain::outbound::{Reach, SendFailure, WebhookUrl};
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use rustls::RootCertStore;
use service::Clock;
use tokio_rustls::TlsConnector;

use super::connect::{Connection, Connector, Lookups, Resolver, failure_of, system_resolver};
use super::kept::Kept;

/// How long one attempt may take: look-up, connection, TLS, request and the whole answer
/// (`docs/spec/drops.md#webhook`).
pub const ATTEMPT_MAX: Duration = Duration::from_secs(5);
/// Bytes of an answer's body that are read. What follows is not waited for.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an answer's body that are kept: the longest excerpt that is shown.
pub const BEGINNING_BYTES_MAX: usize = 4 * WEBHOOK_EXCERPT_CHARS_MAX;

/// What a client is made of.
pub struct Surroundings {
    /// Which addresses may be called besides public ones.
    pub reach: Reach,
    /// What deadlines run on.
    pub clock: Clock,
    /// How names become addresses.
    pub resolver: Resolver,
    /// Who may vouch for a receiver.
    pub roots: RootCertStore,
    /// Connections that are kept open between attempts.
    pub kept_max: usize,
}

impl Surroundings {
    /// The system's resolver and its certificates, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`. Reads files.
    pub fn system(reach: Reach, clock: Clock, kept_max: usize) -> Self {
        let roots = system_roots();
        if roots.is_empty() {
            tracing::warn!("no certificate authorities were found: webhooks to https addresses will fail");
        }
        Self { reach, clock, resolver: system_resolver(), roots, kept_max }
    }
}

/// The authorities that the system trusts, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`. Reads files.
pub fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// TLS for HTTP/1.1 with peers for whom one of these authorities vouches.
///
/// # Errors
/// When the TLS library refuses its own defaults.
pub fn tls(roots: RootCertStore) -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// One attempt, as it leaves.
#[derive(Clone)]
pub struct Outgoing {
    /// Where to.
    pub url: WebhookUrl,
    /// Every header but `Host` and `Content-Length`.
    pub headers: HeaderMap,
    /// The raw bytes that were signed.
    pub body: Bytes,
}

impl Outgoing {
    /// An attempt with these headers; `None` when one of them cannot be one.
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

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status, whatever it is: redirects too.
    pub status: u16,
    /// `Retry-After` as it was spelled.
    pub retry_after: Option<String>,
    /// The beginning of the body.
    pub beginning: Vec<u8>,
}

/// Sends webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    connector: Connector,
    kept: Kept,
}

impl Client {
    /// Puts a client together.
    ///
    /// # Errors
    /// When the TLS library refuses its own defaults.
    pub fn new(surroundings: Surroundings) -> Result<Self, rustls::Error> {
        let Surroundings { reach, clock, resolver, roots, kept_max } = surroundings;
        let tls = tls(roots)?;
        let kept = Kept::new(clock.clone(), kept_max);
        let connector = Connector { reach, clock, tls, lookups: Lookups::new(resolver) };
        Ok(Self(Arc::new(Inner { connector, kept })))
    }

    /// Makes one attempt.
    ///
    /// # Errors
    /// Why there is no answer. The receiver may have taken the message all the same.
    pub async fn send(&self, outgoing: Outgoing) -> Result<Answer, SendFailure> {
        let in_time = self.0.connector.clock.sleep(ATTEMPT_MAX);
        tokio::select! {
            outcome = self.attempt(outgoing) => outcome,
            () = in_time => Err(SendFailure::Timeout),
        }
    }

    /// Closes connections that nobody has used for a while. To be called again and again.
    pub fn tidy(&self) {
        self.0.kept.tidy();
    }

    async fn attempt(&self, outgoing: Outgoing) -> Result<Answer, SendFailure> {
        let Inner { connector, kept } = &*self.0;
        let url = outgoing.url.clone();
        let mut request = request(outgoing)?;
        let mut connection = self.connection(&url).await?;
        connection.begin();
        let answered = match connection.sender.try_send_request(request).await {
            Ok(answered) => Ok(answered),
            Err(mut failed) => match failed.take_message() {
                // A connection that was kept has ended before anything was written to it.
                Some(unsent) => {
                    request = unsent;
                    connection = connector.connect(&url).await?;
                    connection.begin();
                    connection.sender.send_request(request).await
                }
                None => Err(failed.into_error()),
            },
        };
        let (head, body) = answered.map_err(|error| failure_of(&error))?.into_parts();
        let (beginning, whole) = read(body).await?;
        if whole && head.status != StatusCode::SWITCHING_PROTOCOLS {
            kept.put(&url, connection);
        }
        let retry_after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Ok(Answer { status: head.status.as_u16(), retry_after: retry_after.map(str::to_owned), beginning })
    }
}

impl Client {
    /// One that was kept, or a new one.
    async fn connection(&self, url: &WebhookUrl) -> Result<Connection, SendFailure> {
        while let Some(mut connection) = self.0.kept.take(url) {
            // It may still be about to notice that its last exchange is over.
            if connection.sender.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        self.0.connector.connect(url).await
    }
}

fn request(outgoing: Outgoing) -> Result<Request<Full<Bytes>>, SendFailure> {
    let Outgoing { url, headers, body } = outgoing;
    // What `WebhookUrl` lets through, the HTTP library takes as well.
    let mut request =
        Request::post(url.path_and_query()).body(Full::new(body)).map_err(|_| SendFailure::Address)?;
    let host = HeaderValue::from_str(&url.authority()).map_err(|_| SendFailure::Address)?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, host);
    Ok(request)
}

/// The beginning of a body, and whether its end was seen.
async fn read(mut body: Incoming) -> Result<(Vec<u8>, bool), SendFailure> {
    let (mut beginning, mut taken) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| failure_of(&error))?;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        beginning.extend_from_slice(&data[..data.len().min(BEGINNING_BYTES_MAX - beginning.len())]);
        taken += data.len();
        if taken > ANSWER_BYTES_MAX {
            return Ok((beginning, false));
        }
    }
    Ok((beginning, true))
}

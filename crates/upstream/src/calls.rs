//! Requests to a provider: one connection for each, no redirects, with limits on every wait and answer.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use domain::outbound::{Host, Reach, WebhookUrl};
use http::header::{HOST, USER_AGENT};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use http_client::{Connection, Error, Limits, Tls};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::address;

/// Maximum length of the body of an answer, in bytes. Discovery documents have about 5 KiB.
pub(crate) const BODY_BYTES_MAX: usize = 128 * 1024;
/// The limits of one exchange.
const LIMITS: Limits =
    Limits { received_max: 2 * BODY_BYTES_MAX, body_max: BODY_BYTES_MAX, kept_max: BODY_BYTES_MAX };
/// Maximum number of addresses of one name that are tried.
const ADDRESSES_TRIED_MAX: usize = 4;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpFailure {
    #[error("{host}: {problem}")]
    Address { host: String, problem: &'static str },
    #[error("the name {0} was not found")]
    Name(String),
    #[error("no connection to {0}")]
    Connect(String),
    #[error("TLS failed with {0}: {1}")]
    Tls(String, String),
    #[error("no whole answer of {0} within {1} seconds")]
    Timeout(String, u64),
    #[error("the connection to {0} ended before the whole answer")]
    Closed(String),
    #[error("{0} answers {1}")]
    Status(String, u16),
    #[error("the answer of {0} is not HTTP, or too long")]
    Protocol(String),
}

/// The client of a provider.
#[derive(Clone)]
pub(crate) struct HttpClient {
    pub reach: Reach,
    pub timeout: Duration,
    pub tls: Tls,
}

impl HttpClient {
    /// Sends a request, and reads the whole answer.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, HttpFailure> {
        let text = request.uri().to_string();
        let host = || request.uri().host().unwrap_or_default().to_owned();
        let url = address::parse(&text, self.reach)
            .map_err(|problem| HttpFailure::Address { host: host(), problem })?;
        match timeout(self.timeout, self.exchange(&url, request)).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpFailure::Timeout(url.origin(), self.timeout.as_secs())),
        }
    }

    /// As [`send`](Self::send). The answer of a server that failed is no answer.
    pub async fn send_well(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, HttpFailure> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        let answer = self.send(request).await?;
        match answer.status().is_server_error() {
            true => Err(HttpFailure::Status(host, answer.status().as_u16())),
            false => Ok(answer),
        }
    }

    async fn exchange(
        &self,
        url: &WebhookUrl,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, HttpFailure> {
        let stream = self.connect(url).await?;
        let host = match url.host() {
            Host::Name(name) => name.clone(),
            Host::Address(address) => address.to_string(),
        };
        let failed = |error| failure(url, error);
        let tls = url.is_secure().then_some((&self.tls, host.as_str()));
        let mut connection = Connection::open(stream, tls, LIMITS).await.map_err(failed)?;
        let request = addressed(url, request).ok_or_else(|| HttpFailure::Protocol(url.origin()))?;
        let answer = connection.send(request).await.map_err(failed)?;
        if !answer.is_whole {
            return Err(HttpFailure::Protocol(url.origin()));
        }
        let mut response = Response::new(answer.beginning);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }

    /// Connects to one of the addresses that may be called.
    async fn connect(&self, url: &WebhookUrl) -> Result<TcpStream, HttpFailure> {
        let mut addresses: Vec<IpAddr> = match url.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), 0)).await;
                let found = found.map_err(|_| HttpFailure::Name(name.clone()))?;
                found.map(|address| address.ip()).collect()
            }
        };
        addresses.retain(|address| url.may_connect(*address, self.reach));
        if addresses.is_empty() {
            let problem = "its addresses are in a network that is not allowed for this provider";
            return Err(HttpFailure::Address { host: url.host().to_string(), problem });
        }
        addresses.truncate(ADDRESSES_TRIED_MAX);
        let patience = self.timeout / u32::try_from(addresses.len()).unwrap_or(1);
        for address in addresses {
            let connecting = TcpStream::connect(SocketAddr::new(address, url.port()));
            if let Ok(Ok(stream)) = timeout(patience, connecting).await {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
        }
        Err(HttpFailure::Connect(url.origin()))
    }
}

/// The request as it is sent over the connection of its host.
fn addressed(url: &WebhookUrl, request: Request<Vec<u8>>) -> Option<Request<Full<Bytes>>> {
    let (mut head, body) = request.into_parts();
    head.uri = url.path_and_query().parse::<Uri>().ok()?;
    head.headers.insert(HOST, HeaderValue::from_str(&url.authority()).ok()?);
    head.headers.insert(USER_AGENT, HeaderValue::from_static("stagedoor"));
    Some(Request::from_parts(head, Full::new(Bytes::from(body))))
}

fn failure(url: &WebhookUrl, error: Error) -> HttpFailure {
    match error {
        Error::Tls(error) => HttpFailure::Tls(url.origin(), error.to_string()),
        Error::Protocol => HttpFailure::Protocol(url.origin()),
        Error::Closed | Error::Unsent(_) => HttpFailure::Closed(url.origin()),
    }
}

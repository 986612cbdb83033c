//! Requests and answers on one connection.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::byte_limit::{BudgetExceeded, ByteBudget, LimitedStream};
use crate::tls::{Tls, TlsProblem};

/// Maximum length of the head of an answer, and of bytes that are read ahead.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of headers of an answer.
const HEADERS_MAX: usize = 100;
/// Deadline of the end of an exchange. Some servers answer before they have read the request.
const READY_TIMEOUT: Duration = Duration::from_millis(200);

/// The limits of one exchange, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// All received bytes: a TLS handshake, or an answer with interim answers and framing.
    pub received_max: usize,
    /// The part of an answer's body that is read. The client does not wait for the rest.
    pub body_max: usize,
    /// The part of an answer's body that is returned.
    pub kept_max: usize,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status, which may be a redirect.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The beginning of the body.
    pub beginning: Vec<u8>,
    /// Whether the whole body was read. Otherwise the connection cannot be used again.
    pub is_whole: bool,
}

/// Why there is no connection, or no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The TLS handshake failed.
    #[error("TLS failed: {0}")]
    Tls(io::Error),
    /// The answer is not HTTP, or it is too long.
    #[error("the answer is not HTTP, or too long")]
    Protocol,
    /// The connection ended before the whole answer had arrived.
    #[error("the connection ended before the whole answer had arrived")]
    Closed,
    /// The connection had ended before the request was sent. The request can be sent on another connection.
    #[error("the connection had ended before the request was sent")]
    Unsent(Box<Request<Full<Bytes>>>),
}

impl Error {
    /// What was wrong with the TLS handshake; `None` for another error.
    pub fn tls_problem(&self) -> Option<TlsProblem> {
        match self {
            Self::Tls(error) => Some(TlsProblem::of(error)),
            _ => None,
        }
    }
}

impl From<hyper::Error> for Error {
    fn from(error: hyper::Error) -> Self {
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<io::Error>());
        let is_wrong = cause.is_some_and(|cause| {
            // The HTTP library reports malformed chunks with the first two kinds.
            matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
                || cause.get_ref().is_some_and(|cause| cause.is::<BudgetExceeded>())
        });
        if error.is_parse() || is_wrong { Self::Protocol } else { Self::Closed }
    }
}

/// A connection to a server. Dropping it closes it at once.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    limits: Limits,
    budget: ByteBudget,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Speaks HTTP over a stream; with `tls`, over TLS to that host.
    ///
    /// # Errors
    /// When a handshake fails.
    pub async fn open(stream: TcpStream, tls: Option<(&Tls, &str)>, limits: Limits) -> Result<Self, Error> {
        let budget = ByteBudget::new(limits.received_max);
        let stream = LimitedStream::new(stream, budget.clone());
        match tls {
            Some((tls, host)) => {
                let stream = tls.handshake(host, stream).await.map_err(Error::Tls)?;
                Self::over(stream, limits, budget).await
            }
            None => Self::over(stream, limits, budget).await,
        }
    }

    async fn over<S>(stream: S, limits: Limits, budget: ByteBudget) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut http = http1::Builder::new();
        // Header names are capitalized as in the specification of webhooks.
        http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX).title_case_headers(true);
        let (sender, connection) = http.handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(async move {
            // The future of the answer reports the same error.
            let _ = connection.await;
        });
        Ok(Self { sender, limits, budget, driver })
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until the last exchange is finished, at most 200 ms. Returns whether the connection can be used
    /// again.
    pub async fn is_ready(&mut self) -> bool {
        matches!(tokio::time::timeout(READY_TIMEOUT, self.sender.ready()).await, Ok(Ok(())))
    }

    /// Sends a request, and reads its answer within the limits.
    ///
    /// # Errors
    /// Why there is no answer. The server may have processed the request anyway, unless the error is
    /// [`Error::Unsent`].
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
        self.budget.renew(self.limits.received_max);
        let answered = self.sender.try_send_request(request).await;
        let (head, body) = answered
            .map_err(|mut failed| match failed.take_message() {
                Some(unsent) => Error::Unsent(Box::new(unsent)),
                None => failed.into_error().into(),
            })?
            .into_parts();
        let (beginning, is_whole) = self.read(body).await?;
        Ok(Answer { status: head.status, headers: head.headers, beginning, is_whole })
    }

    /// The beginning of a body, and whether its end was reached.
    async fn read(&self, mut body: Incoming) -> Result<(Vec<u8>, bool), Error> {
        let Limits { body_max, kept_max, .. } = self.limits;
        let (mut beginning, mut taken) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            let frame = frame?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            beginning.extend_from_slice(&data[..data.len().min(kept_max - beginning.len())]);
            taken += data.len();
            if taken > body_max {
                return Ok((beginning, false));
            }
        }
        Ok((beginning, true))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// More than the buffers of two sockets hold.
    const BODY_BYTES: usize = 32 * 1024 * 1024;
    const LIMITS: Limits = Limits { received_max: 1_024, body_max: 1_024, kept_max: 0 };

    #[tokio::test]
    async fn a_connection_whose_server_does_not_read_the_request_is_not_used_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("the client");
            let _ = stream.read(&mut [0; 64]).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("an answer");
            stream
        });
        let stream = TcpStream::connect(address).await.expect("the server");
        let mut connection = Connection::open(stream, None, LIMITS).await.expect("a connection");
        let request = Request::post("/").header("content-length", BODY_BYTES).header("host", "a");
        let request = request.body(Full::new(Bytes::from(vec![0; BODY_BYTES]))).expect("a request");
        assert_eq!(connection.send(request).await.expect("an answer").status, StatusCode::OK);
        assert!(!connection.is_ready().await);
        drop(server.await.expect("the server's end"));
    }
}

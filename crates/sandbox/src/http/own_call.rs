//! A call of this node over HTTP, as a program makes it: it is recorded, charged and faulted like any other.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use http_client::{Answer, Connection, Limits};
use tokio::net::TcpStream;

use super::answer::Problem;
use crate::sandbox::Parts;

/// Deadline of a call. A listener of webhook messages may wait for longer than any other call.
const DEADLINE: Duration = Duration::from_secs(30);
/// Maximum length of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Sends a request on a connection of its own. Its header `Host` is that of the base URL.
///
/// # Errors
/// There is no answer.
pub(super) async fn call(parts: &Parts, request: Request<Full<Bytes>>) -> Result<Answer, Problem> {
    let failed = |why: &dyn std::fmt::Display| {
        Problem::new(StatusCode::BAD_GATEWAY, format!("the call got no answer: {why}"))
    };
    let answered = tokio::time::timeout(DEADLINE, exchange(parts, request)).await;
    answered.map_err(|_| failed(&"it took too long"))?.map_err(|why| failed(&why))
}

async fn exchange(parts: &Parts, mut request: Request<Full<Bytes>>) -> Result<Answer, String> {
    let limits =
        Limits { received_max: 2 * ANSWER_BYTES_MAX, body_max: ANSWER_BYTES_MAX, kept_max: ANSWER_BYTES_MAX };
    let authority = parts.base_url.split_once("://").map_or("localhost", |(_, authority)| authority);
    let host = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
    request.headers_mut().insert(header::HOST, host);
    let stream = TcpStream::connect(reached(parts.address)).await.map_err(|error| error.to_string())?;
    let connection = Connection::open(stream, None, limits).await;
    let mut connection = connection.map_err(|error| error.to_string())?;
    connection.send(request).await.map_err(|error| error.to_string())
}

/// The address by which a node reaches its own listener.
fn reached(listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        IpAddr::V4(any) if any.is_unspecified() => (Ipv4Addr::LOCALHOST, listen.port()).into(),
        _ => listen,
    }
}

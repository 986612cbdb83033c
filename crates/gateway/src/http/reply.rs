//! Answers of the gateway.

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use socketio::Framing;

/// Every answer of the gateway.
pub(crate) type Reply = Response<Full<Bytes>>;

/// Marks the answer to a poll whose session has lost its connection by a fault: the connection has to end
/// without the answer.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLost;

/// The response headers that pages of other origins may read, besides those that are always readable.
const EXPOSED: HeaderValue = HeaderValue::from_static("Stagedoor-Reason, Retry-After, X-Request-Id");

/// The answer to a poll.
pub(crate) fn poll_answer(framing: Framing, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    let content_type = HeaderValue::from_static(framing.content_type());
    reply.headers_mut().insert(header::CONTENT_TYPE, content_type);
    no_store(&mut reply);
    reply
}

/// The answer to a post. The reference server sends `text/html`, and old clients were tested with that type.
pub(super) fn post_answer() -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(b"ok")));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
    no_store(&mut reply);
    reply
}

/// Keeps an answer out of every cache, because it may contain a key or chat messages.
pub(super) fn no_store(reply: &mut Reply) {
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// The answer `101 Switching Protocols`.
pub(crate) fn switching_protocols(accept: HeaderValue) -> Reply {
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = reply.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    reply
}

/// The answer to a CORS preflight request.
pub(crate) fn preflight() -> Reply {
    let mut reply = Response::new(Full::default());
    let headers = reply.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Content-Type"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    reply
}

/// Allows pages of every origin to read the answer: overlays run anywhere, and the token in the URL is the
/// only authority. No cookie is read or set, but clients send requests with credentials, so the answer has to
/// allow them.
pub(crate) fn allow_origin(origin: Option<HeaderValue>, reply: &mut Reply) {
    let headers = reply.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    match origin {
        Some(origin) => {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        None => {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
    }
}

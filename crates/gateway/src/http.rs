//! The HTTP side of the socket's path: its query, its websocket handshake, its refusals.

use std::borrow::Cow;

use bytes::Bytes;
use domain::reason::REASON_HEADER;
use domain::{Invalid, Language, Reason, Refusal, Rule, Word};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode, Version};
use http_body_util::Full;
use socketio::{Revision, websocket};

use crate::config::QUERY_BYTES_MAX;
use crate::sid::Sid;

/// Every answer of the gateway.
pub(crate) type Reply = Response<Full<Bytes>>;

/// What a draining node asks its clients to wait, in seconds.
const DRAINING_RETRY_AFTER_S: u32 = 1;
/// What a full node asks its clients to wait, in seconds.
const FULL_RETRY_AFTER_S: u32 = 5;

/// The transports, with their names in the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Long polling.
    Polling,
    /// A websocket, from the beginning or since its upgrade.
    Websocket,
}

impl Transport {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Polling => "polling",
            Self::Websocket => "websocket",
        }
    }
}

/// The query of a request.
#[derive(Debug)]
pub(crate) struct Params {
    pub(crate) revision: Revision,
    pub(crate) transport: Transport,
    /// The session URL's token. It must not be logged.
    pub(crate) auth: Auth,
    /// `None` at a handshake.
    pub(crate) sid: Option<Option<Sid>>,
    /// The client cannot read binary bodies.
    pub(crate) base64: bool,
}

/// A presented URL token. It is not printed.
pub(crate) struct Auth(pub(crate) String);

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auth")
    }
}

impl std::fmt::Debug for Sid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sid")
    }
}

impl Params {
    /// Parses a query. The first value of a repeated key counts. Unknown keys, such as `t`, are ignored.
    pub(crate) fn parse(query: &str) -> Result<Self, Denied> {
        if query.len() > QUERY_BYTES_MAX {
            return Err(invalid("query", Rule::Bytes { max: QUERY_BYTES_MAX }));
        }
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let first = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| &**value);
        if first("j").is_some() {
            return Err(Denied::Jsonp);
        }
        let revision = first("EIO").and_then(Revision::from_query);
        let transport = match first("transport") {
            Some("polling") => Ok(Transport::Polling),
            Some("websocket") => Ok(Transport::Websocket),
            _ => Err(invalid("transport", Rule::OneOf(&["polling", "websocket"]))),
        };
        Ok(Self {
            revision: revision.ok_or(invalid("EIO", Rule::OneOf(&["2", "3", "4"])))?,
            transport: transport?,
            auth: Auth(first("auth").unwrap_or_default().to_owned()),
            sid: first("sid").map(Sid::presented),
            base64: matches!(first("b64"), Some("1" | "true")),
        })
    }
}

/// Why a request was refused.
#[derive(Clone, Debug)]
pub(crate) enum Denied {
    Refused(Refusal),
    /// The service failed.
    Failed(service::Error),
    /// No polling session has this sid, or the session has another token.
    UnknownSid,
    /// A second poll or post while one was in flight, which ended the session.
    Overlap,
    /// The websocket handshake is incomplete.
    NotWebsocket,
    /// Another websocket is already taking the session over.
    UpgradeUnderWay,
    /// JSONP is not supported.
    Jsonp,
    /// A post was too big, which ended the session.
    TooBig,
    /// A post was malformed, which ended the session.
    BadBody,
    /// This node is draining.
    Draining,
    /// This node has its maximum number of sessions.
    Full,
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn invalid(field: &'static str, rule: Rule) -> Denied {
    Denied::Refused(Invalid::new(field, rule).into())
}

impl Denied {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Refused(refusal) => refusal.status(),
            Self::Failed(error) => error.refusal().status(),
            Self::TooBig => 413,
            Self::Draining | Self::Full => 503,
            Self::UnknownSid
            | Self::Overlap
            | Self::NotWebsocket
            | Self::UpgradeUnderWay
            | Self::Jsonp
            | Self::BadBody => 400,
        }
    }

    fn message(&self, language: Language) -> Cow<'static, str> {
        let (korean, english) = match self {
            Self::Refused(refusal) => return refusal.message(language),
            Self::Failed(error) => return error.refusal().message(language),
            Self::Draining | Self::Full => return "SERVICE_UNAVAILABLE".into(),
            Self::UnknownSid => ("sid: 알 수 없는 세션입니다.", "sid: there is no such session."),
            Self::Overlap => (
                "sid: 이미 처리 중인 요청이 있습니다.",
                "sid: a request of this session is under way already.",
            ),
            Self::NotWebsocket => {
                ("transport: 웹소켓 핸드셰이크가 아닙니다.", "transport: this is no websocket handshake.")
            }
            Self::UpgradeUnderWay => {
                ("sid: 이미 업그레이드 중입니다.", "sid: an upgrade of this session is under way already.")
            }
            Self::Jsonp => ("j: JSONP는 지원하지 않습니다.", "j: JSONP is not supported."),
            Self::TooBig => ("본문이 너무 큽니다.", "The body is too big."),
            Self::BadBody => ("본문을 읽을 수 없습니다.", "The body cannot be read."),
        };
        match language {
            Language::Korean => format!("잘못된 값을 입력했습니다. {korean}"),
            Language::English => format!("A wrong value was entered. {english}"),
        }
        .into()
    }

    /// The reason for the header `Stagedoor-Reason`.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Refused(refusal) => return refusal.reason(),
            Self::Failed(error) => return error.refusal().reason(),
            Self::UnknownSid => Word::SidUnknown,
            Self::Overlap | Self::UpgradeUnderWay => Word::SidBusy,
            Self::NotWebsocket => Word::NotWebsocket,
            Self::Jsonp => Word::Jsonp,
            Self::TooBig => Word::BodyTooLarge,
            Self::BadBody => Word::BodyMalformed,
            Self::Draining => Word::Draining,
            Self::Full => Word::NodeFull,
        }
        .into()
    }

    fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::Refused(refusal) => refusal.retry_after_s(),
            Self::Failed(error) => error.refusal().retry_after_s(),
            Self::Draining => Some(DRAINING_RETRY_AFTER_S),
            Self::Full => Some(FULL_RETRY_AFTER_S),
            _ => None,
        }
    }

    /// The answer in the envelope.
    pub(crate) fn reply(&self, language: Language) -> Reply {
        let status = self.status();
        let envelope = serde_json::json!({ "code": status, "message": self.message(language) });
        let mut reply = Response::new(Full::new(Bytes::from(envelope.to_string())));
        *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = reply.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Language"));
        // Reasons are ASCII.
        if let Ok(reason) = HeaderValue::try_from(self.reason().to_string()) {
            headers.insert(REASON, reason);
        }
        if let Some(seconds) = self.retry_after_s() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Self::NotWebsocket = self {
            headers.insert(header::SEC_WEBSOCKET_VERSION, WEBSOCKET_VERSION);
        }
        no_store(&mut reply);
        reply
    }
}

const REASON: HeaderName = HeaderName::from_static(REASON_HEADER);
/// The headers that a page of another origin may read, besides those that it always may.
const EXPOSED: HeaderValue = HeaderValue::from_static("Stagedoor-Reason, Retry-After, X-Request-Id");
const WEBSOCKET_VERSION: HeaderValue = HeaderValue::from_static("13");

/// Keeps an answer out of every cache, because it may hold a key or chat messages.
pub(crate) fn no_store(reply: &mut Reply) {
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Checks a websocket handshake (RFC 6455 section 4.2.1) and returns the answer to its key. HTTP/1.0 cannot
/// upgrade. Offered extensions and subprotocols are not accepted.
pub(crate) fn websocket_accept(
    method: &Method,
    version: Version,
    headers: &HeaderMap,
) -> Result<HeaderValue, Denied> {
    let has = |name: HeaderName, token: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
    };
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_handshake = *method == Method::GET
        && version == Version::HTTP_11
        && has(header::UPGRADE, "websocket")
        && has(header::CONNECTION, "upgrade")
        && headers.get(header::SEC_WEBSOCKET_VERSION) == Some(&WEBSOCKET_VERSION)
        && websocket::is_valid_key(key);
    if !is_handshake {
        return Err(Denied::NotWebsocket);
    }
    HeaderValue::try_from(websocket::accept_key(key)).map_err(|_| Denied::NotWebsocket)
}

/// The `101`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn status(query: &str) -> u16 {
        Params::parse(query).map_or_else(|denied| denied.status(), |_| 200)
    }

    #[test]
    fn the_query_is_read_as_clients_write_it() {
        let params = Params::parse("auth=a%2Bb&EIO=3&transport=polling&t=NxYz&b64=1").expect("it is good");
        assert_eq!((params.revision, params.transport), (Revision::V3, Transport::Polling));
        assert!(params.auth.0 == "a+b" && params.base64 && params.sid.is_none());
        assert!(!format!("{params:?}").contains("a+b"));
        let sid = "abcdefghijklmnopqr_-";
        let params = Params::parse(&format!("EIO=4&transport=websocket&sid={sid}")).expect("it is good");
        assert!(params.sid == Some(Sid::presented(sid)) && !params.base64);
    }

    #[test]
    fn wrong_queries_are_refused() {
        for query in [
            "",
            "EIO=3",
            "transport=polling",
            "EIO=5&transport=polling",
            "EIO=3&transport=flashsocket",
            "EIO=3&transport=polling&j=0",
            &format!("EIO=3&transport=polling&auth={}", "x".repeat(5_000)),
        ] {
            assert_eq!(status(query), 400, "{query}");
        }
        assert_eq!(status("EIO=3&transport=polling"), 200);
    }

    #[test]
    fn a_websocket_handshake_is_checked_header_by_header() {
        let good = [
            ("upgrade", "WebSocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let check = |method: Method, version: Version, pairs: &[(&'static str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header"))
            });
            websocket_accept(&method, version, &HeaderMap::from_iter(pairs)).ok()
        };
        let accept = HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(check(Method::GET, Version::HTTP_11, &good), Some(accept));
        assert_eq!(check(Method::POST, Version::HTTP_11, &good), None);
        assert_eq!(check(Method::GET, Version::HTTP_10, &good), None);
        for left_out in 0..good.len() {
            let mut pairs = good.to_vec();
            pairs.remove(left_out);
            assert_eq!(check(Method::GET, Version::HTTP_11, &pairs), None, "without {:?}", good[left_out]);
            let mut pairs = good.to_vec();
            pairs[left_out].1 = "x";
            assert_eq!(
                check(Method::GET, Version::HTTP_11, &pairs),
                None,
                "with a wrong {:?}",
                good[left_out]
            );
        }
    }
}

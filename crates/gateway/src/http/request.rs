//! The parts of a request: its query, its body, its websocket handshake.

use bytes::Bytes;
use domain::{Invalid, Rule};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Version};
use hyper::body::Body;
use socketio::{Revision, websocket};

use super::refusal::{Denied, WEBSOCKET_VERSION};
use crate::config::QUERY_BYTES_MAX;
use crate::session::{Sid, Transport};

/// The body of a request from a listener.
pub trait RequestBody: Body<Data = Bytes, Error: Into<BodyError>> + Send + 'static {}

impl<B: Body<Data = Bytes, Error: Into<BodyError>> + Send + 'static> RequestBody for B {}

type BodyError = Box<dyn std::error::Error + Send + Sync>;

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

fn invalid(field: &'static str, rule: Rule) -> Denied {
    Denied::Refused(Invalid::new(field, rule).into())
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

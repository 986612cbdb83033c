//! Refused requests, and their answers in the envelope.

use std::borrow::Cow;

use bytes::Bytes;
use domain::reason::REASON_HEADER;
use domain::{Language, Reason, Refusal, Word};
use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;

use super::reply::{Reply, no_store};
use crate::session::Rejected;

/// `Retry-After` of a draining node, in seconds.
const DRAINING_RETRY_AFTER_S: u32 = 1;
/// `Retry-After` of a full node, in seconds.
const FULL_RETRY_AFTER_S: u32 = 5;

const REASON: HeaderName = HeaderName::from_static(REASON_HEADER);
/// The version of the websocket protocol that the gateway supports.
pub(super) const WEBSOCKET_VERSION: HeaderValue = HeaderValue::from_static("13");

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
    /// The body of a post was malformed, which ended the session.
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

impl From<Rejected> for Denied {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::NotPolling => Self::UnknownSid,
            Rejected::Overlap => Self::Overlap,
            Rejected::UpgradeUnderWay => Self::UpgradeUnderWay,
        }
    }
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

//! Every "no" of the service, and the status and message that each one becomes (spec section 7).
//!
//! The two `match`es are exhaustive on purpose: a new refusal does not compile until someone has chosen its status and
//! its message. Both edges, REST and the socket handshake, answer from here.

use std::borrow::Cow;

use crate::chat_settings::ChatRefusal;
use crate::drops::ClaimRefusal;
use crate::restriction::RestrictionRefusal;
use crate::{Invalid, Language};

/// Why a request was refused. A refused request changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A wrong value in the request.
    Invalid(Invalid),
    /// The code is unknown, used, expired, another application's, or the `state` is not the one of its sign-in. One
    /// refusal for all of them, so that an answer tells nothing about a code.
    BadCode,
    /// A restriction or a release that cannot be.
    Restriction(RestrictionRefusal),
    /// A viewer's message that the chat's settings or a restriction keep out.
    Chat(ChatRefusal),
    /// A claim that the campaign's terms do not allow now.
    Claim(ClaimRefusal),
    /// The drops scope is missing.
    DropsScope,
    /// Only the streamer may do this, and the caller is not (spec 4.4, blind-message).
    NotTheStreamer,
    /// Authentication is missing.
    Unauthorized,
    /// The application is unknown or its secret is wrong: one refusal for both.
    InvalidClient,
    /// The token is unknown, expired or deleted.
    InvalidToken,
    /// Not allowed, for want of a scope or a relation.
    Forbidden,
    /// There is no such thing, or it is not the caller's: one refusal for both.
    NotFound,
    /// The path exists with other methods.
    MethodNotAllowed,
    /// A quota is used up.
    TooManyRequests {
        /// Seconds until a request may be let through.
        retry_after_s: u32,
    },
    /// As many sessions are connected as the caller may have (10 per client, 3 per user).
    TooManySessions,
    /// The session holds 30 subscriptions.
    TooManySubscriptions,
    /// The service itself failed; the log has the reason under the request's id.
    Internal,
}

/// `Retry-After` of a refusal that ends when the caller lets something go, in seconds.
const RETRY_LIMIT_AFTER_S: u32 = 30;

impl Refusal {
    /// Every [`kind`](Self::kind).
    pub const KINDS: [&'static str; 17] = [
        "invalid",
        "bad_code",
        "restriction",
        "chat",
        "claim",
        "drops_scope",
        "not_the_streamer",
        "unauthorized",
        "invalid_client",
        "invalid_token",
        "forbidden",
        "not_found",
        "method_not_allowed",
        "too_many_requests",
        "too_many_sessions",
        "too_many_subscriptions",
        "internal",
    ];

    /// A stable name for the metrics.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::BadCode => "bad_code",
            Self::Restriction(_) => "restriction",
            Self::Chat(_) => "chat",
            Self::Claim(_) => "claim",
            Self::DropsScope => "drops_scope",
            Self::NotTheStreamer => "not_the_streamer",
            Self::Unauthorized => "unauthorized",
            Self::InvalidClient => "invalid_client",
            Self::InvalidToken => "invalid_token",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::TooManyRequests { .. } => "too_many_requests",
            Self::TooManySessions => "too_many_sessions",
            Self::TooManySubscriptions => "too_many_subscriptions",
            Self::Internal => "internal",
        }
    }

    /// The HTTP status, which is also `code` in the envelope.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Invalid(_) | Self::BadCode | Self::Restriction(_) | Self::NotTheStreamer => 400,
            Self::Unauthorized | Self::InvalidClient | Self::InvalidToken => 401,
            Self::Forbidden | Self::Chat(_) | Self::Claim(_) | Self::DropsScope => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::TooManyRequests { .. } | Self::TooManySessions | Self::TooManySubscriptions => 429,
            Self::Internal => 500,
        }
    }

    /// `message` in the envelope.
    pub fn message(&self, language: Language) -> Cow<'static, str> {
        match self {
            Self::Invalid(invalid) => invalid.message(language).into(),
            Self::BadCode => language
                .pick(
                    "잘못된 값을 입력했습니다. code: 사용할 수 없는 인증 코드이거나 state가 다릅니다. 다시 로그인해 주세요.",
                    "A wrong value was entered. code: it cannot be used, or the state differs. Sign in again.",
                )
                .into(),
            Self::Restriction(refusal) => {
                let (korean, english) = refusal.texts();
                language
                    .pick(format!("잘못된 값을 입력했습니다. {korean}"), format!("A wrong value was entered. {english}"))
                    .into()
            }
            Self::Chat(refusal) => {
                let (korean, english) = refusal.texts();
                language.pick(korean, english).into()
            }
            Self::Claim(refusal) => {
                let (korean, english) = refusal.texts();
                language.pick(korean, english).into()
            }
            Self::DropsScope => {
                language.pick("드롭스 scope가 필요합니다.", "The drops scope (드롭스) is required.").into()
            }
            Self::NotTheStreamer => language
                .pick(
                    "잘못된 값을 입력했습니다. chatChannelId: 스트리머 본인의 채팅이어야 합니다.",
                    "A wrong value was entered. chatChannelId: it must be the streamer's own chat.",
                )
                .into(),
            Self::Unauthorized => "UNAUTHORIZED".into(),
            Self::InvalidClient => "INVALID_CLIENT".into(),
            Self::InvalidToken => "INVALID_TOKEN".into(),
            Self::Forbidden => "FORBIDDEN".into(),
            Self::NotFound => "NOT_FOUND".into(),
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED".into(),
            Self::TooManyRequests { .. } | Self::TooManySessions | Self::TooManySubscriptions => {
                "TOO_MANY_REQUESTS".into()
            }
            Self::Internal => "INTERNAL_SERVER_ERROR".into(),
        }
    }

    /// `Retry-After` in seconds; every 429 has one.
    pub const fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::TooManyRequests { retry_after_s } => Some(*retry_after_s),
            Self::TooManySessions | Self::TooManySubscriptions => Some(RETRY_LIMIT_AFTER_S),
            _ => None,
        }
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<ChatRefusal> for Refusal {
    fn from(refusal: ChatRefusal) -> Self {
        Self::Chat(refusal)
    }
}

impl From<ClaimRefusal> for Refusal {
    fn from(refusal: ClaimRefusal) -> Self {
        Self::Claim(refusal)
    }
}

impl From<RestrictionRefusal> for Refusal {
    fn from(refusal: RestrictionRefusal) -> Self {
        Self::Restriction(refusal)
    }
}

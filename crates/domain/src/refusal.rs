//! Every refusal of the service, with its status and message (`docs/spec/errors.md#messages`).
//!
//! The two `match`es are exhaustive on purpose: a new refusal does not compile until it has a status and a
//! message. REST and the socket handshake both answer from here. [`Refusal::reason`] has more detail than the
//! status and the message may have.

use std::borrow::Cow;

use crate::chat_settings::ChatRefusal;
use crate::drops::ClaimRefusal;
use crate::limits::{CLIENT_SESSIONS_MAX, SUBSCRIPTIONS_PER_SESSION_MAX, USER_SESSIONS_MAX};
use crate::operator_key::OperatorRole;
use crate::quota::QuotaName;
use crate::reason::{Reason, Word};
use crate::restriction::RestrictionRefusal;
use crate::{Invalid, Language, Scope};

/// Seconds after which a write may be repeated that found the disk full.
pub const DISK_FULL_RETRY_S: u32 = 10;

/// Why a request was refused. A refused request changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A wrong value in the request.
    Invalid(Invalid),
    /// The code cannot be used, or the `state` is not that of its sign-in. All these faults share one
    /// message.
    BadCode(CodeFault),
    /// A restriction or a release that is not possible.
    Restriction(RestrictionRefusal),
    /// A viewer's message that the chat's settings or a restriction forbid.
    Chat(ChatRefusal),
    /// A claim that the campaign's terms do not allow now.
    Claim(ClaimRefusal),
    /// The drops scope is missing.
    DropsScope,
    /// The application has the drops scope, but its organization is not verified.
    OrganizationNotVerified,
    /// Only the streamer may do this, and the caller is not the streamer (`docs/spec/chat.md#hiding`).
    NotTheStreamer,
    /// Authentication is missing, or is not of the kind that the endpoint needs.
    Unauthorized(CredentialFault),
    /// The application is unknown or its secret is wrong: one refusal for both.
    InvalidClient,
    /// The token cannot be used.
    InvalidToken(TokenFault),
    /// The token lacks the scope of the endpoint.
    ScopeMissing(Scope),
    /// The operator key lacks the role of the call.
    RoleMissing(OperatorRole),
    /// The chat belongs to another channel.
    NotYourChat,
    /// The resource does not exist, or is not the caller's: one refusal for both.
    NotFound(Resource),
    /// The path exists with other methods.
    MethodNotAllowed,
    /// A quota is used up.
    TooManyRequests {
        /// The quota.
        quota: QuotaName,
        /// Seconds until a request is allowed.
        retry_after_s: u32,
    },
    /// The service cannot accept more of these requests now, from any caller.
    Busy {
        /// Seconds until the next try.
        retry_after_s: u32,
    },
    /// The maximum number is reached. Only the end of a session or subscription helps.
    Cap(Cap),
    /// The disk of the database is full. Reads are answered.
    DiskFull,
    /// The service itself failed; the log has the cause under the request's id.
    Internal,
}

/// Why a code cannot be used. An application sees more than [`CodeFault::Unknown`] only for its own codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeFault {
    /// The code is unknown, or another application's.
    Unknown,
    /// The code is too old.
    Expired,
    /// The code was used, so recently that this may be a retry.
    Used,
    /// The code was used, and its tokens are revoked now.
    Reused,
    /// The `state` is not that of the code's sign-in.
    StateDiffers,
}

/// The credential with which a caller authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// `Authorization: Bearer` with an access token.
    AccessToken,
    /// `Client-Id` and `Client-Secret`.
    Client,
    /// `Authorization: Bearer` with the operator's key.
    OperatorKey,
    /// `auth` in the address of a session.
    SessionUrl,
    /// A refresh token in the body.
    RefreshToken,
}

impl Credential {
    /// The value of `want` in a reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessToken => "access-token",
            Self::Client => "client-id-and-secret",
            Self::OperatorKey => "operator-key",
            Self::SessionUrl => "session-url",
            Self::RefreshToken => "refresh-token",
        }
    }
}

/// A fault of a request's credentials that has nothing to do with their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialFault {
    /// The credentials are missing.
    Missing(Credential),
    /// The credentials are malformed.
    Malformed(Credential),
    /// The credentials are of another kind.
    WrongKind(Credential),
    /// The session URL is unknown.
    SessionUrlUnknown,
    /// The session URL was used.
    SessionUrlUsed,
    /// The session URL is too old.
    SessionUrlExpired,
}

/// Why a token cannot be used. At the token endpoint an application sees more than [`TokenFault::Unknown`]
/// only for its own tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// The token is unknown, or another application's.
    Unknown,
    /// The token is too old.
    Expired,
    /// The token was revoked.
    Revoked,
    /// The refresh token was used, so recently that this may be a retry.
    Used,
    /// The refresh token was used, and every token of its application and user is revoked now.
    Reused,
    /// The text does not have the form of a token.
    Malformed(Credential),
    /// The token is for another purpose.
    WrongKind(Credential),
    /// The token is not the operator's key.
    OperatorKey,
}

/// The resource of a 404.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The path itself.
    Path,
    /// A session.
    Session,
    /// A channel.
    Channel,
    /// A chat message.
    Message,
    /// An application.
    Application,
    /// A client secret of an application.
    Secret,
    /// An operator key.
    OperatorKey,
    /// An organization.
    Organization,
    /// A request that the operator decides.
    ReviewRequest,
    /// A drops campaign.
    Campaign,
    /// A category.
    Category,
    /// An application's webhook.
    Webhook,
    /// A secret of a webhook.
    WebhookSecret,
    /// A message to a webhook.
    Delivery,
}

impl Resource {
    /// Every resource.
    pub const ALL: [Self; 14] = [
        Self::Path,
        Self::Session,
        Self::Channel,
        Self::Message,
        Self::Application,
        Self::Secret,
        Self::OperatorKey,
        Self::Organization,
        Self::ReviewRequest,
        Self::Campaign,
        Self::Category,
        Self::Webhook,
        Self::WebhookSecret,
        Self::Delivery,
    ];

    /// The value of `what` in a reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Session => "session",
            Self::Channel => "channel",
            Self::Message => "message",
            Self::Application => "application",
            Self::Secret => "secret",
            Self::OperatorKey => "operator-key",
            Self::Organization => "organization",
            Self::ReviewRequest => "review-request",
            Self::Campaign => "campaign",
            Self::Category => "category",
            Self::Webhook => "webhook",
            Self::WebhookSecret => "webhook-secret",
            Self::Delivery => "delivery",
        }
    }
}

/// A maximum number at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// Connected sessions of a user, in all applications together.
    UserSessions,
    /// Connected sessions of an application, opened with client authentication.
    ApplicationSessions,
    /// Subscriptions of a session.
    Subscriptions,
}

impl Cap {
    /// Every cap.
    pub const ALL: [Self; 3] = [Self::UserSessions, Self::ApplicationSessions, Self::Subscriptions];

    /// The value of `name` in a reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserSessions => "user-sessions",
            Self::ApplicationSessions => "application-sessions",
            Self::Subscriptions => "subscriptions",
        }
    }

    /// The maximum number.
    pub const fn limit(self) -> i64 {
        match self {
            Self::UserSessions => USER_SESSIONS_MAX,
            Self::ApplicationSessions => CLIENT_SESSIONS_MAX,
            Self::Subscriptions => SUBSCRIPTIONS_PER_SESSION_MAX,
        }
    }
}

impl Refusal {
    /// Every [`kind`](Self::kind).
    pub const KINDS: [&'static str; 18] = [
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
        "disk_full",
        "internal",
    ];

    /// A stable name for the metrics.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::BadCode(_) => "bad_code",
            Self::Restriction(_) => "restriction",
            Self::Chat(_) => "chat",
            Self::Claim(_) => "claim",
            Self::DropsScope | Self::OrganizationNotVerified => "drops_scope",
            Self::NotTheStreamer => "not_the_streamer",
            Self::Unauthorized(_) => "unauthorized",
            Self::InvalidClient => "invalid_client",
            Self::InvalidToken(_) => "invalid_token",
            Self::ScopeMissing(_) | Self::RoleMissing(_) | Self::NotYourChat => "forbidden",
            Self::NotFound(_) => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::TooManyRequests { .. } | Self::Busy { .. } => "too_many_requests",
            Self::Cap(Cap::UserSessions | Cap::ApplicationSessions) => "too_many_sessions",
            Self::Cap(Cap::Subscriptions) => "too_many_subscriptions",
            Self::DiskFull => "disk_full",
            Self::Internal => "internal",
        }
    }

    /// The HTTP status, which is also `code` in the envelope.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Invalid(_) | Self::BadCode(_) | Self::Restriction(_) | Self::NotTheStreamer => 400,
            Self::Unauthorized(_) | Self::InvalidClient | Self::InvalidToken(_) => 401,
            Self::ScopeMissing(_) | Self::RoleMissing(_) | Self::NotYourChat => 403,
            Self::Chat(_) | Self::Claim(_) | Self::DropsScope | Self::OrganizationNotVerified => 403,
            Self::NotFound(_) => 404,
            Self::MethodNotAllowed => 405,
            Self::TooManyRequests { .. } | Self::Busy { .. } | Self::Cap(_) => 429,
            Self::Internal => 500,
            Self::DiskFull => 503,
        }
    }

    /// `message` in the envelope.
    pub fn message(&self, language: Language) -> Cow<'static, str> {
        match self {
            Self::Invalid(invalid) => invalid.message(language).into(),
            Self::BadCode(_) => language
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
            Self::DropsScope | Self::OrganizationNotVerified => {
                language.pick("드롭스 scope가 필요합니다.", "The drops scope (드롭스) is required.").into()
            }
            Self::NotTheStreamer => language
                .pick(
                    "잘못된 값을 입력했습니다. chatChannelId: 스트리머 본인의 채팅이어야 합니다.",
                    "A wrong value was entered. chatChannelId: it must be the streamer's own chat.",
                )
                .into(),
            Self::Unauthorized(_) => "UNAUTHORIZED".into(),
            Self::InvalidClient => "INVALID_CLIENT".into(),
            Self::InvalidToken(_) => "INVALID_TOKEN".into(),
            Self::ScopeMissing(_) | Self::RoleMissing(_) | Self::NotYourChat => "FORBIDDEN".into(),
            Self::NotFound(_) => "NOT_FOUND".into(),
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED".into(),
            Self::TooManyRequests { .. } | Self::Busy { .. } | Self::Cap(_) => "TOO_MANY_REQUESTS".into(),
            Self::Internal => "INTERNAL_SERVER_ERROR".into(),
            Self::DiskFull => "SERVICE_UNAVAILABLE".into(),
        }
    }

    /// `Retry-After` in seconds: for every 503, and for every 429 except a [`Cap`], where waiting does not
    /// help.
    pub const fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::TooManyRequests { retry_after_s, .. } | Self::Busy { retry_after_s } => {
                Some(*retry_after_s)
            }
            Self::DiskFull => Some(DISK_FULL_RETRY_S),
            _ => None,
        }
    }

    /// The reason, for the header `Stagedoor-Reason`.
    pub fn reason(&self) -> Reason {
        let word = Reason::new;
        match self {
            Self::Invalid(Invalid { field, rule }) => {
                word(Word::Invalid).with("field", *field).with("rule", rule.name())
            }
            Self::BadCode(fault) => word(fault.word()),
            Self::Restriction(refusal) => word(Word::RestrictionRule).with("rule", refusal.name()),
            Self::Chat(refusal) => {
                let reason = word(Word::ChatRule).with("rule", refusal.name());
                match refusal.left_s() {
                    Some(left_s) => reason.with("left", left_s.to_string()),
                    None => reason,
                }
            }
            Self::Claim(refusal) => word(Word::ClaimRule).with("rule", refusal.name()),
            Self::DropsScope => word(Word::ScopeMissing).with("scope", Scope::Drops.key()),
            Self::OrganizationNotVerified => word(Word::OrganizationNotVerified),
            Self::NotTheStreamer => word(Word::NotTheStreamer),
            Self::Unauthorized(fault) => fault.reason(),
            Self::InvalidClient => word(Word::SecretWrong),
            Self::InvalidToken(fault) => fault.reason(),
            Self::ScopeMissing(scope) => word(Word::ScopeMissing).with("scope", scope.key()),
            Self::RoleMissing(role) => word(Word::RoleMissing).with("role", role.name()),
            Self::NotYourChat => word(Word::NotYourChat),
            Self::NotFound(resource) => word(Word::NotFound).with("what", resource.name()),
            Self::MethodNotAllowed => word(Word::MethodNotAllowed),
            Self::TooManyRequests { quota, .. } => word(Word::Quota).with("name", quota.name()),
            Self::Busy { .. } => word(Word::Busy),
            Self::Cap(cap) => word(Word::Cap).with("name", cap.name()).with("limit", cap.limit().to_string()),
            Self::DiskFull => word(Word::DiskFull),
            Self::Internal => word(Word::Internal),
        }
    }
}

impl CodeFault {
    const fn word(self) -> Word {
        match self {
            Self::Unknown => Word::CodeUnknown,
            Self::Expired => Word::CodeExpired,
            Self::Used => Word::CodeUsed,
            Self::Reused => Word::CodeReused,
            Self::StateDiffers => Word::StateDiffers,
        }
    }
}

impl CredentialFault {
    fn reason(self) -> Reason {
        let about = |word, want: Credential| Reason::new(word).with("want", want.name());
        match self {
            Self::Missing(want) => about(Word::CredentialMissing, want),
            Self::Malformed(want) => about(Word::CredentialMalformed, want),
            Self::WrongKind(want) => about(Word::CredentialWrongKind, want),
            Self::SessionUrlUnknown => Word::SessionUrlUnknown.into(),
            Self::SessionUrlUsed => Word::SessionUrlUsed.into(),
            Self::SessionUrlExpired => Word::SessionUrlExpired.into(),
        }
    }
}

impl TokenFault {
    fn reason(self) -> Reason {
        match self {
            Self::Unknown => Word::TokenUnknown.into(),
            Self::Expired => Word::TokenExpired.into(),
            Self::Revoked => Word::TokenRevoked.into(),
            Self::Used => Word::TokenUsed.into(),
            Self::Reused => Word::TokenReused.into(),
            Self::Malformed(want) => CredentialFault::Malformed(want).reason(),
            Self::WrongKind(want) => CredentialFault::WrongKind(want).reason(),
            Self::OperatorKey => Word::OperatorKeyWrong.into(),
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

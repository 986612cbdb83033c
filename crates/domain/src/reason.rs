//! The reason of a refusal, for programs and developers: the value of the header `Stagedoor-Reason`.
//!
//! A value is one [`Word`] of a closed list and details: `cap; name=user-sessions; limit=3`. `docs/errors.md`
//! explains every word, and a test compares that page with [`Word::ALL`]. Bodies stay as the specification
//! has them.

use std::borrow::Cow;
use std::fmt;

/// The name of the header.
pub const REASON_HEADER: &str = "stagedoor-reason";

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)+) => {
        /// The kind of a reason. The list is closed: programs may rely on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Word {
            $($(#[$doc])* $name,)+
        }

        impl Word {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The word in the header.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

words! {
    /// 400: a wrong value. `field` names the field, `rule` its rule.
    Invalid = "invalid",
    /// 400: the code is unknown, or another application's.
    CodeUnknown = "code-unknown",
    /// 400: the code is older than 10 minutes.
    CodeExpired = "code-expired",
    /// 400: the code was used some seconds ago.
    CodeUsed = "code-used",
    /// 400: the code was used before; the tokens that it bought are revoked now.
    CodeReused = "code-reused",
    /// 400: the `state` is not the one of the code's sign-in.
    StateDiffers = "state-differs",
    /// 400: the message is in another channel's chat.
    NotTheStreamer = "not-the-streamer",
    /// 400: a rule of restrictions; `rule` names it.
    RestrictionRule = "restriction-rule",
    /// 401: credentials are missing; `want` names their kind.
    CredentialMissing = "credential-missing",
    /// 401: credentials are there but not in the form of `want`.
    CredentialMalformed = "credential-malformed",
    /// 401: credentials of another kind than `want`.
    CredentialWrongKind = "credential-wrong-kind",
    /// 401: the application is unknown, or its secret is wrong. One word for both.
    SecretWrong = "secret-wrong",
    /// 401: the token is unknown, or another application's.
    TokenUnknown = "token-unknown",
    /// 401: the token is too old.
    TokenExpired = "token-expired",
    /// 401: the token was revoked.
    TokenRevoked = "token-revoked",
    /// 401: the refresh token was used some seconds ago.
    TokenUsed = "token-used",
    /// 401: the refresh token was used before; every token of the application and user is revoked now.
    TokenReused = "token-reused",
    /// 401: the operator's key is wrong.
    OperatorKeyWrong = "operator-key-wrong",
    /// 401: the session URL is unknown.
    SessionUrlUnknown = "session-url-unknown",
    /// 401: the session URL opened a session before.
    SessionUrlUsed = "session-url-used",
    /// 401: the session URL is older than 30 seconds.
    SessionUrlExpired = "session-url-expired",
    /// 403: the scope `scope` is missing.
    ScopeMissing = "scope-missing",
    /// 403: the operator key lacks the role `role`.
    RoleMissing = "role-missing",
    /// 403: drops are for applications of verified organizations.
    OrganizationNotVerified = "organization-not-verified",
    /// 403: the chat belongs to another channel.
    NotYourChat = "not-your-chat",
    /// 403: a rule of the chat; `rule` names it.
    ChatRule = "chat-rule",
    /// 403: a rule of the campaign; `rule` names it.
    ClaimRule = "claim-rule",
    /// 404: `what` does not exist, or is not the caller's.
    NotFound = "not-found",
    /// 405: the path has other methods; `Allow` names them.
    MethodNotAllowed = "method-not-allowed",
    /// 429: the quota `name` is used up; `Retry-After` has the wait.
    Quota = "quota",
    /// 429: the service cannot accept more of these requests now; `Retry-After` has the wait.
    Busy = "busy",
    /// 429: the limit of `name` is reached. Waiting does not help.
    Cap = "cap",
    /// 503: the disk of the database is full; nothing was written. `Retry-After` has the wait.
    DiskFull = "disk-full",
    /// 500: the service failed; its log has the cause under the `X-Request-Id`.
    Internal = "internal",
    /// 400: the request is not well-formed HTTP/1.1.
    HttpMalformed = "http-malformed",
    /// 403, sandboxes: the name in `Host` is neither one of loopback nor one of `--allow-host`.
    HostNotAllowed = "host-not-allowed",
    /// 414: the address of the request is too long.
    AddressTooLong = "address-too-long",
    /// 431: the headers of the request are too large.
    HeadersTooLarge = "headers-too-large",
    /// 400, sockets: no polling session has this `sid`.
    SidUnknown = "sid-unknown",
    /// 400, sockets: another request of this session is running.
    SidBusy = "sid-busy",
    /// 400, sockets: the request is no websocket handshake.
    NotWebsocket = "not-websocket",
    /// 400, sockets: JSONP is not supported.
    Jsonp = "jsonp",
    /// 400, sockets: the posted body cannot be read.
    BodyMalformed = "body-malformed",
    /// 413, sockets: the posted body is too large.
    BodyTooLarge = "body-too-large",
    /// 503, sockets: the node is stopping.
    Draining = "draining",
    /// 503, sockets: the node has as many sessions as it can hold.
    NodeFull = "node-full",
    /// 400, sign-in pages: the application is unknown.
    ClientUnknown = "client-unknown",
    /// 400, sign-in pages: the redirect address is not one of those registered.
    RedirectUnregistered = "redirect-unregistered",
    /// 400, sign-in pages: the form is too old, or another browser's.
    FormExpired = "form-expired",
}

/// One reason: a word and details, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    word: Word,
    details: Vec<(&'static str, Cow<'static, str>)>,
}

impl Reason {
    /// A word without details.
    pub const fn new(word: Word) -> Self {
        Self { word, details: Vec::new() }
    }

    /// Adds a detail. Its value is a token: ASCII without spaces, commas and semicolons.
    pub fn with(mut self, key: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.details.push((key, value.into()));
        self
    }

    /// The word.
    pub const fn word(&self) -> Word {
        self.word
    }
}

impl From<Word> for Reason {
    fn from(word: Word) -> Self {
        Self::new(word)
    }
}

/// The value of the header.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word.name())?;
        self.details.iter().try_for_each(|(key, value)| write!(f, "; {key}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_distinct_and_in_lower_case() {
        for (index, word) in Word::ALL.iter().enumerate() {
            let name = word.name();
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name}");
            assert!(Word::ALL[..index].iter().all(|other| other.name() != name), "{name} stands twice");
        }
    }

    #[test]
    fn a_reason_is_a_word_and_its_details() {
        assert_eq!(Reason::from(Word::TokenExpired).to_string(), "token-expired");
        let cap = Reason::new(Word::Cap).with("name", "user-sessions").with("limit", "3");
        assert_eq!(cap.to_string(), "cap; name=user-sessions; limit=3");
    }
}

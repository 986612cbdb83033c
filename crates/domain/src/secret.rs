//! Secrets as types that cannot be printed or serialized by accident. The store holds another type.
//!
//! Every secret of Stagedoor has 256 random bits in base64url. The store holds only its SHA-256, so a copy of
//! the database contains no usable secret (`docs/spec/authorization.md#at-rest`).
//! [`expose`](AccessToken::expose) is the only way to the text; a test lists the files that may call it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::limits::{
    CREDENTIAL_BYTES_MAX, SECRET_CHARS_SHOWN, WEBHOOK_SECRET_CHARS_MAX, WEBHOOK_SECRET_CHARS_MIN,
};
use crate::{Invalid, Rule};

/// The SHA-256 of a secret in base64url, as the store holds it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SecretHash(String);

impl SecretHash {
    /// The hash of a text that must be recognized but not stored.
    pub fn of(text: &str) -> Self {
        Self(URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes())))
    }

    /// A hash from the store.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// The hash as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether two hashes are equal, in a time that does not depend on where they differ.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash")
    }
}

macro_rules! secrets {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(String);

        impl $name {
            /// A new secret from 256 random bits.
            pub fn generate(random: [u8; 32]) -> Self {
                Self(URL_SAFE_NO_PAD.encode(random))
            }

            /// A secret that a caller presented; `None` if it is longer than any secret of this service can
            /// be.
            pub fn presented(text: &str) -> Option<Self> {
                (text.len() <= CREDENTIAL_BYTES_MAX).then(|| Self(text.to_owned()))
            }

            /// The form in the store.
            pub fn hash(&self) -> SecretHash {
                SecretHash::of(&self.0)
            }

            /// The text of the secret, for the one answer that contains it.
            pub fn expose(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )+};
}

secrets! {
    /// Bearer token of a user-mode call. Lives 1 day.
    AccessToken,
    /// Buys the next pair of tokens, once. Lives 30 days.
    RefreshToken,
    /// Buys the first pair of tokens, once. Lives 10 minutes.
    AuthCode,
    /// Proves an application.
    ClientSecret,
    /// Opens one socket session, once. Lives 30 seconds.
    SessionUrlToken,
    /// The cookie of a browser on the sign-in pages.
    BrowserToken,
    /// Sets a new password, once. Lives 30 minutes.
    ResetToken,
    /// The operator's key of the platform API.
    OperatorKey,
    /// Grants the right to broadcast on a channel. Its owner may read it again, so the store holds it sealed.
    StreamKey,
    /// Signs messages to a webhook. The receiver has it too, so the store holds it sealed.
    WebhookSecret,
}

impl ClientSecret {
    /// A hint by which an operator recognizes a secret. The hint is too short to help in guessing.
    pub fn last_characters(&self) -> String {
        last_characters(&self.0)
    }
}

impl OperatorKey {
    /// A hint by which an operator recognizes a key. The hint is too short to help in guessing.
    pub fn last_characters(&self) -> String {
        last_characters(&self.0)
    }
}

fn last_characters(secret: &str) -> String {
    let skipped = secret.chars().count().saturating_sub(SECRET_CHARS_SHOWN);
    secret.chars().skip(skipped).collect()
}

impl WebhookSecret {
    /// A hint by which a developer recognizes a secret. The hint is too short to help in guessing.
    pub fn last_characters(&self) -> String {
        last_characters(&self.0)
    }

    /// A secret from the publisher: 32 to 256 printable ASCII characters.
    ///
    /// # Errors
    /// `Invalid` naming `secret`.
    pub fn given(text: &str) -> Result<Self, Invalid> {
        const MIN: usize = WEBHOOK_SECRET_CHARS_MIN;
        const MAX: usize = WEBHOOK_SECRET_CHARS_MAX;
        if (MIN..=MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::new("secret", Rule::Printable { min: MIN, max: MAX }))
        }
    }

    /// The HMAC-SHA256 of the parts, joined in that order, in lower-case hex. The key is the secret's text
    /// itself.
    pub fn sign(&self, parts: &[&[u8]]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let token = AccessToken::generate([7; 32]);
        assert_eq!(format!("{token:?} {:?}", token.hash()), "AccessToken SecretHash");
        assert_eq!(token.expose().len(), 43);
    }

    #[test]
    fn a_secret_from_a_publisher_is_long_and_printable() {
        let check = |text: &str, ok| assert_eq!(WebhookSecret::given(text).is_ok(), ok, "{text:?}");
        check(&"a".repeat(31), false);
        check(&"a".repeat(32), true);
        check(&"~!".repeat(128), true);
        check(&"a".repeat(257), false);
        check(&format!("{} ", "a".repeat(32)), false);
        check(&"가".repeat(32), false);
        check(&format!("{}\n", "a".repeat(32)), false);
    }

    #[test]
    fn only_the_same_text_has_the_same_hash() {
        let stored = ClientSecret::generate([1; 32]);
        let check = |text: &str, ok| {
            assert_eq!(ClientSecret::presented(text).is_some_and(|s| s.hash().matches(&stored.hash())), ok);
        };
        check(stored.expose(), true);
        check(&stored.expose()[1..], false);
        check("", false);
        check(&"a".repeat(513), false);
    }

    #[test]
    fn a_secret_is_recognized_by_its_last_four_characters() {
        let secret = ClientSecret::generate([1; 32]);
        assert!(secret.expose().ends_with(&secret.last_characters()));
        assert_eq!(secret.last_characters().len(), 4);
    }
}

//! The settings of accounts.

use domain::Language;
use domain::limits::PASSWORD_CHARS_MIN;

/// The settings of accounts. They are the same on every node of a service.
#[derive(Clone, Copy, Debug)]
pub struct AccountSettings {
    /// Whether people can make accounts by themselves.
    pub registration: bool,
    /// Fewest characters of a new password that its owner chooses.
    pub password_chars_min: usize,
    /// Whether messages to people are sent.
    pub sends_mail: bool,
    /// Whether accounts have passwords here. Without them people sign in at the operator's providers.
    pub passwords: bool,
    /// The language of notices about what no page of the person's did.
    pub language: Language,
    /// How long after a sign-in its tokens can be refreshed, in milliseconds; `None` for ever.
    pub token_chain_max_ms: Option<i64>,
}

/// The stored password of an account without one. It is no hash, so no password matches it.
pub(crate) const NO_PASSWORD: &str = "";

impl AccountSettings {
    /// Whether a person can sign in with the stored password.
    pub(crate) fn accepts(&self, password_hash: &str) -> bool {
        self.passwords && password_hash != NO_PASSWORD
    }
}

impl Default for AccountSettings {
    fn default() -> Self {
        Self {
            registration: false,
            password_chars_min: PASSWORD_CHARS_MIN,
            sends_mail: false,
            passwords: true,
            language: Language::default(),
            token_chain_max_ms: None,
        }
    }
}

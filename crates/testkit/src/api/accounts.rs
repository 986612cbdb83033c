//! Applications and people that are registered, and their tokens.

use serde_json::Value;

/// A registered application.
#[derive(Clone, Debug)]
pub struct Application {
    /// Its id.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// The first of its redirect addresses.
    pub redirect_uri: String,
}

/// A channel and its person.
#[derive(Clone, Debug)]
pub struct Person {
    /// The channel, which is the person.
    pub channel_id: String,
    /// The channel's name.
    pub name: String,
    /// The login name.
    pub login: String,
    /// The password.
    pub password: String,
}

/// The tokens of a sign-in.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// For `Authorization: Bearer`.
    pub access: String,
    /// For the next pair.
    pub refresh: String,
}

impl Tokens {
    /// Reads the tokens of a token answer's content.
    ///
    /// # Panics
    /// When it has no tokens.
    pub fn of(content: &Value) -> Self {
        let token = |name| content[name].as_str().expect("a token is a text").to_owned();
        Self { access: token("accessToken"), refresh: token("refreshToken") }
    }
}

//! What the API must know of the node around it.

use domain::secret::BrowserToken;

/// What the API must know of the node around it.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Whether browsers reach the node by https.
    pub is_secure: bool,
    /// Makes the cookie of the sign-in pages; the flag is whether the browser reaches the node by https.
    pub sign_in_cookie: fn(&BrowserToken, bool) -> String,
}

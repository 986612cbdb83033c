//! Signing in: the consent pages and the token endpoint (spec 4.1).

pub mod sign_in;
pub mod tokens;

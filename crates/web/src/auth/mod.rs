//! Signing in: the consent pages and the token endpoint (`docs/spec/authorization.md`).

mod flow;
mod guesses;
mod known_addresses;
mod pages;
pub mod sign_in;
pub mod tokens;

pub use pages::sign_in_cookie;

pub(crate) use known_addresses::KnownAddresses;

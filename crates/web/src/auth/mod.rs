//! Signing in: the consent pages and the token endpoint (`docs/spec/authorization.md`).

mod attempt;
mod flow;
mod guesses;
mod known_addresses;
mod pages;
pub mod sign_in;
pub mod tokens;

pub use attempt::try_password;
pub use pages::client_of_sign_in;

pub(crate) use known_addresses::KnownAddresses;

//! Signing in: the consent pages and the token endpoint (`docs/spec/authorization.md`).

mod flow;
mod guesses;
mod pages;
mod places;
pub mod sign_in;
pub mod tokens;

pub(crate) use places::Places;

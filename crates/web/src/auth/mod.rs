//! Signing in: the consent pages and the token endpoint (spec 4.1).

mod guesses;
mod places;
pub mod sign_in;
pub mod tokens;

pub(crate) use places::Places;

//! Webhooks on their way out.
//!
//! - `client`: one attempt over HTTP; `connect`: where it may go; `kept`: connections between attempts.

mod client;
mod connect;
mod kept;

pub use client::{ANSWER_BYTES_MAX, ATTEMPT_MAX, Answer, Client, EXCERPT_BYTES_MAX, Outgoing, Surroundings};
pub use connect::{BoxFuture, Resolver, system_resolver};

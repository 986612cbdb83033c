//! Sign-in at the operator's OpenID Connect providers (`docs/upstream.md`): what a provider is configured
//! with, and everything that is said to it. Nothing of accounts and pages.
//!
//! | Module | What it does |
//! |---|---|
//! | `settings` | the providers of the operator's file |
//! | `address` | which addresses of a provider may be called |
//! | `calls` | requests to a provider, with limits on every wait and answer |
//! | `metadata` | the discovery document and the keys of a provider |
//! | `provider` | a provider: where a sign-in begins, and who came back |
//! | `failure` | why a sign-in at a provider failed |
//! | `id_token` | the checks of an ID token |
//! | `outcome` | how sign-ins end, with counters |
//! | `check` | `stagedoor upstream check` |
//! | `testing` | a provider for tests, which is wrong on purpose |

mod address;
mod calls;
mod check;
mod failure;
mod id_token;
mod metadata;
mod outcome;
mod provider;
mod settings;
#[cfg(feature = "testing")]
pub mod testing;

pub use check::{Report, Step, StepState, check};
pub use failure::Failure;
pub use outcome::Outcome;
pub use provider::{Callback, FlowSecrets, Provider, Upstreams};
pub use settings::{ClaimNames, ProviderSettings, Registration, read_file};

//! What Stagedoor means: the nouns, the limits and the rules of the open API, with no I/O and no clock.
//!
//! Everything here is a value or a pure function. Rules take `now` as a [`Timestamp`] and randomness as bytes, so a test
//! states its whole situation in one line. A "no" is a [`Refusal`]; the edges turn it into an answer.
//!
//! | Module | Spec section |
//! |---|---|
//! | [`limits`] | 8, every number with its unit |
//! | [`scope`], [`token`], [`application`] | 3, 4.1, 5 |
//! | [`chat`], [`event`], [`session`] | 2, 3, 4.4, 4.5, 6 |
//! | [`quota`], [`refusal`], [`invalid`] | 7, 8 |
//! | [`ids`], [`secret`], [`time`], [`profile`] | 1, 2 |

pub mod application;
pub mod channel;
pub mod chat;
pub mod event;
pub mod ids;
pub mod invalid;
pub mod limits;
pub mod profile;
pub mod quota;
pub mod refusal;
pub mod scope;
pub mod secret;
pub mod session;
pub mod time;
pub mod token;

pub use ids::{ChannelId, ClientId, MessageId, NodeId, OrganizationId, SessionKey};
pub use invalid::{Invalid, Rule};
pub use profile::{Language, Profile};
pub use refusal::Refusal;
pub use scope::{Scope, ScopeSet};
pub use time::Timestamp;

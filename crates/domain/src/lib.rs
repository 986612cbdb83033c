//! What Stagedoor means: the nouns, the limits and the rules of the open API, with no I/O and no clock.
//!
//! Everything here is a value or a pure function. Rules take `now` as a [`Timestamp`] and randomness as bytes, so a test
//! states its whole situation in one line. A "no" is a [`Refusal`]; the edges turn it into an answer.
//!
//! | Module | Spec section |
//! |---|---|
//! | [`limits`] | 8, every number with its unit |
//! | [`scope`], [`token`], [`application`] | 3, 4.1, 5 |
//! | [`chat`], [`chat_settings`], [`event`], [`session`] | 2, 3, 4.4, 4.5, 6 |
//! | [`live`], [`drops`], [`restriction`] | 2, 4.3, 4.6, 4.7 |
//! | [`webhook`], [`webhook_secrets`], [`delivery`], [`outbound`] | 6 |
//! | [`cursor`], [`seal`] | 1 (pagination), 2 (stream key) |
//! | [`quota`], [`client_address`], [`proxy_protocol`] | 8 |
//! | [`refusal`], [`reason`], [`invalid`] | 7 |
//! | [`ids`], [`secret`], [`time`], [`profile`] | 1, 2 |

pub mod application;
pub mod channel;
pub mod chat;
pub mod chat_settings;
pub mod client_address;
pub mod cursor;
pub mod delivery;
pub mod drops;
pub mod event;
pub mod ids;
pub mod invalid;
pub mod limits;
pub mod live;
pub mod outbound;
pub mod profile;
pub mod proxy_protocol;
pub mod quota;
pub mod reason;
pub mod refusal;
pub mod restriction;
pub mod scope;
pub mod seal;
pub mod secret;
pub mod session;
pub mod time;
pub mod token;
pub mod webhook;
pub mod webhook_secrets;

pub use ids::{
    ApplicationSecretId, BatchId, CampaignId, CategoryId, ChannelId, ClaimId, ClientId, DeliveryId,
    MessageId, MessageSeries, NodeId, OrganizationId, RewardId, SessionKey, WebhookId, WebhookSecretId,
};
pub use invalid::{Invalid, Rule};
pub use profile::{Language, Profile};
pub use reason::{Reason, Word};
pub use refusal::Refusal;
pub use scope::{Scope, ScopeSet};
pub use time::Timestamp;

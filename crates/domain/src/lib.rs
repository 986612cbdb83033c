//! What Stagedoor means: the nouns, the limits and the rules of the open API, with no I/O and no clock.
//!
//! Everything here is a value or a pure function. Rules take `now` as a [`Timestamp`] and randomness as
//! bytes, so a test states its whole situation in one line. A rule refuses with a [`Refusal`], and `web` or
//! `gateway` answers it.
//!
//! | Module | Specification |
//! |---|---|
//! | [`limits`] | `docs/spec/limits.md`, every number with its unit |
//! | [`scope`], [`token`], [`application`], [`redirect_fault`], [`picture`] | `docs/spec/authorization.md` |
//! | [`account`], [`password`], [`password_fault`], [`totp`], [`mail`], [`user_agent`] | `docs/accounts.md` |
//! | [`channel`] | `docs/spec/channels.md` |
//! | [`chat`], [`chat_settings`] | `docs/spec/chat.md` |
//! | [`event`], [`session`], [`system_message`] | `docs/spec/realtime.md` |
//! | [`live`] | `docs/spec/lives.md` |
//! | [`restriction`] | `docs/spec/restriction.md` |
//! | [`drops`], [`webhook`], [`webhook_secrets`], [`delivery`], [`outbound`], [`address_fault`] | `docs/spec/drops.md` |
//! | [`cursor`] | `docs/spec/rest.md#lists` |
//! | [`audit`] | `docs/audit-log.md` |
//! | [`operator_key`] | `docs/spec/platform.md#key` |
//! | [`member`], [`review`] | `docs/developers.md` |
//! | [`secret`], [`seal`] | `docs/spec/authorization.md#at-rest` |
//! | [`quota`] | `docs/spec/limits.md#quotas` |
//! | [`client_address`], [`proxy_protocol`] | `docs/operating.md#client-addresses` |
//! | [`refusal`], [`reason`], [`invalid`] | `docs/spec/errors.md` |
//! | [`ids`], [`time`], [`profile`] | `docs/spec/rest.md` |
//! | [`color`], [`https_url`] | `docs/operating.md#the-brand` |
//! | [`retention`] | `docs/operating.md#retention` |
//! | [`log_interval`], [`span`] | – |

pub mod account;
pub mod address_fault;
pub mod application;
pub mod audit;
pub mod channel;
pub mod chat;
pub mod chat_settings;
pub mod client_address;
pub mod color;
pub mod cursor;
pub mod delivery;
pub mod distinct;
pub mod drops;
pub mod event;
pub mod https_url;
pub mod ids;
pub mod invalid;
pub mod limits;
pub mod live;
pub mod log_interval;
pub mod mail;
pub mod member;
pub mod operator_key;
pub mod outbound;
pub mod password;
pub mod password_fault;
pub mod picture;
pub mod probe;
pub mod profile;
pub mod proxy_protocol;
pub mod quota;
pub mod reason;
pub mod redirect_fault;
pub mod refusal;
pub mod restriction;
pub mod retention;
pub mod review;
pub mod scope;
pub mod seal;
pub mod secret;
pub mod session;
pub mod span;
pub mod system_message;
pub mod time;
pub mod token;
pub mod totp;
pub mod upstream;
pub mod usage;
pub mod user_agent;
pub mod webhook;
pub mod webhook_secrets;

pub use ids::{
    ApplicationSecretId, AuditEntryId, BatchId, BrowserSessionId, CampaignId, CategoryId, ChannelId, ClaimId,
    ClientId, DeliveryId, MessageId, MessageSeries, NodeId, OperatorKeyId, OrganizationId, ReviewRequestId,
    RewardId, SessionKey, StoreId, WebhookId, WebhookSecretId,
};
pub use invalid::{Invalid, Rule};
pub use log_interval::LogInterval;
pub use profile::{Language, Profile};
pub use reason::{Reason, Word};
pub use refusal::Refusal;
pub use scope::{Scope, ScopeSet};
pub use time::Timestamp;

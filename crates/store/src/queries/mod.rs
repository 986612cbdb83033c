//! Every statement, as a named constant beside the method that runs it: one file a noun.
//!
//! A method is one statement. What belongs together in one transaction is put together by the `service` crate.

pub mod applications;
pub mod browser_sessions;
pub mod channels;
pub mod chats;
pub mod consents;
pub mod credential_changes;
pub mod idempotency;
pub mod nodes;
pub mod sessions;
pub mod subscriptions;
pub mod sweeps;
pub mod tokens;
pub mod world;

use domain::secret::SecretHash;
use domain::{ChannelId, ClientId, MessageId, NodeId, OrganizationId, SessionKey, Timestamp};

use crate::Value;

macro_rules! text_values {
    ($($name:ident),+) => {$(
        impl<'a> From<&'a $name> for Value<'a> {
            fn from(value: &'a $name) -> Self {
                value.as_str().into()
            }
        }
    )+};
}
text_values!(ChannelId, ClientId, MessageId, NodeId, OrganizationId, SessionKey, SecretHash);

impl From<Timestamp> for Value<'_> {
    fn from(value: Timestamp) -> Self {
        value.as_millis().into()
    }
}

//! Identifiers. Each noun has its own type, so that two of them are never confused.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits::ID_BYTES_MAX;
use crate::secret::SecretHash;
use crate::{Invalid, Rule, Timestamp};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses an id that a caller chose: 1 to 64 ASCII letters, digits, `-`, `_` or `.`.
            ///
            /// # Errors
            /// `Invalid` naming `field` for anything else.
            pub fn parse(field: &'static str, text: &str) -> Result<Self, Invalid> {
                if is_id(text) { Ok(Self(text.into())) } else { Err(Invalid::new(field, Rule::Id)) }
            }

            /// An id from the store.
            pub fn stored(text: String) -> Self {
                Self(text.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                schemars::json_schema!({ "type": "string", "pattern": ID_PATTERN, "maxLength": ID_BYTES_MAX })
            }
        }
    )+};
}

ids! {
    /// A channel. Every user of the platform has one, so the id is the user's too.
    ChannelId,
    /// An application, as in `Client-Id`.
    ClientId,
    /// A chat message.
    MessageId,
    /// A socket session, as subscribe calls name it.
    SessionKey,
    /// A claimed reward.
    ClaimId,
    /// A campaign of drops.
    CampaignId,
    /// A reward, within its campaign.
    RewardId,
    /// A category of lives.
    CategoryId,
    /// An organization that owns applications.
    OrganizationId,
    /// A secret of an application, as its operator names it. The id is no credential.
    ApplicationSecretId,
    /// An operator key, as the operator names it. The id is no credential.
    OperatorKeyId,
    /// An entry of the audit log.
    AuditEntryId,
    /// A browser that is signed in, as its person names it. The id is no credential.
    BrowserSessionId,
    /// A request that the operator decides. It begins with its time.
    ReviewRequestId,
    /// A node of the service.
    NodeId,
    /// A webhook until its deletion. The next webhook of the same application has another id.
    WebhookId,
    /// A secret of a webhook.
    WebhookSecretId,
    /// A batch of events: those of one transaction, until their publication is confirmed.
    BatchId,
    /// A message to a webhook, the same in each of its attempts: a UUID in lower case with hyphens, so it
    /// always has 36 characters.
    DeliveryId,
    /// A store. Its backups and archives repeat the id, so that those of two stores are never mixed.
    StoreId,
}

macro_rules! time_ordered {
    ($($name:ident),+) => {$(
        impl $name {
            /// A new id that grows with time (UUID version 7), so that new entries of an index are at its
            /// end.
            pub fn generate(now: Timestamp, random: [u8; 10]) -> Self {
                Self(time_ordered_id(now, random).into())
            }
        }
    )+};
}
time_ordered!(
    ApplicationSecretId,
    BatchId,
    ChannelId,
    ClaimId,
    ClientId,
    MessageId,
    SessionKey,
    NodeId,
    OperatorKeyId,
    OrganizationId,
    ReviewRequestId,
    WebhookId,
    WebhookSecretId
);

impl BrowserSessionId {
    /// Characters of an id: 132 bits.
    const CHARS: usize = 22;

    /// The id of the browser with this token. It does not reveal the hash, which the proofs of forms come
    /// from.
    pub fn of(token: &SecretHash) -> Self {
        let hash = SecretHash::of(&format!("{}\nbrowser session", token.as_str()));
        Self(hash.as_str().chars().take(Self::CHARS).collect::<String>().into())
    }
}

impl MessageId {
    /// A bound below every generated id of that millisecond and above every earlier one. So a range of times
    /// is a range of ids. No message has this id.
    pub fn bound_at(at: Timestamp) -> Self {
        Self(format!("{:012x}", unix_ms(at)).into())
    }
}

/// The messages of one sender in one chat. Their ids differ only in their time, so the primary key of the
/// messages allows one message for each chat, sender and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageSeries([u8; 10]);

impl MessageSeries {
    /// The messages of `sender` in the chat of `channel`.
    pub fn of(channel: &ChannelId, sender: &ChannelId) -> Self {
        // No id contains the space between the two.
        let mut hash = Sha256::new_with_prefix(channel.as_str());
        hash.update(b" ");
        hash.update(sender.as_str());
        let hash = hash.finalize();
        let mut bits = [0; 10];
        bits.copy_from_slice(&hash[..10]);
        Self(bits)
    }

    /// The id of the message of that time.
    pub fn id_at(self, time: Timestamp) -> MessageId {
        MessageId::generate(time, self.0)
    }
}

impl SessionKey {
    /// The bound below every key of that millisecond and above every one before it. No session has it.
    pub fn bound_at(at: Timestamp) -> Self {
        Self(format!("{:012x}", unix_ms(at)).into())
    }
}

impl BatchId {
    /// The bound below every id of that millisecond and above every one before it. No batch has it.
    pub fn bound_at(at: Timestamp) -> Self {
        Self(format!("{:012x}", unix_ms(at)).into())
    }
}

impl DeliveryId {
    /// The id of a message of its own. It grows with time.
    pub fn generate(now: Timestamp, random: [u8; 10]) -> Self {
        let uuid = uuid::Builder::from_unix_timestamp_millis(unix_ms(now), &random).into_uuid();
        Self(uuid.hyphenated().to_string().into())
    }

    /// The id of the message about a claim. It grows with time, and every node computes the same id.
    pub fn of_claim(now: Timestamp, claim: &ClaimId, webhook: &WebhookId) -> Self {
        // No id contains the space between the two.
        let hash = Sha256::digest(format!("{claim} {webhook}"));
        let mut bits = [0; 10];
        bits.copy_from_slice(&hash[..10]);
        let uuid = uuid::Builder::from_unix_timestamp_millis(unix_ms(now), &bits).into_uuid();
        Self(uuid.hyphenated().to_string().into())
    }

    /// When the message was written. The id begins with this time.
    pub fn written_at(&self) -> Timestamp {
        let hex = self.as_str().bytes().filter(u8::is_ascii_hexdigit).take(12);
        let digit = |byte: u8| char::from(byte).to_digit(16).map_or(0, i64::from);
        Timestamp::from_millis(hex.fold(0, |ms, byte| ms * 16 + digit(byte)))
    }

    /// The bound below every id of that millisecond and above every one before it. No message has it.
    pub fn bound_at(at: Timestamp) -> Self {
        let hex = format!("{:012x}", unix_ms(at));
        Self(format!("{}-{}", &hex[..8], &hex[8..]).into())
    }
}

impl AuditEntryId {
    /// The id of the entry with this number of a node. It begins with its time. Within a millisecond the
    /// entries of a node are in the order of their numbers.
    pub fn generate(now: Timestamp, number: u32, random: [u8; 6]) -> Self {
        let random = random.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        Self(format!("{:012x}{number:08x}{random:012x}", unix_ms(now)).into())
    }

    /// The bound below every id of that millisecond and above every one before it. No entry has it.
    pub fn bound_at(at: Timestamp) -> Self {
        Self(format!("{:012x}", unix_ms(at)).into())
    }
}

fn unix_ms(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0)
}

fn time_ordered_id(now: Timestamp, random: [u8; 10]) -> String {
    uuid::Builder::from_unix_timestamp_millis(unix_ms(now), &random).into_uuid().simple().to_string()
}

/// The pattern of an id in a schema. `.` and `..` are no ids. The pattern has no look-ahead, which many
/// languages lack.
pub const ID_PATTERN: &str = r"^(\.{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]*|\.{3}[A-Za-z0-9._-]*)$";

/// The bytes that an id may have, as a table, because every call checks ids.
const ID_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut byte = 0;
    while byte < bytes.len() {
        let character = byte as u8;
        bytes[byte] = character.is_ascii_alphanumeric() || matches!(character, b'-' | b'_' | b'.');
        byte += 1;
    }
    bytes
};

fn is_id(text: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| ID_BYTES[usize::from(byte)])
        && text != "."
        && text != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_from_callers_have_64_safe_characters_at_most() {
        let check = |text: &str, ok| assert_eq!(ChannelId::parse("channelId", text).is_ok(), ok, "{text:?}");
        check("a", true);
        check("streamer-1_x.y", true);
        check(&"x".repeat(64), true);
        check(&"x".repeat(65), false);
        check("", false);
        check("..", false);
        check("a/b", false);
        check("한글", false);
        check("a\0", false);
    }

    #[test]
    fn the_id_of_a_browser_session_is_an_id_and_not_the_hash() {
        let token = SecretHash::of("token");
        let id = BrowserSessionId::of(&token);
        assert!(BrowserSessionId::parse("sessionId", id.as_str()).is_ok());
        assert_eq!((id.clone(), id.as_str().len()), (BrowserSessionId::of(&token), 22));
        assert!(!token.as_str().contains(id.as_str()));
        assert_ne!(id, BrowserSessionId::of(&SecretHash::of("other")));
    }

    #[test]
    fn a_range_of_times_is_a_range_of_ids() {
        for ms in [0, 1, 0xff, 0x100, 1_784_385_132_345, 253_402_300_799_999] {
            let (at, next) = (Timestamp::from_millis(ms), Timestamp::from_millis(ms).plus_ms(1));
            for random in [[0; 10], [255; 10]] {
                let id = MessageId::generate(at, random);
                assert!(MessageId::bound_at(at) < id, "{ms}");
                assert!(next == at || id < MessageId::bound_at(next), "{ms}");
            }
        }
    }

    #[test]
    fn messages_of_one_sender_in_one_chat_have_ids_that_differ_in_their_time_only() {
        let series = |channel: &str, sender: &str| {
            MessageSeries::of(&ChannelId::stored(channel.into()), &ChannelId::stored(sender.into()))
        };
        let ids: std::collections::BTreeSet<_> = [("a", "b"), ("b", "a"), ("a", "a"), ("ab", ""), ("", "ab")]
            .into_iter()
            .flat_map(|(channel, sender)| [7, 8].map(|ms| (channel, sender, ms)))
            .map(|(channel, sender, ms)| series(channel, sender).id_at(Timestamp::from_millis(ms)))
            .collect();
        assert_eq!(ids.len(), 10);
        let at = |ms| series("a", "b").id_at(Timestamp::from_millis(ms));
        assert_eq!(at(7), at(7));
        assert!(
            at(7) < MessageId::bound_at(Timestamp::from_millis(8))
                && at(7).as_str()[12..] == at(8).as_str()[12..]
        );
    }

    #[test]
    fn a_message_to_a_webhook_has_an_id_of_fixed_width_that_grows_with_time() {
        let of = |ms, claim: &str, webhook: &str| {
            let (claim, webhook) = (ClaimId::stored(claim.into()), WebhookId::stored(webhook.into()));
            DeliveryId::of_claim(Timestamp::from_millis(ms), &claim, &webhook)
        };
        for ms in [0, 0xffff, 0x1_0000, 1_784_385_132_345, 253_402_300_799_998] {
            let id = of(ms, "claim", "webhook");
            assert_eq!((id.as_str().len(), id.as_str()), (36, id.as_str().to_lowercase().as_str()));
            assert!(uuid::Uuid::parse_str(id.as_str()).is_ok());
            assert_eq!(id, of(ms, "claim", "webhook"));
            assert_ne!(id, of(ms, "claim", "other"));
            assert_ne!(id, of(ms, "other", "webhook"));
            let bound = |ms| DeliveryId::bound_at(Timestamp::from_millis(ms));
            assert!(bound(ms) < id && id < bound(ms + 1), "{ms}");
            assert_eq!(id.written_at(), Timestamp::from_millis(ms));
        }
    }

    #[test]
    fn entries_of_the_audit_log_are_in_the_order_of_times_and_numbers() {
        let id = |ms, number, random| AuditEntryId::generate(Timestamp::from_millis(ms), number, random);
        let ids =
            [id(0, 1, [255; 6]), id(0, 2, [0; 6]), id(0, u32::MAX, [7; 6]), id(1_784_385_132_345, 0, [0; 6])];
        assert!(ids.is_sorted());
        assert!(ids.iter().all(|id| id.as_str().len() == 32), "{ids:?}");
    }

    #[test]
    fn generated_ids_grow_with_time() {
        let early = MessageId::generate(Timestamp::from_millis(1_000), [255; 10]);
        let late = MessageId::generate(Timestamp::from_millis(1_001), [0; 10]);
        assert!(early < late);
        assert!(MessageId::parse("messageId", late.as_str()).is_ok());
    }
}

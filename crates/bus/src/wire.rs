//! The encoding of messages between nodes. Nodes of different versions meet during a rolling update. A
//! message of an unknown version is not decoded, and its events count as lost.
//!
//! `version(1) publisher(8) number(8) kind(1)`, then the parts: numbers of 8 bytes, big-endian; texts with
//! their length before them, in groups of 7 bits.

use std::sync::Arc;

use domain::channel::UserRoleCode;
use domain::chat::{Badge, DonationType, Emojis};
use domain::event::{ChatEvent, DonationEvent, Event, EventKind, SubscriptionEvent};
use domain::session::{ChangeKind, EventType, SessionChange, Subscription};
use domain::{ChannelId, NodeId, SessionKey, Timestamp};

use crate::Message;

/// The version that is written, and the only one that is read.
const VERSION: u8 = 2;
/// Bytes before the kind.
pub(crate) const HEADER_BYTES: usize = 17;

const KIND_EVENT: u8 = 1;
const KIND_SESSION_CHANGED: u8 = 2;
const KIND_SESSION_EVICTED: u8 = 3;
const KIND_NODE_DECLARED_DEAD: u8 = 4;

const CHAT: u8 = 1;
const DONATION: u8 = 2;
const SUBSCRIPTION: u8 = 3;

const ROLES: [UserRoleCode; 4] = [
    UserRoleCode::Streamer,
    UserRoleCode::CommonUser,
    UserRoleCode::StreamingChannelManager,
    UserRoleCode::StreamingChatManager,
];
const DONATION_TYPES: [DonationType; 2] = [DonationType::Chat, DonationType::Video];
const CHANGES: [ChangeKind; 3] = [ChangeKind::Subscribed, ChangeKind::Unsubscribed, ChangeKind::Revoked];

/// The publisher and the number of a message. Numbers of a publisher only grow, so a number up to the last
/// one is a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Identifies one start of one node.
    pub(crate) publisher: u64,
    pub(crate) number: u64,
}

/// The bytes are not a message of a known version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message that this version cannot read")]
pub(crate) struct Malformed;

pub(crate) fn header(origin: Origin) -> [u8; HEADER_BYTES] {
    let mut header = [VERSION; HEADER_BYTES];
    header[1..9].copy_from_slice(&origin.publisher.to_be_bytes());
    header[9..].copy_from_slice(&origin.number.to_be_bytes());
    header
}

/// Everything after the header.
pub(crate) fn encode(message: &Message) -> Vec<u8> {
    match message {
        Message::Event(event) => Writer::begin(KIND_EVENT).event(event).0,
        Message::SessionChanged { node, session_key, change } => {
            let writer = Writer::begin(KIND_SESSION_CHANGED).text(node.as_str()).text(session_key.as_str());
            writer
                .number(change.version)
                .byte(change.kind as u8)
                .byte(change.subscription.event_type as u8)
                .text(change.subscription.channel_id.as_str())
                .0
        }
        Message::SessionEvicted { node, session_key } => {
            Writer::begin(KIND_SESSION_EVICTED).text(node.as_str()).text(session_key.as_str()).0
        }
        Message::NodeDeclaredDead { node } => Writer::begin(KIND_NODE_DECLARED_DEAD).text(node.as_str()).0,
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<(Origin, Message), Malformed> {
    let mut reader = Reader(bytes);
    if reader.byte()? != VERSION {
        return Err(Malformed);
    }
    let origin = Origin { publisher: reader.word()?, number: reader.word()? };
    let message = match reader.byte()? {
        KIND_EVENT => Message::Event(Arc::new(reader.event()?)),
        KIND_SESSION_CHANGED => reader.session_changed()?,
        KIND_SESSION_EVICTED => Message::SessionEvicted {
            node: NodeId::stored(reader.text()?),
            session_key: SessionKey::stored(reader.text()?),
        },
        KIND_NODE_DECLARED_DEAD => Message::NodeDeclaredDead { node: NodeId::stored(reader.text()?) },
        _ => return Err(Malformed),
    };
    if reader.0.is_empty() { Ok((origin, message)) } else { Err(Malformed) }
}

struct Writer(Vec<u8>);

impl Writer {
    fn begin(kind: u8) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.push(kind);
        Self(bytes)
    }

    fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    fn number(mut self, number: i64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn length(mut self, mut length: usize) -> Self {
        while length >= 0x80 {
            self.0.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.byte(length as u8)
    }

    fn text(self, text: &str) -> Self {
        let mut writer = self.length(text.len());
        writer.0.extend(text.as_bytes());
        writer
    }

    fn emojis(self, emojis: &Emojis) -> Self {
        emojis.iter().fold(self.length(emojis.len()), |writer, (id, url)| writer.text(id).text(url))
    }

    fn badges(self, badges: &[Badge]) -> Self {
        badges.iter().fold(self.length(badges.len()), |writer, badge| writer.text(&badge.image_url))
    }

    fn event(self, event: &Event) -> Self {
        let writer = self.text(event.channel_id.as_str()).number(event.sent_at.as_millis());
        match &event.kind {
            EventKind::Chat(chat) => writer.byte(CHAT).chat(chat),
            EventKind::Donation(donation) => writer.byte(DONATION).donation(donation),
            EventKind::Subscription(paid) => writer.byte(SUBSCRIPTION).subscription(paid),
        }
    }

    fn chat(self, chat: &ChatEvent) -> Self {
        self.text(chat.sender_channel_id.as_str())
            .text(&chat.nickname)
            .badges(&chat.badges)
            .byte(chat.verified_mark.into())
            .byte(chat.user_role_code as u8)
            .text(&chat.chat_channel_id)
            .text(&chat.content)
            .emojis(&chat.emojis)
            .number(chat.message_time.as_millis())
    }

    fn donation(self, donation: &DonationEvent) -> Self {
        let writer = self.byte(donation.donation_type as u8);
        let writer = match &donation.donator {
            Some((id, name)) => writer.byte(1).text(id.as_str()).text(name),
            None => writer.byte(0),
        };
        writer.text(&donation.pay_amount).text(&donation.donation_text).emojis(&donation.emojis)
    }

    fn subscription(self, paid: &SubscriptionEvent) -> Self {
        self.text(paid.subscriber_channel_id.as_str())
            .text(&paid.subscriber_nickname)
            .number(paid.tier_no)
            .text(&paid.tier_name)
            .number(paid.month)
    }
}

/// The unread bytes. No memory is reserved for a length that the bytes do not contain.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    fn word(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?.try_into().map_err(|_| Malformed)?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn number(&mut self) -> Result<i64, Malformed> {
        Ok(self.word()?.cast_signed())
    }

    fn time(&mut self) -> Result<Timestamp, Malformed> {
        self.number().map(Timestamp::from_millis)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Result<T, Malformed> {
        all.get(usize::from(self.byte()?)).copied().ok_or(Malformed)
    }

    /// A length of at most 28 bits, far more than a message has.
    fn length(&mut self) -> Result<usize, Malformed> {
        let mut length = 0;
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            length |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(length);
            }
        }
        Err(Malformed)
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let length = self.length()?;
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| Malformed)?;
        Ok(text.to_owned())
    }

    fn channel(&mut self) -> Result<ChannelId, Malformed> {
        self.text().map(ChannelId::stored)
    }

    fn badges(&mut self) -> Result<Vec<Badge>, Malformed> {
        let mut badges = Vec::new();
        for _ in 0..self.length()? {
            badges.push(Badge { image_url: self.text()? });
        }
        Ok(badges)
    }

    fn emojis(&mut self) -> Result<Emojis, Malformed> {
        let mut emojis = Emojis::new();
        for _ in 0..self.length()? {
            emojis.insert(self.text()?, self.text()?);
        }
        Ok(emojis)
    }

    fn session_changed(&mut self) -> Result<Message, Malformed> {
        Ok(Message::SessionChanged {
            node: NodeId::stored(self.text()?),
            session_key: SessionKey::stored(self.text()?),
            change: SessionChange {
                version: self.number()?,
                kind: self.one_of(&CHANGES)?,
                subscription: Subscription {
                    event_type: self.one_of(&EventType::ALL)?,
                    channel_id: self.channel()?,
                },
            },
        })
    }

    fn event(&mut self) -> Result<Event, Malformed> {
        let (channel_id, sent_at) = (self.channel()?, self.time()?);
        let kind = match self.byte()? {
            CHAT => EventKind::Chat(self.chat()?),
            DONATION => EventKind::Donation(self.donation()?),
            SUBSCRIPTION => EventKind::Subscription(self.subscription()?),
            _ => return Err(Malformed),
        };
        Ok(Event { channel_id, sent_at, kind })
    }

    fn chat(&mut self) -> Result<ChatEvent, Malformed> {
        Ok(ChatEvent {
            sender_channel_id: self.channel()?,
            nickname: self.text()?,
            badges: self.badges()?,
            verified_mark: self.flag()?,
            user_role_code: self.one_of(&ROLES)?,
            chat_channel_id: self.text()?,
            content: self.text()?,
            emojis: self.emojis()?,
            message_time: self.time()?,
        })
    }

    fn donation(&mut self) -> Result<DonationEvent, Malformed> {
        Ok(DonationEvent {
            donation_type: self.one_of(&DONATION_TYPES)?,
            donator: if self.flag()? { Some((self.channel()?, self.text()?)) } else { None },
            pay_amount: self.text()?,
            donation_text: self.text()?,
            emojis: self.emojis()?,
        })
    }

    fn subscription(&mut self) -> Result<SubscriptionEvent, Malformed> {
        Ok(SubscriptionEvent {
            subscriber_channel_id: self.channel()?,
            subscriber_nickname: self.text()?,
            tier_no: self.number()?,
            tier_name: self.text()?,
            month: self.number()?,
        })
    }
}

// A value is written as its discriminant and read as an index of a list: both have to agree.
const _: () = {
    assert!(ROLES[0] as u8 == 0 && ROLES[1] as u8 == 1 && ROLES[2] as u8 == 2 && ROLES[3] as u8 == 3);
    assert!(DONATION_TYPES[0] as u8 == 0 && DONATION_TYPES[1] as u8 == 1);
    assert!(CHANGES[0] as u8 == 0 && CHANGES[1] as u8 == 1 && CHANGES[2] as u8 == 2);
    assert!(EventType::ALL[0] as u8 == 0 && EventType::ALL[1] as u8 == 1 && EventType::ALL[2] as u8 == 2);
};

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;

use std::sync::Arc;

use domain::channel::UserRoleCode;
use domain::chat::{Badge, DonationType, Emojis};
use domain::event::{ChatEvent, DonationEvent, Event, EventKind, EventType, SubscriptionEvent};
use domain::session::{ChangeKind, SessionChange, Subscription};
use domain::{ChannelId, NodeId, SessionKey, Timestamp};
use proptest::prelude::*;

use super::*;

const ORIGIN: Origin = Origin { publisher: u64::MAX, number: 7 };
/// Length of the header with [`ORIGIN`]: the version, and the numbers in groups of 7 bits.
const HEADER_BYTES: usize = 1 + 10 + 1;

const ROLES: [UserRoleCode; 4] = [
    UserRoleCode::Streamer,
    UserRoleCode::CommonUser,
    UserRoleCode::StreamingChannelManager,
    UserRoleCode::StreamingChatManager,
];
const DONATION_TYPES: [DonationType; 2] = [DonationType::Chat, DonationType::Video];
const CHANGES: [ChangeKind; 3] = [ChangeKind::Subscribed, ChangeKind::Unsubscribed, ChangeKind::Revoked];

fn bytes(message: &Message) -> Vec<u8> {
    [header(ORIGIN), encode(message)].concat()
}

fn assert_round_trip(message: &Message) {
    let (origin, read) = decode(&bytes(message)).expect("what was written is read");
    assert_eq!(origin, ORIGIN);
    assert_eq!(format!("{read:?}"), format!("{message:?}"));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", "[가-힣👋\u{0}\r\n]{0,300}"]
}

fn channel() -> impl Strategy<Value = ChannelId> {
    "[A-Za-z0-9._-]{1,64}".prop_map(ChannelId::stored)
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp::from_millis)
}

fn emojis() -> impl Strategy<Value = Emojis> {
    prop::collection::btree_map(text(), text(), 0..4)
}

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

fn chat() -> impl Strategy<Value = EventKind> {
    let badges = prop::collection::vec(text().prop_map(|image_url| Badge { image_url }), 0..4);
    let who = (channel(), text(), badges, any::<bool>(), one_of(&ROLES));
    (who, text(), text(), emojis(), time()).prop_map(
        |(who, chat_channel_id, content, emojis, message_time)| {
            let (sender_channel_id, nickname, badges, verified_mark, user_role_code) = who;
            EventKind::Chat(ChatEvent {
                sender_channel_id,
                nickname,
                badges,
                verified_mark,
                user_role_code,
                chat_channel_id,
                content,
                emojis,
                message_time,
            })
        },
    )
}

fn donation() -> impl Strategy<Value = EventKind> {
    let donator = prop::option::of((channel(), text()));
    (one_of(&DONATION_TYPES), donator, text(), text(), emojis()).prop_map(
        |(donation_type, donator, pay_amount, donation_text, emojis)| {
            EventKind::Donation(DonationEvent { donation_type, donator, pay_amount, donation_text, emojis })
        },
    )
}

fn paid() -> impl Strategy<Value = EventKind> {
    (channel(), text(), any::<i64>(), text(), any::<i64>()).prop_map(
        |(subscriber_channel_id, subscriber_nickname, tier_no, tier_name, month)| {
            EventKind::Subscription(SubscriptionEvent {
                subscriber_channel_id,
                subscriber_nickname,
                tier_no,
                tier_name,
                month,
            })
        },
    )
}

/// What happened in an event of this type.
fn kind(event_type: EventType) -> BoxedStrategy<EventKind> {
    match event_type {
        EventType::Chat => chat().boxed(),
        EventType::Donation => donation().boxed(),
        EventType::Subscription => paid().boxed(),
    }
}

fn event() -> impl Strategy<Value = Message> {
    (channel(), time(), one_of(&EventType::ALL).prop_flat_map(kind))
        .prop_map(|(channel_id, sent_at, kind)| Message::Event(Arc::new(Event { channel_id, sent_at, kind })))
}

fn session_changed() -> impl Strategy<Value = Message> {
    let what = (any::<i64>(), one_of(&CHANGES), one_of(&EventType::ALL), channel());
    (text(), text(), what).prop_map(|(node, key, (version, kind, event_type, channel_id))| {
        Message::SessionChanged {
            node: NodeId::stored(node),
            session_key: SessionKey::stored(key),
            change: SessionChange { version, kind, subscription: Subscription { event_type, channel_id } },
        }
    })
}

fn session_evicted() -> impl Strategy<Value = Message> {
    (text(), text()).prop_map(|(node, key)| Message::SessionEvicted {
        node: NodeId::stored(node),
        session_key: SessionKey::stored(key),
    })
}

fn node_declared_dead() -> impl Strategy<Value = Message> {
    text().prop_map(|node| Message::NodeDeclaredDead { node: NodeId::stored(node) })
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![event(), session_changed(), session_evicted(), node_declared_dead()]
}

proptest! {
    #[test]
    fn every_message_survives_a_round_trip(message in message()) {
        assert_round_trip(&message);
    }

    #[test]
    fn no_message_that_was_cut_or_has_more_is_read(message in message(), cut in any::<prop::sample::Index>()) {
        let mut bytes = bytes(&message);
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(0);
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_a_message_or_none(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn a_message_with_one_wrong_byte_is_read_or_not(
        message in message(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = bytes(&message);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = decode(&bytes);
    }
}

#[test]
fn messages_of_other_versions_and_kinds_are_malformed() {
    let subscription =
        Subscription { event_type: EventType::Chat, channel_id: ChannelId::stored("c".into()) };
    let bytes = bytes(&Message::SessionChanged {
        node: NodeId::stored("n".into()),
        session_key: SessionKey::stored("s".into()),
        change: SessionChange { version: 1, kind: ChangeKind::Revoked, subscription },
    });
    for (at, values) in [(0, [0, 2, 255]), (HEADER_BYTES, [3, 4, 255])] {
        for value in values {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert_eq!(decode(&bytes).err(), Some(Malformed), "{at} {value}");
        }
    }
    assert_eq!(decode(&[]).err(), Some(Malformed));
}

/// An event of this type on the channel `c`, and the bytes of its message.
fn sample(event_type: EventType) -> (EventKind, &'static [u8]) {
    let channel = |id: &str| ChannelId::stored(id.to_owned());
    let emojis = Emojis::from([("e".to_owned(), "u".to_owned())]);
    match event_type {
        EventType::Chat => (
            EventKind::Chat(ChatEvent {
                sender_channel_id: channel("s"),
                nickname: "n".to_owned(),
                badges: vec![Badge { image_url: "b".to_owned() }],
                verified_mark: true,
                user_role_code: UserRoleCode::CommonUser,
                chat_channel_id: "chat".to_owned(),
                content: "안녕".to_owned(),
                emojis,
                message_time: Timestamp::from_millis(-1),
            }),
            b"\x00\x01c\x02\x00\x01s\x01n\x01\x01b\x01\x01\x04chat\x06\xec\x95\x88\xeb\x85\x95\x01\x01e\x01u\x01",
        ),
        EventType::Donation => (
            EventKind::Donation(DonationEvent {
                donation_type: DonationType::Video,
                donator: Some((channel("d"), "n".to_owned())),
                pay_amount: "1000".to_owned(),
                donation_text: "t".to_owned(),
                emojis,
            }),
            b"\x00\x01c\x02\x01\x01\x01\x01d\x01n\x041000\x01t\x01\x01e\x01u",
        ),
        EventType::Subscription => (
            EventKind::Subscription(SubscriptionEvent {
                subscriber_channel_id: channel("s"),
                subscriber_nickname: "n".to_owned(),
                tier_no: 2,
                tier_name: "t".to_owned(),
                month: 300,
            }),
            b"\x00\x01c\x02\x02\x01s\x01n\x04\x01t\xd8\x04",
        ),
    }
}

/// A message with that event.
fn sample_message(event_type: EventType) -> Message {
    let (kind, _) = sample(event_type);
    let channel_id = ChannelId::stored("c".to_owned());
    Message::Event(Arc::new(Event { channel_id, sent_at: Timestamp::from_millis(1), kind }))
}

/// Nodes of one version must agree on every byte.
fn assert_bytes(bytes: &[u8], expected: &[u8]) {
    let (bytes, expected) = (bytes.escape_ascii(), expected.escape_ascii());
    assert!(
        bytes.to_string() == expected.to_string(),
        "the encoding changed: raise `VERSION`, and write the new bytes here\n  now {bytes}\n  was {expected}"
    );
}

#[test]
fn the_bytes_of_a_version_are_fixed() {
    for event_type in EventType::ALL {
        assert_bytes(&encode(&sample_message(event_type)), sample(event_type).1);
    }
    let message = Message::SessionChanged {
        node: NodeId::stored("n".into()),
        session_key: SessionKey::stored("key".into()),
        change: SessionChange {
            version: -300,
            kind: ChangeKind::Revoked,
            subscription: Subscription {
                event_type: EventType::Donation,
                channel_id: ChannelId::stored("c".into()),
            },
        },
    };
    let expected = b"\x03\x01\x80\x01\x01\x01n\x03key\xd7\x04\x02\x01\x01c";
    assert_bytes(&[header(Origin { publisher: 1, number: 128 }), encode(&message)].concat(), expected);
}

/// The length says 268 million badges. The bytes end before that.
#[test]
fn a_length_beyond_the_bytes_is_malformed() {
    let event = Event {
        channel_id: ChannelId::stored("c".into()),
        sent_at: Timestamp::from_millis(0),
        kind: EventKind::Chat(ChatEvent {
            sender_channel_id: ChannelId::stored("s".into()),
            nickname: String::new(),
            badges: Vec::new(),
            verified_mark: false,
            user_role_code: UserRoleCode::CommonUser,
            chat_channel_id: String::new(),
            content: String::new(),
            emojis: Emojis::new(),
            message_time: Timestamp::from_millis(0),
        }),
    };
    let bytes = bytes(&Message::Event(Arc::new(event)));
    assert!(decode(&bytes).is_ok());
    // The fields before the badges: kinds, channel, time, kind of event, sender, empty name.
    let badges = HEADER_BYTES + 1 + 2 + 1 + 1 + 2 + 1;
    let claimed = [&bytes[..badges], b"\xff\xff\xff\x7f", &bytes[badges + 1..]].concat();
    assert_eq!(decode(&claimed).err(), Some(Malformed));
}

/// A chat message in Korean, like most messages.
#[test]
fn a_chat_message_is_small() {
    let chat = ChatEvent {
        sender_channel_id: ChannelId::stored("0".repeat(32)),
        nickname: "시청자".into(),
        badges: Vec::new(),
        verified_mark: false,
        user_role_code: UserRoleCode::CommonUser,
        chat_channel_id: format!("chat-{}", "0".repeat(32)),
        content: "안녕하세요".into(),
        emojis: Emojis::new(),
        message_time: Timestamp::from_millis(1_784_385_132_345),
    };
    let event = Event {
        channel_id: ChannelId::stored("0".repeat(32)),
        sent_at: Timestamp::from_millis(1_784_385_132_345),
        kind: EventKind::Chat(chat),
    };
    let size = bytes(&Message::Event(Arc::new(event))).len();
    assert!(size <= 180, "{size} bytes");
}

#[test]
fn fuzz_messages() {
    let changes = [
        Message::SessionChanged {
            node: NodeId::stored("node".to_owned()),
            session_key: SessionKey::stored("key".to_owned()),
            change: SessionChange {
                version: 1,
                kind: CHANGES[2],
                subscription: Subscription {
                    event_type: EventType::Donation,
                    channel_id: ChannelId::stored("haneul".to_owned()),
                },
            },
        },
        Message::SessionEvicted {
            node: NodeId::stored("node".to_owned()),
            session_key: SessionKey::stored("key".to_owned()),
        },
        Message::NodeDeclaredDead { node: NodeId::stored("node".to_owned()) },
    ];
    fuzz::Fuzz::new("messages between nodes")
        .seeds(EventType::ALL.map(sample_message).iter().chain(&changes).map(bytes))
        .tokens([&b"\xff\xff\xff\x7f"[..], b"\x80\x01"])
        .run(|input| {
            let (origin, message) = decode(input).ok()?;
            let again = encode(&message);
            assert!(again.len() < input.len(), "nothing is made up");
            let (same_origin, same) = decode(&[header(origin), again].concat()).expect("its own bytes");
            assert_eq!((same_origin, format!("{same:?}")), (origin, format!("{message:?}")));
            let event_type = match &message {
                Message::Event(event) => Some(event.event_type()),
                _ => None,
            };
            Some((std::mem::discriminant(&message), event_type))
        });
}

//! SYSTEM, the service's own messages on the socket (`docs/spec/realtime.md#system`).

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;

use crate::SessionKey;
use crate::event::EventDescription;
use crate::session::{ChangeKind, SessionChange, Subscription};

/// The name of the service's own messages on the socket.
pub const SYSTEM: &str = "SYSTEM";

/// The payload of SYSTEM `connected`.
pub fn connected(session_key: &SessionKey) -> impl Serialize {
    SystemPayload::Connected { session_key }
}

/// The payload of SYSTEM `subscribed`, `unsubscribed` or `revoked`.
pub fn change(change: &SessionChange) -> impl Serialize {
    let subscription = &change.subscription;
    match change.kind {
        ChangeKind::Subscribed => SystemPayload::Subscribed(subscription),
        ChangeKind::Unsubscribed => SystemPayload::Unsubscribed(subscription),
        ChangeKind::Revoked => SystemPayload::Revoked(subscription),
    }
}

/// SYSTEM in the published document. The schema is generated from the serialized type.
pub fn description(generator: &mut SchemaGenerator) -> EventDescription {
    EventDescription {
        name: SYSTEM,
        message_id: "systemMessage",
        summary: "Something about the session itself: connected, subscribed, unsubscribed, revoked.",
        schema: generator.subschema_for::<SystemPayload<'_>>(),
    }
}

/// What the service says about a session and its subscriptions.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum SystemPayload<'a> {
    /// The first message on every session.
    Connected {
        /// Names the session in subscribe calls.
        session_key: &'a SessionKey,
    },
    /// A subscribe call is done: events of the subscription may follow.
    Subscribed(&'a Subscription),
    /// An unsubscribe call is done: no event of the subscription follows.
    Unsubscribed(&'a Subscription),
    /// Consent was withdrawn, tokens were revoked, or a scope was taken away: no event of the subscription
    /// follows.
    Revoked(&'a Subscription),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChannelId;
    use crate::event::EventType;

    fn json(payload: impl Serialize) -> String {
        serde_json::to_string(&payload).unwrap()
    }

    #[test]
    fn system_messages() {
        let change = SessionChange {
            version: 1,
            kind: ChangeKind::Revoked,
            subscription: Subscription {
                event_type: EventType::Chat,
                channel_id: ChannelId::stored("c".into()),
            },
        };
        assert_eq!(
            json(self::change(&change)),
            r#"{"type":"revoked","data":{"eventType":"CHAT","channelId":"c"}}"#
        );
        let key = SessionKey::stored("k".into());
        assert_eq!(json(connected(&key)), r#"{"type":"connected","data":{"sessionKey":"k"}}"#);
    }
}

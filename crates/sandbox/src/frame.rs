//! What a packet of a socket says, for a record.

use serde_json::{Map, Value};
use service::fault_points::Packet;

use crate::mask;

/// Maximum size of a packet whose payload is recorded, in bytes.
const PAYLOAD_BYTES_MAX: usize = 16 * 1024;

/// What a packet says: its `event`, and for an event its `payload`, its channel and the `type` of a SYSTEM
/// message. Secrets are masked.
pub(crate) fn describe(packet: Packet<'_>) -> Map<String, Value> {
    let mut fields = Map::new();
    match packet {
        Packet::Binary(bytes) => {
            fields.insert("event".to_owned(), "binary".into());
            fields.insert("bytes".to_owned(), bytes.into());
        }
        Packet::WebsocketClose => _ = fields.insert("event".to_owned(), "websocket-close".into()),
        Packet::Text(text) if text.len() <= PAYLOAD_BYTES_MAX => describe_text(text, &mut fields),
        Packet::Text(text) => {
            fields.insert("event".to_owned(), "large".into());
            fields.insert("bytes".to_owned(), text.len().into());
        }
    }
    fields
}

/// The names of the packets of Engine.IO, and below `4` those of Socket.IO.
fn name_of(text: &[u8]) -> (&'static str, usize) {
    match text {
        [b'0', ..] => ("open", 1),
        [b'1', ..] => ("close", 1),
        [b'2', ..] => ("ping", 1),
        [b'3', ..] => ("pong", 1),
        [b'5', ..] => ("upgrade", 1),
        [b'6', ..] => ("noop", 1),
        [b'4', b'0', ..] => ("connect", 2),
        [b'4', b'1', ..] => ("disconnect", 2),
        [b'4', b'2', ..] => ("event", 2),
        [b'4', b'4', ..] => ("error", 2),
        _ => ("unknown", 0),
    }
}

fn describe_text(text: &[u8], fields: &mut Map<String, Value>) {
    let (name, head) = name_of(text);
    let content = serde_json::from_slice::<Value>(&text[head..]).ok();
    let (name, payload) = match content {
        Some(Value::Array(mut arguments))
            if name == "event" && arguments.first().is_some_and(Value::is_string) =>
        {
            let payload = (arguments.len() > 1).then(|| opened(arguments.swap_remove(1)));
            let name = arguments.swap_remove(0);
            (name, payload)
        }
        content => (name.into(), content),
    };
    fields.insert("event".to_owned(), name);
    let Some(mut payload) = payload else { return };
    let of_data = |name: &str| payload.get(name).or_else(|| payload.get("data")?.get(name)).cloned();
    for name in ["type", "channelId"] {
        if let Some(value) = of_data(name).filter(Value::is_string) {
            fields.insert(name.to_owned(), value);
        }
    }
    mask::json(&mut payload);
    fields.insert("payload".to_owned(), payload);
}

/// The JSON inside a text of JSON.
fn opened(argument: Value) -> Value {
    let inner = argument.as_str().and_then(|text| serde_json::from_str(text).ok());
    inner.unwrap_or(argument)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packets_are_described_by_their_event_and_their_payload() {
        let chat = r#"42["CHAT","{\"channelId\":\"c\",\"content\":\"hi\"}"]"#;
        let subscribed = r#"42["SYSTEM","{\"type\":\"subscribed\",\"data\":{\"channelId\":\"c\"}}"]"#;
        for (text, expected) in [
            (
                chat,
                json!({ "event": "CHAT", "channelId": "c", "payload": { "channelId": "c", "content": "hi" } }),
            ),
            (
                subscribed,
                json!({ "event": "SYSTEM", "type": "subscribed", "channelId": "c",
                        "payload": { "type": "subscribed", "data": { "channelId": "c" } } }),
            ),
            (r#"42["x"]"#, json!({ "event": "x" })),
            (r#"42["x",1]"#, json!({ "event": "x", "payload": 1 })),
            (
                r#"0{"sid":"abcdefghijklmnopqrst"}"#,
                json!({ "event": "open", "payload": { "sid": "***qrst" } }),
            ),
            ("2", json!({ "event": "ping" })),
            ("3", json!({ "event": "pong" })),
            ("40", json!({ "event": "connect" })),
            ("41", json!({ "event": "disconnect" })),
            ("42[]", json!({ "event": "event", "payload": [] })),
            ("42", json!({ "event": "event" })),
            ("hello", json!({ "event": "unknown" })),
            ("", json!({ "event": "unknown" })),
        ] {
            assert_eq!(Value::Object(describe(Packet::Text(text.as_bytes()))), expected, "{text}");
        }
        let large = vec![b'4'; PAYLOAD_BYTES_MAX + 1];
        assert_eq!(describe(Packet::Text(&large))["event"], "large");
        assert_eq!(describe(Packet::Binary(3))["bytes"], 3);
    }
}

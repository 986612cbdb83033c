//! The records of the log that mention something.

use std::sync::Arc;

use serde_json::Value;

use crate::log::{Log, Record, RecordKind};

/// Maximum number of records of one explanation. The latest ones are kept.
const RECORDS_MAX: usize = 20;
/// A word in a longer text is looked for in these fields.
const TEXTS: [&str; 2] = ["reason", "message"];

/// The latest records that mention a text as a value, oldest first.
pub(crate) fn of(log: &Log, text: &str) -> Vec<Arc<Record>> {
    let mut found: Vec<_> = log
        .after(0)
        .into_iter()
        .rev()
        .filter(|record| record.fields.iter().any(|(name, value)| mentions(name, value, text)))
        .take(RECORDS_MAX)
        .collect();
    found.reverse();
    found
}

/// The name of the field under which a record has a text.
pub(crate) fn field(record: &Record, text: &str) -> Option<String> {
    record.fields.iter().find_map(|(name, value)| name_of(name, value, text))
}

fn name_of(name: &str, value: &Value, text: &str) -> Option<String> {
    match value {
        Value::String(own) => (own == text).then(|| name.to_owned()),
        Value::Array(values) => values.iter().find_map(|value| name_of(name, value, text)),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| name_of(name, value, text)),
        _ => None,
    }
}

fn mentions(name: &str, value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) if TEXTS.contains(&name) => own == text || own.split(';').next() == Some(text),
        _ => name_of(name, value, text).is_some(),
    }
}

/// An event that a record caused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CausedEvent {
    /// Its type.
    pub event_type: &'static str,
    /// Its channel.
    pub channel_id: String,
    /// The text of a chat message or a donation, if it was recorded.
    text: Option<String>,
}

/// The event that a trigger or a request caused.
pub(crate) fn caused_event(record: &Record) -> Option<CausedEvent> {
    let text = |name: &str| record.fields.get(name).and_then(Value::as_str);
    let in_body = |name: &str| record.fields.get("body").and_then(|body| body[name].as_str());
    let (event_type, channel_id) = match record.kind {
        RecordKind::Trigger => {
            let event_type = match text("trigger")? {
                "chat" => "CHAT",
                "donation" => "DONATION",
                "subscription" => "SUBSCRIPTION",
                _ => return None,
            };
            (event_type, text("channelId")?)
        }
        RecordKind::Request => {
            if record.fields.get("status").and_then(Value::as_u64) != Some(200) || text("method")? != "POST" {
                return None;
            }
            match text("path")?.split('/').skip(1).collect::<Vec<_>>()[..] {
                ["open", "v1", "chats", "send"] => ("CHAT", text("user")?),
                ["platform", "v1", "channels", channel, "chats"] => ("CHAT", channel),
                ["platform", "v1", "channels", channel, "donations"] => ("DONATION", channel),
                ["platform", "v1", "channels", channel, "subscriptions"] => ("SUBSCRIPTION", channel),
                _ => return None,
            }
        }
        _ => return None,
    };
    let own = |name: &str| text(name).or_else(|| in_body(name));
    let words = own("message").or_else(|| own("donationText")).map(str::to_owned);
    Some(CausedEvent { event_type, channel_id: channel_id.to_owned(), text: words })
}

/// The record of the event itself: of those that fit the nearest one.
pub(crate) fn sent(log: &Log, event: &CausedEvent, cause: u64) -> Option<Arc<Record>> {
    let fits = |record: &Arc<Record>| {
        let is = |name: &str, text: &str| record.fields.get(name).is_some_and(|value| value == text);
        let payload = record.fields.get("payload");
        let has_text = |text: &String| {
            ["content", "donationText"]
                .iter()
                .any(|name| payload.is_some_and(|payload| payload[*name] == **text))
        };
        record.kind == RecordKind::Event
            && is("event", event.event_type)
            && is("channelId", &event.channel_id)
            && event.text.as_ref().is_none_or(has_text)
    };
    log.after(0).into_iter().filter(fits).min_by_key(|record| record.mark.abs_diff(cause))
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::log::NewRecord;

    fn record(kind: RecordKind, fields: Value) -> Record {
        let fields = fields.as_object().expect("an object").clone();
        Record { mark: 1, at: Timestamp::from_millis(0), kind, fields }
    }

    #[test]
    fn a_value_is_found_at_any_depth_by_its_whole_text() {
        let record = record(
            RecordKind::Request,
            json!({ "requestId": "r1", "reason": "cap; limit=3", "answer": { "content": [{ "claimId": "c1" }] } }),
        );
        for (text, name) in
            [("r1", Some("requestId")), ("c1", Some("claimId")), ("r", None), ("claimId", None)]
        {
            assert_eq!(field(&record, text).as_deref(), name, "{text}");
        }
        assert!(record.fields.iter().any(|(name, value)| mentions(name, value, "cap")));
    }

    #[test]
    fn triggers_and_requests_cause_events() {
        let event = |event_type, channel: &str| {
            Some(CausedEvent { event_type, channel_id: channel.to_owned(), text: None })
        };
        for (kind, fields, expected) in [
            (RecordKind::Trigger, json!({ "trigger": "donation", "channelId": "a" }), event("DONATION", "a")),
            (RecordKind::Trigger, json!({ "trigger": "follow", "channelId": "a" }), None),
            (
                RecordKind::Request,
                json!({ "method": "POST", "path": "/open/v1/chats/send", "status": 200, "user": "b" }),
                event("CHAT", "b"),
            ),
            (
                RecordKind::Request,
                json!({ "method": "POST", "path": "/platform/v1/channels/c/donations", "status": 200 }),
                event("DONATION", "c"),
            ),
            (
                RecordKind::Request,
                json!({ "method": "POST", "path": "/open/v1/chats/send", "status": 403, "user": "b" }),
                None,
            ),
        ] {
            assert_eq!(caused_event(&record(kind, fields.clone())), expected, "{fields}");
        }
    }

    #[test]
    fn the_record_of_an_event_fits_its_cause() {
        let log = Log::default();
        let add = |kind, fields: Value| {
            let fields = fields.as_object().expect("an object").clone();
            log.add(NewRecord { at: Timestamp::from_millis(0), kind, fields })
        };
        let event = |text: &str| json!({ "event": "CHAT", "channelId": "a", "payload": { "content": text }, "sessions": [text] });
        let said = |text: &str| json!({ "trigger": "chat", "channelId": "a", "message": text });
        add(RecordKind::Event, event("one"));
        let cause = add(RecordKind::Trigger, said("one"));
        add(RecordKind::Event, event("two"));
        add(RecordKind::Event, event("one"));
        add(RecordKind::Event, event("one"));
        let found = |text: &str| {
            let record = record(RecordKind::Trigger, said(text));
            sent(&log, &caused_event(&record).expect("an event"), cause).map(|record| record.mark)
        };
        assert_eq!((found("one"), found("two"), found("three")), (Some(1), Some(3), None));
    }
}

//! A record of the log as a row of the console.

use askama::Template;
use domain::Language;
use serde_json::{Map, Value};

use super::korean::in_language;
use super::texts::Texts;
use crate::log::{Record, RecordKind};

/// Maximum number of rows that are shown at once. Of more records the newest are shown.
pub(super) const ROWS_MAX: usize = 100;
/// Maximum length of the JSON of a row, in bytes.
const JSON_BYTES_MAX: usize = 8 * 1024;
/// Maximum length of the summary of a row, in characters.
const SUMMARY_CHARS_MAX: usize = 160;
/// The first refused status.
const REFUSED: u64 = 400;

/// The rows of records, newest first.
#[derive(Template)]
#[template(path = "console/records.html")]
pub(super) struct Rows {
    pub t: &'static Texts,
    pub rows: Vec<RecordRow>,
    /// Number of records that are left out, because they were too many.
    pub skipped: usize,
}

/// A record in short.
pub(super) struct RecordRow {
    pub mark: u64,
    pub at: String,
    /// The time without its year.
    pub short_at: String,
    pub kind: &'static str,
    /// The kind in the language of the page.
    pub kind_label: &'static str,
    pub what: String,
    pub tags: Vec<String>,
    /// Whether it is a refusal, a failure or a fault.
    pub is_bad: bool,
    /// The address in a message to a person, which nothing else sends.
    pub link: Option<String>,
    pub json: String,
}

/// The name of a kind of records.
pub(super) const fn kind_name(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Request => "request",
        RecordKind::Event => "event",
        RecordKind::Frame => "frame",
        RecordKind::Delivery => "delivery",
        RecordKind::Mail => "mail",
        RecordKind::Due => "due",
        RecordKind::Clock => "clock",
        RecordKind::Trigger => "trigger",
        RecordKind::Fault => "fault",
    }
}

impl RecordRow {
    pub fn of(record: &Record, language: Language) -> Self {
        let kind = kind_name(record.kind);
        let (what, tags, is_bad) = summary(record);
        let at = record.at.rfc3339();
        let mut json = serde_json::to_string_pretty(record).unwrap_or_default();
        if json.len() > JSON_BYTES_MAX {
            let end = json.floor_char_boundary(JSON_BYTES_MAX);
            json.truncate(end);
            json.push('…');
        }
        Self {
            mark: record.mark,
            short_at: short_time(&at),
            at,
            kind,
            kind_label: in_language(language, kind),
            what: shortened(&what),
            tags,
            is_bad,
            link: link(record),
            json,
        }
    }
}

/// The address in a message to a person.
fn link(record: &Record) -> Option<String> {
    let link = record.fields.get("link").filter(|_| record.kind == RecordKind::Mail)?.as_str()?;
    let is_web = link.starts_with("http://") || link.starts_with("https://");
    is_web.then(|| link.to_owned())
}

/// `11-25 09:30:00` of `2026-11-25T09:30:00.000Z`.
pub(super) fn short_time(at: &str) -> String {
    at.get(5..19).unwrap_or(at).replace('T', " ")
}

/// The text with an ellipsis in place of an end that is too long.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SUMMARY_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What happened, facts beside it, and whether it is bad.
fn summary(record: &Record) -> (String, Vec<String>, bool) {
    let fields = &record.fields;
    let text = |name: &str| fields.get(name).map(plain).unwrap_or_default();
    match record.kind {
        RecordKind::Request => {
            let refused = fields.get("status").and_then(Value::as_u64).is_none_or(|status| status >= REFUSED);
            let status = if fields.contains_key("status") { text("status") } else { "✕".to_owned() };
            let tags = [status, text("reason"), text("user"), text("clientId"), text("fault")];
            (format!("{} {}", text("method"), text("path")), present(tags), refused)
        }
        RecordKind::Mail => (format!("{} → {}", text("mail"), text("to")), present([text("link")]), false),
        RecordKind::Due => (text("what"), rest(fields, &["what"]), false),
        RecordKind::Trigger => {
            const OMITTED: [&str; 4] = ["trigger", "chatChannelId", "messageId", "messageTime"];
            (text("trigger"), rest(fields, &OMITTED), false)
        }
        RecordKind::Event => {
            let missed = fields.get("missed").and_then(Value::as_array).map_or(0, Vec::len);
            let tags = [text("channelId"), format!("✓ {}", text("delivered")), format!("✗ {missed}")];
            (text("event"), present(tags), false)
        }
        RecordKind::Fault => {
            let effect = fields.get("do").map(plain).unwrap_or_default();
            let tags = present([text("fault"), text("user"), text("clientId")]);
            (format!("{effect} · {} {}", text("method"), text("path")).trim().to_owned(), tags, true)
        }
        RecordKind::Frame | RecordKind::Delivery | RecordKind::Clock => {
            let names =
                ["what", "event", "eventType", "type", "outcome", "result", "mode", "direction", "name"];
            let what = names.iter().filter_map(|name| fields.get(*name)).map(plain).collect::<Vec<_>>();
            let is_bad = ["reason", "failure", "fault"]
                .iter()
                .any(|name| fields.get(*name).is_some_and(|v| !v.is_null()));
            (what.join(" "), rest(fields, &names), is_bad)
        }
    }
}

/// The other facts in short: the first ones that are neither objects nor lists.
fn rest(fields: &Map<String, Value>, used: &[&str]) -> Vec<String> {
    const TAGS_MAX: usize = 4;
    let others = fields.iter().filter(|(name, value)| {
        !used.contains(&name.as_str()) && !value.is_object() && !value.is_array() && !value.is_null()
    });
    others.take(TAGS_MAX).map(|(name, value)| shortened(&format!("{name} {}", plain(value)))).collect()
}

fn present(tags: impl IntoIterator<Item = String>) -> Vec<String> {
    tags.into_iter().filter(|tag| !tag.is_empty()).collect()
}

/// A value as text.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_message_to_a_person_has_a_link_and_only_to_a_web_page() {
        for (kind, link, expected) in [
            (
                RecordKind::Mail,
                json!("http://127.0.0.1:1/reset?token=a"),
                Some("http://127.0.0.1:1/reset?token=a"),
            ),
            (RecordKind::Mail, json!("javascript:alert(1)"), None),
            (RecordKind::Mail, json!(null), None),
            (RecordKind::Event, json!("https://evil.example/"), None),
        ] {
            let fields = Map::from_iter([("link".to_owned(), link)]);
            let record = Record { mark: 1, at: Timestamp::from_millis(0), kind, fields };
            assert_eq!(RecordRow::of(&record, Language::English).link.as_deref(), expected);
        }
    }
}

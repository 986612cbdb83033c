//! A channel's events and sessions: what each session received, and why it did not.

use askama::Template;
use domain::Language;
use serde_json::Value;

use super::korean::reason;
use super::record::{plain, short_time, shortened};
use super::texts::Texts;
use super::view::View;
use crate::log::{Log, Record, RecordKind};
use crate::overview::{Overview, SessionEntry};

/// Maximum number of shown events.
const EVENTS_MAX: usize = 30;
/// Number of the latest records in which events are looked for.
const RECORDS_SEARCHED: u64 = 1_000;
/// Number of shown characters of a session's key.
const KEY_CHARS: usize = 8;

#[derive(Template)]
#[template(path = "console/chat.html")]
pub(super) struct Chat {
    t: &'static Texts,
    sessions: Vec<SessionView>,
    events: Vec<EventView>,
}

struct SessionView {
    key: String,
    client_id: String,
    user: String,
    /// The subscribed events of the channel.
    events: Vec<&'static str>,
    /// Why the session ended.
    ended: Option<String>,
    since: String,
    /// What the session received last of the channel, and when.
    received: Option<(String, String)>,
    /// Why the session missed the last event that it did not receive.
    missed: Option<String>,
}

struct EventView {
    at: String,
    name: String,
    who: String,
    text: String,
    /// The sessions that received it.
    received: Vec<String>,
    /// The sessions that did not, and why.
    missed: Vec<(String, String)>,
}

impl Chat {
    pub fn of(t: &'static Texts, overview: &Overview, log: &Log, view: &View) -> Self {
        let language = view.language;
        let channel = channel_of(overview, view);
        let records = log.after(log.mark().saturating_sub(RECORDS_SEARCHED));
        let events: Vec<&Record> = records
            .iter()
            .rev()
            .map(AsRef::as_ref)
            .filter(|record| {
                record.kind == RecordKind::Event && record.fields.get("channelId") == Some(&channel.into())
            })
            .take(EVENTS_MAX)
            .collect();
        Self {
            t,
            sessions: overview
                .sessions
                .iter()
                .map(|session| session_view(t, language, session, channel, &events))
                .collect(),
            events: events.iter().map(|record| event_view(language, record, overview)).collect(),
        }
    }
}

/// The chosen channel, or that of the first person.
fn channel_of<'a>(overview: &'a Overview, view: &'a View) -> &'a str {
    let first = || overview.people.first().map_or("", |person| person.channel_id.as_str());
    if view.channel.is_empty() { first() } else { &view.channel }
}

/// A session, with what the events say of it. The newest event is first.
fn session_view(
    t: &'static Texts,
    language: Language,
    session: &SessionEntry,
    channel: &str,
    events: &[&Record],
) -> SessionView {
    let key = session.session_key.as_str();
    let of_channel = session.subscribed_events.iter().filter(|event| event.channel_id.as_str() == channel);
    let last = events.iter().find(|record| received(record).any(|receiver| receiver == key));
    let missed = events.first().and_then(|record| {
        let of_session = missed(record).find(|missed| missed["session"] == key)?;
        Some(reason(language, &plain(&of_session["why"])))
    });
    SessionView {
        key: key.to_owned(),
        client_id: session.client_id.clone(),
        user: session.channel_id.clone().unwrap_or_else(|| t.of_application.to_owned()),
        events: of_channel.map(|event| event.event_type.name()).collect(),
        ended: session.disconnected_at.map(|_| session.close_reason.clone().unwrap_or_default()),
        since: short_time(&session.connected_at.rfc3339()),
        received: last.map(|record| (field(record, "event"), short_time(&record.at.rfc3339()))),
        missed,
    }
}

fn event_view(language: Language, record: &Record, overview: &Overview) -> EventView {
    let label = |key: &str| {
        let known = overview.sessions.iter().find(|session| session.session_key == key);
        let owner = known.map(|session| session.channel_id.as_deref().unwrap_or(&session.client_id));
        let short: String = key.chars().take(KEY_CHARS).collect();
        owner.map_or(short.clone(), |owner| format!("{owner} · {short}"))
    };
    let (who, text) = content(record.fields.get("payload").unwrap_or(&Value::Null));
    EventView {
        at: short_time(&record.at.rfc3339()),
        name: field(record, "event"),
        who,
        text: shortened(&text),
        received: received(record).map(label).collect(),
        missed: missed(record)
            .map(|missed| (label(&plain(&missed["session"])), reason(language, &plain(&missed["why"]))))
            .collect(),
    }
}

/// Who caused an event, and what it says.
fn content(payload: &Value) -> (String, String) {
    let text = |name: &str| payload.get(name).map(plain).unwrap_or_default();
    let name = ["donatorNickname", "subscriberNickname"].into_iter().map(text).find(|name| !name.is_empty());
    let who = name.unwrap_or_else(|| plain(&payload["profile"]["nickname"]));
    let parts = ["content", "payAmount", "donationText", "tierName", "month"];
    let parts: Vec<String> = parts.into_iter().map(text).filter(|part| !part.is_empty()).collect();
    (who, parts.join(" · "))
}

fn field(record: &Record, name: &str) -> String {
    record.fields.get(name).map(plain).unwrap_or_default()
}

fn received(record: &Record) -> impl Iterator<Item = &str> {
    record.fields.get("sessions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn missed(record: &Record) -> impl Iterator<Item = &Value> {
    record.fields.get("missed").and_then(Value::as_array).into_iter().flatten()
}

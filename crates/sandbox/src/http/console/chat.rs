//! A channel's sessions: what each is subscribed to, what it received last, and why it receives nothing.

use askama::Template;
use serde_json::Value;

use super::record::short_time;
use super::texts::Texts;
use super::view::View;
use crate::log::Log;
use crate::overview::{Overview, SessionEntry};

#[derive(Template)]
#[template(path = "console/chat.html")]
pub(super) struct Chat {
    t: &'static Texts,
    sessions: Vec<SessionView>,
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
}

impl Chat {
    pub fn of(
        t: &'static Texts,
        overview: &Overview,
        _log: &Log,
        view: &View,
        _faults: Option<&Value>,
    ) -> Self {
        let channel = channel_of(overview, view);
        let session = |session: &SessionEntry| {
            let of_channel =
                session.subscribed_events.iter().filter(|event| event.channel_id.as_str() == channel);
            SessionView {
                key: session.session_key.clone(),
                client_id: session.client_id.clone(),
                user: session.channel_id.clone().unwrap_or_else(|| t.of_application.to_owned()),
                events: of_channel.map(|event| event.event_type.name()).collect(),
                ended: session.disconnected_at.map(|_| session.close_reason.clone().unwrap_or_default()),
                since: short_time(&session.connected_at.rfc3339()),
            }
        };
        Self { t, sessions: overview.sessions.iter().map(session).collect() }
    }
}

/// The chosen channel, or that of the first person.
fn channel_of<'a>(overview: &'a Overview, view: &'a View) -> &'a str {
    let first = || overview.people.first().map_or("", |person| person.channel_id.as_str());
    if view.channel.is_empty() { first() } else { &view.channel }
}

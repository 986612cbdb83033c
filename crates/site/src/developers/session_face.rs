//! How sessions of an application are shown.

use std::collections::HashMap;

use domain::ChannelId;
use domain::refusal::Cap;
use domain::session::{SessionDetails, SessionOwner, Subscription};
use service::application_sessions::SessionContext;
use web::Visitor;
use web::pages::Moment;

use super::close_words::close_words;
use super::frame::address;

/// A session on a page.
#[derive(Debug)]
pub(super) struct SessionFace {
    pub key: String,
    pub href: String,
    /// The user; `None` for a session of the application itself.
    pub user: Option<ChannelFace>,
    /// The connected sessions that count together with it, and how many there may be.
    pub connected: i64,
    pub connected_max: i64,
    pub since: Moment,
    pub ended: Option<Moment>,
    pub close_reason: String,
    pub close_words: &'static str,
    pub node: String,
    /// `websocket` or `polling`, and the last sign of life. Only for a session of the node that shows it.
    pub connection: Option<(&'static str, Moment)>,
    pub events: Vec<EventFace>,
    pub events_max: i64,
}

/// A channel on a page.
#[derive(Debug)]
pub(super) struct ChannelFace {
    pub id: String,
    /// The name; the id of a channel that is gone.
    pub name: String,
}

/// A subscription on a page.
#[derive(Debug)]
pub(super) struct EventFace {
    pub event: &'static str,
    pub channel: ChannelFace,
}

impl SessionFace {
    pub(super) async fn of(visitor: &Visitor, details: &SessionDetails, context: &SessionContext) -> Self {
        let (now, lang) = (visitor.now(), visitor.lang());
        let moment = |at| Moment::of(at, now, lang);
        let client_id = details.owner.client_id().as_str();
        let key = details.session_key.as_str();
        let reason = details.close_reason.clone().unwrap_or_default();
        let channel = |id| ChannelFace::of(id, &context.names);
        Self {
            key: key.to_owned(),
            href: address(client_id, &format!("/sessions/{key}")),
            user: details.owner.channel_id().map(channel),
            connected: context.connected_of(&details.owner),
            connected_max: details.owner.sessions_max(),
            since: moment(details.connected_at),
            ended: details.disconnected_at.map(moment),
            close_words: close_words(&reason, lang),
            close_reason: reason,
            node: details.node_id.to_string(),
            connection: connection(visitor, details).await,
            events: details
                .subscribed_events
                .iter()
                .map(|Subscription { event_type, channel_id }| EventFace {
                    event: event_type.name(),
                    channel: channel(channel_id),
                })
                .collect(),
            events_max: Cap::Subscriptions.limit(),
        }
    }
}

impl ChannelFace {
    fn of(id: &ChannelId, names: &HashMap<ChannelId, String>) -> Self {
        let name = names.get(id).cloned().unwrap_or_else(|| id.to_string());
        Self { id: id.to_string(), name }
    }
}

/// The connection of a session to this node.
async fn connection(visitor: &Visitor, details: &SessionDetails) -> Option<(&'static str, Moment)> {
    let (web, now) = (visitor.web(), visitor.now());
    let is_here = details.disconnected_at.is_none() && details.node_id == *web.service().node();
    if !is_here {
        return None;
    }
    let found = web.node().connection(&details.session_key).await?;
    let silent_ms = i64::try_from(found.silent_for.as_millis()).unwrap_or(i64::MAX);
    // A clock that moved since makes no sign of life older than the session.
    let heard_at = now.plus_ms(-silent_ms).max(details.connected_at);
    Some((found.transport, Moment::of(heard_at, now, visitor.lang())))
}

/// The names of the channels of these sessions, and the connected sessions of their owners and of `itself`.
pub(super) async fn context_of(
    visitor: &Visitor,
    sessions: &[&SessionDetails],
    itself: &SessionOwner,
) -> Result<SessionContext, service::Error> {
    let events = |session: &SessionDetails| -> Vec<ChannelId> {
        session.subscribed_events.iter().map(|event| event.channel_id.clone()).collect()
    };
    let channels = sessions
        .iter()
        .flat_map(|session| events(session).into_iter().chain(session.owner.channel_id().cloned()))
        .collect();
    let owners = sessions.iter().map(|session| session.owner.clone()).chain([itself.clone()]).collect();
    visitor.web().service().session_context(channels, owners).await
}

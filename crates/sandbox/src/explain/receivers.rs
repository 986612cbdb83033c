//! Which sessions an event was for, and why the others did not receive it.

use domain::Timestamp;
use domain::session::SessionDetails;
use schemars::JsonSchema;
use serde::Serialize;
use service::{Error, Service, SessionFilter};

use super::mentions::CausedEvent;

/// Maximum number of sessions, newest first.
const SESSIONS_MAX: i64 = 50;

/// A session and an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Receiver {
    session_key: String,
    client_id: String,
    /// The user; not given for a session of the application.
    channel_id: Option<String>,
    /// Whether the event was for this session.
    is_subscribed: bool,
    /// Why, or why not.
    why: String,
}

/// The newest sessions with their relation to an event of that time.
///
/// # Errors
/// The store fails.
pub(crate) async fn of(
    service: &Service,
    event: &CausedEvent,
    at: Timestamp,
) -> Result<Vec<Receiver>, Error> {
    let page = service.list_sessions(SessionFilter::default(), SESSIONS_MAX, None).await?;
    Ok(page.sessions.iter().map(|session| receiver(session, event, at)).collect())
}

fn receiver(session: &SessionDetails, event: &CausedEvent, at: Timestamp) -> Receiver {
    let CausedEvent { event_type, channel_id } = event;
    let has = session.subscribed_events.iter().any(|subscription| {
        subscription.event_type.name() == *event_type && subscription.channel_id.as_str() == channel_id
    });
    let of_another = session.owner.channel_id().filter(|owner| owner.as_str() != channel_id);
    let (is_subscribed, why) = match session.disconnected_at {
        _ if at < session.connected_at => (false, "it was connected later".to_owned()),
        Some(ended) if ended <= at => {
            let reason = session.close_reason.as_deref().unwrap_or("unknown");
            (false, format!("it had ended: {reason}"))
        }
        _ if has => (true, format!("it has the subscription {event_type} of {channel_id}")),
        _ => match of_another {
            Some(owner) => {
                (false, format!("it is a session of {owner}, and receives only events of that channel"))
            }
            None => (false, format!("it has no subscription {event_type} of {channel_id}")),
        },
    };
    Receiver {
        session_key: session.session_key.to_string(),
        client_id: session.owner.client_id().to_string(),
        channel_id: session.owner.channel_id().map(ToString::to_string),
        is_subscribed,
        why,
    }
}

//! Which sessions an event was for, and why the others did not receive it.

use domain::Timestamp;
use domain::session::SessionDetails;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use service::{Error, Service, SessionFilter};

use super::mentions::CausedEvent;
use crate::log::Record;

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
    /// Whether the event was sent to this session.
    received: bool,
    /// Why, or why not.
    why: String,
}

/// The newest sessions with their relation to an event of that time. `sent` is the record of the event, which
/// knows best.
///
/// # Errors
/// The store fails.
pub(crate) async fn of(
    service: &Service,
    event: &CausedEvent,
    at: Timestamp,
    sent: Option<&Record>,
) -> Result<Vec<Receiver>, Error> {
    let page = service.list_sessions(SessionFilter::default(), SESSIONS_MAX, None).await?;
    let mut receivers: Vec<Receiver> =
        page.sessions.iter().map(|session| receiver(session, event, at)).collect();
    if let Some(sent) = sent {
        receivers.iter_mut().for_each(|receiver| correct(receiver, sent));
    }
    Ok(receivers)
}

/// Takes over what the record of the event says of a session.
fn correct(receiver: &mut Receiver, sent: &Record) {
    let list = |name: &str| sent.fields.get(name).and_then(Value::as_array).into_iter().flatten();
    if !receiver.received && list("sessions").any(|key| *key == *receiver.session_key) {
        (receiver.received, receiver.why) = (true, "it was sent".to_owned());
    }
    if let Some(missed) = list("missed").find(|missed| missed["session"] == *receiver.session_key) {
        let why = missed["why"].as_str().unwrap_or("it was not sent");
        (receiver.received, receiver.why) = (false, why.to_owned());
    }
}

fn receiver(session: &SessionDetails, event: &CausedEvent, at: Timestamp) -> Receiver {
    let CausedEvent { event_type, channel_id, .. } = event;
    let has = session.subscribed_events.iter().any(|subscription| {
        subscription.event_type.name() == *event_type && subscription.channel_id.as_str() == channel_id
    });
    let of_another = session.owner.channel_id().filter(|owner| owner.as_str() != channel_id);
    let (received, why) = match session.disconnected_at {
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
        received,
        why,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::log::RecordKind;

    #[test]
    fn the_record_of_an_event_corrects_what_is_assumed() {
        let fields = json!({ "sessions": ["s1"], "missed": [{ "session": "s2", "why": "dropped by f1" }] });
        let fields = fields.as_object().expect("an object").clone();
        let sent = Record { mark: 1, at: Timestamp::from_millis(0), kind: RecordKind::Event, fields };
        for (key, assumed, received, why) in [
            ("s1", false, true, "it was sent"),
            ("s2", true, false, "dropped by f1"),
            ("s3", true, true, "assumed"),
        ] {
            let mut receiver = Receiver {
                session_key: key.to_owned(),
                client_id: "demo".to_owned(),
                channel_id: None,
                received: assumed,
                why: "assumed".to_owned(),
            };
            correct(&mut receiver, &sent);
            assert_eq!((receiver.received, receiver.why.as_str()), (received, why), "{key}");
        }
    }
}

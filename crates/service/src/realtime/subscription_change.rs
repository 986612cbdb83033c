//! A change of a session's subscriptions that shares a transaction with others.

use domain::SessionKey;
use domain::event::EventType;
use domain::session::ChangeKind;
use domain::token::Caller;

/// A change of a session's subscriptions that a caller asks for.
#[derive(Clone)]
pub(crate) struct SubscriptionChange {
    /// The caller, whose channel it is about.
    pub caller: Caller,
    /// The session.
    pub session_key: SessionKey,
    /// The kind of event.
    pub event: EventType,
    /// Whether the session subscribes or unsubscribes.
    pub kind: ChangeKind,
}

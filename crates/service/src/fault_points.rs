//! The fault point of sockets: the gateway reports the sessions of its node to a sandbox, and the sandbox
//! chooses an action for each message. `stagedoor serve` has none.

use std::fmt::Debug;
use std::time::Duration;

use domain::SessionKey;
use domain::event::Event;
use domain::session::{SessionChange, SessionOwner};

/// Receives reports about the sessions of a node, and chooses an action for each message. The gateway calls
/// these functions while it holds a session's lock, so no function waits or calls the gateway.
pub trait SocketFaultPoint: Debug + Send + Sync {
    /// A session has opened. Its messages follow.
    fn on_open(&self, session: &SessionKey, owner: &SessionOwner);

    /// An event is about to be sent to its subscribers. Returns an action for each of them, in their order.
    fn on_event(&self, event: &Event, subscribers: &[SessionKey]) -> Vec<MessageAction>;

    /// A SYSTEM message is about to be sent to a session.
    fn on_system(&self, session: &SessionKey, message: SystemMessage<'_>) -> MessageAction;

    /// A packet is sent to a session, or has arrived from it.
    fn on_packet(&self, session: &SessionKey, direction: Direction, packet: Packet<'_>);

    /// How long the network holds bytes back on their way to a session or from it. Later bytes of the same
    /// way do not overtake them.
    fn latency(&self, session: &SessionKey) -> Option<Duration>;

    /// A reordered message is sent now, because no other message came in time.
    fn on_wait_over(&self, session: &SessionKey);

    /// A session has ended, for the reason of this name.
    fn on_end(&self, session: &SessionKey, reason: &'static str);
}

/// A SYSTEM message.
#[derive(Clone, Copy, Debug)]
pub enum SystemMessage<'a> {
    /// The first message of a session.
    Connected,
    /// A change of the session's subscriptions.
    Changed(&'a SessionChange),
}

/// The way of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the service to the client.
    ToClient,
    /// From the client to the service.
    FromClient,
}

/// A packet of Engine.IO, or a control frame of the client's websocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A text packet.
    Text(&'a [u8]),
    /// A binary packet, by its length in bytes.
    Binary(usize),
    /// A close frame.
    WebsocketClose,
}

/// What happens to a message on its way to one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageAction {
    /// It is sent.
    Send,
    /// It is not sent.
    Drop,
    /// It is sent twice.
    Duplicate,
    /// It is sent after the session's next message, or after this time if none comes.
    Reorder(Duration),
    /// It is sent after this time. Later messages overtake it.
    Late(Duration),
    /// Nothing is sent any more, and nothing that arrives is read. The connection stays.
    Silence,
    /// The session ends instead, for the close reason of this name.
    Close(&'static str),
    /// The connection is lost without a close frame, before the message is sent.
    CutBefore,
    /// The connection is lost without a close frame, after the message was sent.
    CutAfter,
}

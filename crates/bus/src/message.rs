//! The messages of the bus, and their deliveries.

use std::sync::Arc;

use domain::event::Event;
use domain::session::SessionChange;
use domain::{ChannelId, NodeId, SessionKey, Timestamp};
use serde::{Deserialize, Serialize};

/// A committed fact. Between nodes it travels in the encoding of `wire.rs`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Something that happened on a channel.
    Event(Arc<Event>),
    /// A change of a session's subscriptions. The node of the session need not read it in the store, unless
    /// the session misses the version before it.
    SessionChanged {
        /// The node that has the session's socket.
        node: NodeId,
        /// The session.
        session_key: SessionKey,
        /// The change.
        change: SessionChange,
    },
    /// The operator ended a session. The session's node would find that in the store later.
    SessionEvicted {
        /// The node that has the session's socket.
        node: NodeId,
        /// The session.
        session_key: SessionKey,
    },
    /// The other nodes declared a node dead, because its heartbeat was missing, and ended its sessions in the
    /// store. The node itself finds that out with its next heartbeat. It finds out sooner from this message,
    /// if it cannot reach the store but can reach the bus.
    NodeDeclaredDead {
        /// The node.
        node: NodeId,
    },
}

impl Message {
    /// The channel of an event.
    pub fn channel(&self) -> Option<&ChannelId> {
        match self {
            Self::Event(event) => Some(&event.channel_id),
            Self::SessionChanged { .. } | Self::SessionEvicted { .. } | Self::NodeDeclaredDead { .. } => None,
        }
    }
}

/// A delivery to a subscriber.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// A message.
    Message(Message),
    /// Events of this channel arrived and could not be decoded.
    Lost(ChannelId),
    /// Messages of any kind may have been lost since this time.
    Gap {
        /// Every message published up to this time is known to have arrived, by this node's clock.
        since: Timestamp,
    },
}

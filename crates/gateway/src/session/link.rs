//! The link of a session to its peer.

use bytes::Bytes;
use socketio::Decoder;
use tokio::net::TcpStream;

use super::polling::Polling;

/// The transports, with their names in the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Long polling.
    Polling,
    /// A websocket, from the beginning or since its upgrade.
    Websocket,
}

impl Transport {
    /// The transport's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Polling => "polling",
            Self::Websocket => "websocket",
        }
    }
}

/// The link to the peer, over one of the transports.
pub(super) enum Link {
    /// The websocket is being upgraded.
    Opening,
    Websocket(WebsocketIo),
    Polling(Box<Polling>),
    /// The session has ended and released its peer.
    Gone,
}

/// A TCP stream after the websocket handshake, and its decoder.
pub(super) struct WebsocketIo {
    pub(super) stream: TcpStream,
    pub(super) decoder: Decoder,
}

/// The TCP stream of an upgraded connection, without the buffers of HTTP.
pub(crate) struct RawStream {
    pub(crate) stream: TcpStream,
    /// Bytes that must be written first.
    pub(crate) held: Vec<u8>,
    /// Bytes that were already read.
    pub(crate) read: Bytes,
}

impl Link {
    pub(super) fn transport(&self) -> Option<Transport> {
        match self {
            Self::Websocket(_) => Some(Transport::Websocket),
            Self::Polling(_) => Some(Transport::Polling),
            Self::Opening | Self::Gone => None,
        }
    }

    pub(super) fn polling(&mut self) -> Option<&mut Polling> {
        match self {
            Self::Polling(polling) => Some(polling),
            Self::Opening | Self::Websocket(_) | Self::Gone => None,
        }
    }

    pub(super) fn websocket(&mut self) -> Option<&mut WebsocketIo> {
        match self {
            Self::Websocket(socket) => Some(socket),
            Self::Opening | Self::Polling(_) | Self::Gone => None,
        }
    }

    /// The stream of a websocket.
    pub(super) fn stream(&self) -> Option<&TcpStream> {
        match self {
            Self::Websocket(socket) => Some(&socket.stream),
            Self::Opening | Self::Polling(_) | Self::Gone => None,
        }
    }
}

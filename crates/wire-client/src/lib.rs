//! HTTP/1.1 and websockets (RFC 6455) from a client's side: bytes in, bytes out. For tests and the load
//! program, which share it with each other and nothing with the server.
//!
//! - [`Head`]: reads the head of an answer.
//! - [`handshake`] asks for a websocket, [`check_handshake`] judges the answer.
//! - [`Frame`] and [`Frames`] read what a server sends. A frame that the service must not send is a
//!   [`BadFrame`].
//! - [`frame`] and [`text`] write what a client sends. The first byte is the caller's, so a test can break
//!   every rule.

mod frame;
mod handshake;
mod head;

pub use frame::{BINARY, BadFrame, CLOSE, Frame, Frames, PING, PONG, TEXT, frame, frame_with_mask, text};
pub use handshake::{HANDSHAKE_HEADERS, check_handshake, handshake};
pub use head::{BadHead, HEAD_BYTES_MAX, Head};

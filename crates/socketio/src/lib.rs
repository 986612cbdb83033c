//! Engine.IO and Socket.IO for a server of events: bytes in, bytes out.
//!
//! This crate has no socket, no timer, no task and no clock. A gateway reads and writes; this crate decodes
//! the bytes, and returns the answers and the time of the next call. So tests can cover the protocol to the
//! last byte, and an idle session costs 72 bytes: a [`Session`] and a websocket [`Decoder`], neither of which
//! holds a buffer.
//!
//! # Map
//!
//! | Layer | Module | Content |
//! |---|---|---|
//! | websocket | [`websocket`] | RFC 6455: accept key, client frames in, pong and close out |
//! | long polling | [`payload`] | three framings of several packets in one HTTP body |
//! | Engine.IO | [`engine`] | revisions 2 to 4, packet types, the `0{…}` packet |
//! | upgrade | [`upgrade`] | `2probe`, `3probe`, `5` |
//! | Socket.IO | [`packet`] | `40`, `41`, `42[…]`, `44…` |
//! | session | [`session`] | pings, permitted packets, flood limits |
//! | – | [`frame`] | [`Frame`]: a packet encoded once for all its receivers |
//! | – | [`close`] | [`CloseReason`]: every way a session can end |
//!
//! The differences of the three revisions:
//!
//! | | `EIO=2`, `EIO=3` | `EIO=4` |
//! |---|---|---|
//! | Clients | Socket.IO 1.x, 2.x | Socket.IO 3.x, 4.x |
//! | Root namespace | server sends `40` at once | client asks with `40`, gets `40{"sid":…}` |
//! | Ping | client `2`, server `3`, with the same data | server `2`, client `3` |
//! | Closed as silent | after interval + timeout without any packet | after timeout without a `3` |
//! | Poll bodies | binary framing, or text with `b64=1` | packets separated by `1e` |
//! | Stray packets | ignored and counted | end the session |
//!
//! Everything sent is ASCII (see [`packet::event`]), because clients disagree on the length of other text.
//! Events from clients are ignored and count against the flood limit. Stray packets (a `0{}`, a `5`,
//! unannounced binary packets, events that are not JSON) are treated as the reference server of each revision
//! treats them.
//!
//! # Walk-through: one websocket session
//!
//! ```
//! use socketio::{CloseReason, Decoder, Event, Frame, Open};
//! use socketio::{Revision, Session, Signal, Timing, packet, websocket};
//!
//! let mut queue: Vec<Frame> = Vec::new();
//! let mut now = 0; // milliseconds on the gateway's monotonic clock
//!
//! // The client came with EIO=3: it gets its sid and enters the root namespace.
//! let open = Open {
//!     revision: Revision::from_query("3").unwrap(),
//!     sid: "s1",
//!     may_upgrade: false,
//!     timing: Timing::default(),
//!     max_payload: websocket::DEFAULT_MAX_MESSAGE_BYTES,
//! };
//! let mut session = Session::open(&open, now, |frame| queue.push(frame));
//! assert!(session.is_connected());
//! assert_eq!(queue[1].packet(), b"40");
//!
//! // An event is encoded once. Every session that receives it clones the frame and shares its bytes.
//! let event = packet::event("SYSTEM", &std::collections::BTreeMap::from([("type", "connected")]));
//! queue.push(event.clone());
//!
//! // Bytes arrive: a masked text frame `2`, in a scratch buffer that all sessions of a thread share.
//! now += 25_000;
//! let mut decoder = Decoder::new(websocket::DEFAULT_MAX_MESSAGE_BYTES);
//! let mut scratch = *b"\x81\x81\x01\x02\x03\x04\x33";
//! decoder.decode(&mut scratch, |event| match event {
//!     Event::Text(text) => match session.on_packet(now, open.sid, text, |frame| queue.push(frame))? {
//!         Signal::Connected | Signal::Nothing => Ok(()),
//!     },
//!     Event::Binary(data) => session.on_binary(now, open.sid, data, |frame| queue.push(frame)),
//!     Event::Ping(_) | Event::Pong => session.on_websocket_control(now),
//!     Event::Close(_) => Err(CloseReason::ClientGoodbye),
//! })?;
//! assert_eq!(queue.last().unwrap().packet(), b"3");
//! assert_eq!(decoder.heap_bytes(), 0);
//!
//! // The client stays silent. The gateway calls at the deadline, and the session ends.
//! assert_eq!(session.deadline(), 25_000 + 85_000);
//! let over = session.on_tick(session.deadline(), |frame| queue.push(frame));
//! assert_eq!(over, Err(CloseReason::PingTimeout));
//! # Ok::<(), CloseReason>(())
//! ```

pub mod close;
pub mod engine;
pub mod frame;
mod json;
pub mod packet;
pub mod payload;
pub mod session;
pub mod upgrade;
pub mod websocket;

pub use close::CloseReason;
pub use engine::{Millis, Open, Revision, Timing};
pub use frame::Frame;
pub use payload::Framing;
pub use session::{Session, Signal};
pub use upgrade::Upgrade;
pub use websocket::{Decoder, Event};

//! The sockets of one node: handshakes, long polling, websockets, and the fan-out of events from the bus.
//!
//! The `socketio` crate has the protocol, and the `service` crate has the rules. This crate has sockets,
//! queues and deadlines.
//!
//! # Map
//!
//! A module uses only modules above it.
//!
//! | Module | What it does |
//! |---|---|
//! | `config`, `metrics` | every limit, with its unit; counters |
//! | `context`, `panics` | the shared service, configuration and counters; containment of panics |
//! | `session` | the state under the session's lock: protocol, link, bounded send queue |
//! | `fanout` | the shards: subscriptions, changes in order, events encoded once and batched (pacing) |
//! | `node` | the registry; the dispatcher of the bus; lost events, reconciliation, ends of sessions, drain |
//! | `http` | requests: query, websocket handshake, long polling, upgrade, refusals |
//! | `session_task` | one task for each session: opens it, runs it, records its end |
//! | `gateway` | the gateway: its parts, and the requests that reach them |
//!
//! `fanout/shard.rs` is a state machine without I/O: it takes commands and the time, and returns effects.
//! `fanout/shard_thread.rs` runs the effects.
//!
//! # Ownership
//!
//! A session is one `Arc` with three holders: its task, its shard, and, while it polls, the registry.
//! The session's one lock guards all mutable state and is never held across an await. The shard writes an
//! event to the socket directly when the queue is empty. Bytes that the kernel does not take go to the queue,
//! and the session's task writes them when the socket has room. An idle session has no buffer, no timer and
//! no queue: its task waits for readability and reads into a buffer that the sessions of a thread share, and
//! its shard checks its deadlines once in a ping interval.
//!
//! Only the shard owns subscriptions, so delivering an event takes no lock except that of each session. A
//! shard works in rounds: commands that arrive while it writes belong to the next round. So a busier shard
//! puts more events into one write. A channel with a costly write pauses after it, with the same effect.
//!
//! In a sandbox the service has a fault point (`service::fault_points`). Then a session has a tap, and the
//! shard sends each event to each session as the fault point decides. Without one, a write to a session
//! checks that it has no tap, and nothing else is different.
//!
//! # The life of a session
//!
//! 1. **Handshake.** The query is checked. Then a spawned task consumes the URL's token in the service.
//!    Before that the node holds no state for the peer. The task outlives the request, so the place of a peer
//!    that disconnects is freed.
//! 2. **Joined.** The session waits in the join list of its shard, so the shard knows it before any command
//!    about it. The peer gets `0…` and `40`: over the websocket together with the `101`, in one write, or as
//!    the first poll.
//! 3. **Introduced.** SYSTEM `connected` is queued (in revision 4 when the client has sent its `40`). From
//!    now on the shard applies changes, each exactly once and in order. It reads earlier changes from the
//!    store.
//! 4. **Upgraded**, if the client upgrades: between two packets the websocket becomes the link. The queue
//!    stays.
//! 5. **Ended.** Only the first close reason counts: [`socketio::CloseReason`]. The task closes the
//!    connection, leaves the shard, counts the reason and retries until the store has recorded the end.

mod config;
mod context;
mod fanout;
#[cfg(test)]
mod fuzz;
mod gateway;
mod http;
mod metrics;
mod node;
mod panics;
mod session;
mod session_task;
#[cfg(feature = "testing")]
mod testing;

pub use crate::http::{ConnectionLost, Hold, RequestBody, Socket};
pub use config::Config;
pub use config::{
    POLL_HOLD, POST_BYTES_MAX, POST_DEADLINE, QUEUE_BYTES_MAX, QUEUE_MESSAGES_MAX, SHARDS_MAX,
    UPGRADE_DEADLINE, WRITE_DEADLINE,
};
pub use gateway::Gateway;
pub use metrics::Stats;
pub use session::Transport;
pub use socketio::CloseReason;

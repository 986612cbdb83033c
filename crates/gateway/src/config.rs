//! The configuration of a gateway, and every other limit of this crate, with its unit.

use std::time::Duration;

use domain::Language;
use socketio::{Timing, engine, payload, upgrade, websocket};

/// Maximum number of queued messages of one session. A session with more is closed
/// (`docs/spec/realtime.md#delivery`).
pub const QUEUE_MESSAGES_MAX: usize = 512;
/// Maximum number of queued bytes of one session, 512 KiB. A session with more is closed
/// (`docs/spec/realtime.md#delivery`).
pub const QUEUE_BYTES_MAX: usize = 512 * 1024;
/// How long a websocket may accept no byte while bytes are queued (`docs/spec/realtime.md#delivery`).
pub const WRITE_DEADLINE: Duration = Duration::from_secs(10);
/// Deadline from the `101` to the upgraded stream, and then of the probe up to its `5`.
pub const UPGRADE_DEADLINE: Duration = Duration::from_millis(upgrade::UPGRADE_TIMEOUT_MS);
/// How long a poll is held while nothing is queued. Then it is answered with a noop.
pub const POLL_HOLD: Duration = Duration::from_secs(30);
/// Maximum length of a post's body, in bytes.
pub const POST_BYTES_MAX: usize = payload::DEFAULT_MAX_BODY_BYTES;
/// How long the body of a post may take to arrive.
pub const POST_DEADLINE: Duration = Duration::from_secs(10);
/// Default maximum number of shards. The default is one shard for two cores; publishers, REST and the store
/// use the other cores. Each further shard costs every event a wake-up.
pub const SHARDS_MAX: usize = 16;
/// Default minimum number of shards, if the machine has as many cores. With one shard on two cores, one core
/// idles while the other writes.
pub(crate) const SHARDS_MIN: usize = 2;

/// Random bytes of an Engine.IO session id. Base64url makes 20 characters of them.
pub(crate) const SID_BYTES: usize = 15;
/// Maximum length of a query, in bytes. Clients send some 150.
pub(crate) const QUERY_BYTES_MAX: usize = 4 * 1024;
/// Bytes read from a socket at once, into a buffer that all sessions of a thread share.
pub(crate) const SCRATCH_BYTES: usize = 16 * 1024;
/// Bytes read at once from a websocket during its probe.
pub(crate) const PROBE_BYTES: usize = 512;
/// Chunks in one vectored write.
pub(crate) const CHUNKS_PER_WRITE: usize = 64;

/// Maximum number of events in a command to a shard. A shard that waits is woken once for all of them.
pub(crate) const COMMAND_EVENTS_MAX: usize = 16;
/// Capacity of the inbox of a shard, in commands. Senders wait while it is full (backpressure).
pub(crate) const INBOX_MAX: usize = 256;
/// Maximum number of commands that a shard processes in one round.
pub(crate) const ROUND_MAX: usize = 16;
/// Maximum number of events of one batch.
pub(crate) const BATCH_EVENTS_MAX: usize = 64;
/// Maximum number of bytes of one write, except for a single larger event.
pub(crate) const BATCH_BYTES_MAX: usize = 64 * 1024;
/// The cooldown of a channel is its last write's duration times this factor, within the limits below.
pub(crate) const COOLDOWN_FACTOR: u32 = 6;
/// The cooldown is at most this long, because it adds to the latency of a hot channel.
pub(crate) const COOLDOWN_MAX: Duration = Duration::from_millis(8);
/// The cooldown ends when this many events are batched. So it does not limit a channel's events per second.
pub(crate) const COOLDOWN_EVENTS_MAX: usize = 16;
/// A cooldown shorter than this is skipped, because timers have no finer resolution.
pub(crate) const COOLDOWN_MIN: Duration = Duration::from_millis(1);
/// How often a shard checks the deadlines of its sessions.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// How often a node reconciles its sessions with the store.
pub(crate) const RECONCILE_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of catch-ups that read the store at the same time.
pub(crate) const CATCH_UPS_MAX: usize = 32;
/// First pause between two attempts of a catch-up, or of recording a session's end. The pause doubles each
/// time, up to [`RETRY_LONGEST`].
pub(crate) const RETRY_FIRST: Duration = Duration::from_millis(100);
/// Longest pause between two such attempts.
pub(crate) const RETRY_LONGEST: Duration = Duration::from_secs(10);
/// Maximum attempts of a catch-up before its session is closed: some 10 s.
pub(crate) const CATCH_UP_TRIES: u32 = 8;
/// Maximum number of ends of sessions in one transaction. A distant database finishes this many in time.
pub(crate) const DISCONNECTS_PER_WRITE: usize = 32;
/// Maximum number of transactions that record ends at the same time.
pub(crate) const DISCONNECT_WRITES_MAX: usize = 4;
/// Maximum attempts to record a session's end: some 4 min. After that the session stays open in the store
/// until this node registers again.
pub(crate) const DISCONNECT_TRIES: u32 = 30;
/// How long a subscription waits for the bus to confirm its interest. A later confirmation counts as a gap,
/// so no event is missed silently.
pub(crate) const INTEREST_CONFIRM_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the lookup of missed events may take. After that all events count as missed.
pub(crate) const GAP_LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// How often this node polls the store for lost events: well within [`LOST_EVENTS_KNOWN_WITHIN`].
///
/// [`LOST_EVENTS_KNOWN_WITHIN`]: service::lost_events::LOST_EVENTS_KNOWN_WITHIN
pub(crate) const LOST_EVENTS_POLL_EVERY: Duration = Duration::from_millis(400);
/// How long a shard remembers that a subscription ended, in milliseconds. A lost event is found within this
/// time: an event counts as lost at most 8 s after its time, and finding and recording it takes some seconds
/// more.
pub(crate) const UNSUBSCRIBED_REMEMBERED_MS: u64 = 15_000;
/// Maximum number of ended subscriptions that a shard remembers.
pub(crate) const UNSUBSCRIBED_MAX: usize = 65_536;
/// Maximum number of websocket pings and pongs during a probe. Clients send none.
pub(crate) const PROBE_CONTROLS_MAX: u32 = 16;
/// Deadline to write a partly written frame to its end, and the close frame. Only peers that read too slowly
/// need that long.
pub(crate) const CLOSE_FRAME_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a closed websocket is still read, so that its peer receives the close frame instead of a reset.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// Maximum number of bytes that are read from a closed websocket.
pub(crate) const LINGER_BYTES_MAX: usize = 64 * 1024;
/// How long the requests of an ended polling session are answered: posts with `ok`, the first poll with `1`.
pub(crate) const POLL_LINGER: Duration = Duration::from_secs(5);
/// How often a connection that a fault point keeps half open is checked for the end of the node.
pub(crate) const HALF_OPEN_CHECK: Duration = Duration::from_millis(500);
/// Number of waves of a drain.
pub(crate) const DRAIN_WAVES: u32 = 20;

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The language of refusals.
    pub language: Language,
    /// Time between two pings.
    pub ping_interval: Duration,
    /// How long the answer to a ping may take.
    pub ping_timeout: Duration,
    /// Maximum number of queued messages of one session.
    pub queue_messages_max: usize,
    /// Maximum number of queued bytes of one session.
    pub queue_bytes_max: usize,
    /// How long a websocket may accept no byte while bytes are queued.
    pub write_deadline: Duration,
    /// How long an upgrade may take.
    pub upgrade_deadline: Duration,
    /// How long a poll is held while nothing is queued.
    pub poll_hold: Duration,
    /// Maximum length of a post's body, in bytes.
    pub post_bytes_max: usize,
    /// Maximum length of a client's websocket message, in bytes.
    pub message_bytes_max: u32,
    /// Maximum number of sessions. Further handshakes are refused with 503.
    pub sessions_max: usize,
    /// Number of shards, each with its own thread; at least 1.
    pub shards: usize,
}

impl Default for Config {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            language: Language::default(),
            ping_interval: Duration::from_millis(engine::DEFAULT_PING_INTERVAL_MS.into()),
            ping_timeout: Duration::from_millis(engine::DEFAULT_PING_TIMEOUT_MS.into()),
            queue_messages_max: QUEUE_MESSAGES_MAX,
            queue_bytes_max: QUEUE_BYTES_MAX,
            write_deadline: WRITE_DEADLINE,
            upgrade_deadline: UPGRADE_DEADLINE,
            poll_hold: POLL_HOLD,
            post_bytes_max: POST_BYTES_MAX,
            message_bytes_max: websocket::DEFAULT_MAX_MESSAGE_BYTES,
            sessions_max: usize::MAX,
            shards: (cores / 2).clamp(cores.min(SHARDS_MIN), SHARDS_MAX),
        }
    }
}

impl Config {
    /// The ping times as the protocol counts them.
    pub(crate) fn timing(&self) -> Timing {
        let ms = |span: Duration| u32::try_from(span.as_millis()).unwrap_or(u32::MAX);
        Timing { ping_interval_ms: ms(self.ping_interval), ping_timeout_ms: ms(self.ping_timeout) }
    }
}

/// The pause after a failed attempt, by the number of attempts before it.
pub(crate) fn backoff(tries: u32) -> Duration {
    RETRY_FIRST.saturating_mul(2_u32.saturating_pow(tries)).min(RETRY_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_tries_double_up_to_a_limit() {
        let waits: Vec<_> = [0, 1, 5, 7, 60].map(|tries| backoff(tries).as_millis()).into();
        assert_eq!(waits, [100, 200, 3_200, 10_000, 10_000]);
    }
}

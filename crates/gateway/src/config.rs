//! What an operator may change, and every other limit of this crate, with its unit.

use std::time::Duration;

use domain::Language;
use socketio::{Timing, engine, payload, upgrade, websocket};

/// Messages that may wait for one session before it is closed (`docs/spec/realtime.md#delivery`).
pub const QUEUE_MESSAGES_MAX: usize = 512;
/// Bytes that may wait for one session before it is closed (`docs/spec/realtime.md#delivery`): 512 KiB.
pub const QUEUE_BYTES_MAX: usize = 512 * 1024;
/// How long a websocket may take no byte while some wait (`docs/spec/realtime.md#delivery`).
pub const WRITE_DEADLINE: Duration = Duration::from_secs(10);
/// How long a connection may take from the `101` to the upgraded stream, and a probe from there to its `5`.
pub const UPGRADE_DEADLINE: Duration = Duration::from_millis(upgrade::UPGRADE_TIMEOUT_MS);
/// How long a poll is held when there is nothing to answer; then it gets a noop.
pub const POLL_HOLD: Duration = Duration::from_secs(30);
/// Largest body of a post, in bytes.
pub const POST_BYTES_MAX: usize = payload::DEFAULT_MAX_BODY_BYTES;
/// How long the body of a post may take to arrive.
pub const POST_DEADLINE: Duration = Duration::from_secs(10);
/// Default maximum number of shards: one for two cores up to this. The other cores serve publishers, REST and the store. Each
/// further shard costs every event a wake-up.
pub const SHARDS_MAX: usize = 16;
/// Default minimum number of shards, where there are as many cores. With one shard on two cores, one core idles while the
/// other writes.
pub(crate) const SHARDS_MIN: usize = 2;

/// Bytes of an Engine.IO session id's randomness. Base64url makes 20 characters of them.
pub(crate) const SID_BYTES: usize = 15;
/// Longest query of a request, in bytes. Clients send some 150.
pub(crate) const QUERY_BYTES_MAX: usize = 4 * 1024;
/// Bytes read from a socket at once, into a buffer that all sessions of a thread share.
pub(crate) const SCRATCH_BYTES: usize = 16 * 1024;
/// Bytes read at once from a websocket that has not taken its session over yet.
pub(crate) const PROBE_BYTES: usize = 512;
/// Chunks handed to the kernel in one gathered write.
pub(crate) const CHUNKS_PER_WRITE: usize = 64;

/// Commands that wait for a shard before their senders wait too.
pub(crate) const INBOX_MAX: usize = 4_096;
/// Commands that a shard takes on before it writes what they gave.
pub(crate) const ROUND_MAX: usize = 256;
/// Events of one channel that go into one write.
pub(crate) const RUN_EVENTS_MAX: usize = 64;
/// Bytes of one write of a run, but for a single larger event.
pub(crate) const RUN_BYTES_MAX: usize = 64 * 1024;
/// Sessions looked up together before they are written to, one after another.
pub(crate) const SESSIONS_AT_ONCE: usize = 16;
/// A channel rests for so many times the time that its last write to all of its sessions took...
pub(crate) const REST_FACTOR: u32 = 6;
/// ... but for so long at the most: what gathering may add to the latency of a hot channel...
pub(crate) const REST_MAX: Duration = Duration::from_millis(8);
/// ... or until so many events have gathered: then it is for the machine to say what a channel can do, not for the clock...
pub(crate) const REST_EVENTS_MAX: usize = 16;
/// ... and not at all when that is less than this, the resolution of timers.
pub(crate) const REST_MIN: Duration = Duration::from_millis(1);
/// How often a shard looks at the deadlines of its sessions.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// How often the store is asked what became of this node's sessions.
pub(crate) const VIGIL_EVERY: Duration = Duration::from_secs(1);
/// Catch-ups that read the store at once.
pub(crate) const CATCH_UPS_MAX: usize = 32;
/// First pause between two tries of a catch-up or of recording a session's end; doubled each time...
pub(crate) const RETRY_FIRST: Duration = Duration::from_millis(100);
/// ... up to this.
pub(crate) const RETRY_LONGEST: Duration = Duration::from_secs(10);
/// Tries of a catch-up before its session is closed: some 10 s.
pub(crate) const CATCH_UP_TRIES: u32 = 8;
/// Ends of sessions recorded in one transaction: few enough for a far database to do them within its deadline...
pub(crate) const DEPARTURES_PER_WRITE: usize = 32;
/// ... and transactions of them at once.
pub(crate) const DEPARTURE_WRITES_MAX: usize = 4;
/// Tries of recording a session's end: some 4 min. After that it stays open on paper until this node joins anew.
pub(crate) const DISCONNECT_TRIES: u32 = 30;
/// How long a subscription waits for the bus to confirm that its events come. After that the bus tells a gap, so nothing
/// is missed unknowingly.
pub(crate) const INTEREST_WITHIN: Duration = Duration::from_secs(2);
/// How long the store may take to say which channels' events were missed, before all count as missed.
pub(crate) const GAP_WITHIN: Duration = Duration::from_secs(5);
/// How often this node looks for events that their publishers gave up: well within [`LOSSES_KNOWN_WITHIN`].
///
/// [`LOSSES_KNOWN_WITHIN`]: service::losses::LOSSES_KNOWN_WITHIN
pub(crate) const LOOK_FOR_LOSSES: Duration = Duration::from_millis(400);
/// How long a shard remembers that a subscription ended, in milliseconds: a loss is known by then. An event is
/// stamped 8 s before it counts as lost at the most; finding it, recording it and reading the record take some seconds more.
pub(crate) const UNSUBSCRIBED_REMEMBERED_MS: u64 = 15_000;
/// Ended subscriptions that a shard remembers at the most.
pub(crate) const UNSUBSCRIBED_MAX: usize = 65_536;
/// Websocket pings and pongs that a websocket may send before it has taken its session over. Clients send none.
pub(crate) const PROBE_CONTROLS_MAX: u32 = 16;
/// How long a websocket that is to be closed may take for the rest of a frame and the goodbye. Peers that did not read fast
/// enough need it; all others take it at once.
pub(crate) const GOODBYE_WITHIN: Duration = Duration::from_secs(5);
/// How long a closed websocket is read on, so that its peer gets to see the close frame rather than a reset.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// Bytes read meanwhile.
pub(crate) const LINGER_BYTES_MAX: usize = 64 * 1024;
/// How long the requests of a polling session that is over are answered yet: posts with `ok`, the
/// first poll with `1`.
pub(crate) const POLL_LINGER: Duration = Duration::from_secs(5);
/// Waves of a drain.
pub(crate) const DRAIN_WAVES: u32 = 20;

/// How a gateway behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// The language of refusals.
    pub language: Language,
    /// Time between two pings.
    pub ping_interval: Duration,
    /// How long the answer to a ping may take.
    pub ping_timeout: Duration,
    /// Messages that may wait for one session before it is closed.
    pub queue_messages_max: usize,
    /// Bytes that may wait for one session before it is closed.
    pub queue_bytes_max: usize,
    /// How long a websocket may take no byte while some wait.
    pub write_deadline: Duration,
    /// How long an upgrade may take.
    pub upgrade_deadline: Duration,
    /// How long a poll is held when there is nothing to answer.
    pub poll_hold: Duration,
    /// Largest body of a post, in bytes.
    pub post_bytes_max: usize,
    /// Largest websocket message of a client, in bytes.
    pub message_bytes_max: u32,
    /// Sessions at once. Handshakes beyond it are refused with 503.
    pub sessions_max: usize,
    /// Shards that the sessions are spread over, each with a thread of its own; at least 1.
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

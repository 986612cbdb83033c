//! Divides the file descriptors of this process between sessions, requests and webhooks, so that the process
//! never runs out of them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for the store, the bus, the listeners and the runtime.
const RESERVED: usize = 96;
/// The fraction of the other descriptors that sessions may not use, so that requests are answered when all
/// sessions are taken.
const FOR_REQUESTS_DIVISOR: usize = 8;
/// Minimum of the descriptors for requests.
const FOR_REQUESTS_MIN: usize = 16;
/// Maximum of the descriptors for requests.
const FOR_REQUESTS_MAX: usize = 1_024;
/// The fraction of the descriptors for requests that webhooks may use: half of it for running attempts, half
/// for idle connections.
const FOR_WEBHOOKS_DIVISOR: usize = 2;
/// The assumed limit if the system sets none.
const UNLIMITED: usize = 1 << 20;

/// The maximum numbers of sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// HTTP connections and sockets of the gateway together.
    pub(crate) sockets_max: usize,
    /// Sessions.
    pub(crate) sessions_max: usize,
    /// Running webhook attempts.
    pub(crate) webhooks_max: usize,
}

impl Room {
    /// Raises the limit of this process as far as allowed, and divides it.
    pub(crate) fn claim() -> Self {
        let limit = raise();
        let room = Self::of(limit);
        let Self { sockets_max, sessions_max, webhooks_max } = room;
        tracing::info!(limit, sockets_max, sessions_max, webhooks_max, "divided the file descriptors");
        room
    }

    /// The room if each socket needs this number of descriptors.
    pub(crate) fn divided(self, by: usize) -> Self {
        let Self { sockets_max, sessions_max, webhooks_max } = self;
        Self { sockets_max: sockets_max / by, sessions_max: sessions_max / by, webhooks_max }
    }

    fn of(limit: usize) -> Self {
        let sockets_max = limit - RESERVED.min(limit / 2);
        let for_requests = sockets_max / FOR_REQUESTS_DIVISOR;
        let for_requests = for_requests.clamp(FOR_REQUESTS_MIN, FOR_REQUESTS_MAX).min(sockets_max / 2);
        let for_webhooks = for_requests / FOR_WEBHOOKS_DIVISOR;
        Self {
            sockets_max: sockets_max - for_webhooks,
            sessions_max: sockets_max - for_requests,
            webhooks_max: (for_webhooks / 2).max(1),
        }
    }
}

/// Raises the soft limit to the hard limit, and returns the limit that applies.
fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "failed to raise the limit of file descriptors");
    }
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(UNLIMITED).min(UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_reserved_is_shared_by_sessions_and_requests() {
        for (limit, sockets_max, sessions_max, webhooks_max) in [
            (8, 3, 2, 1),
            (128, 56, 48, 4),
            (200, 96, 88, 4),
            (1_024, 870, 812, 29),
            (20_000, 19_392, 18_880, 256),
            (UNLIMITED, UNLIMITED - RESERVED - 512, UNLIMITED - RESERVED - FOR_REQUESTS_MAX, 256),
        ] {
            assert_eq!(Room::of(limit), Room { sockets_max, sessions_max, webhooks_max }, "{limit}");
        }
    }
}

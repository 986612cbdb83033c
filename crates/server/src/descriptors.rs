//! Descriptors: how many this process may have open, and how they are shared out, so that it never runs out of them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept for everything that is no connection of a peer: the store's files or connections, the bus, the
/// listeners, the runtime's own.
const RESERVED: usize = 96;
/// Of the rest, the part that sessions may not have, so that requests are answered however many sessions there are...
const FOR_REQUESTS_DIVISOR: usize = 8;
/// ... but no fewer connections than this...
const FOR_REQUESTS_MIN: usize = 16;
/// ... and no more.
const FOR_REQUESTS_MAX: usize = 1_024;
/// Of those, the part that webhooks on their way may take: connections in use and connections that are kept, half each.
const FOR_WEBHOOKS_DIVISOR: usize = 2;
/// What is planned with where the system sets no limit.
const UNLIMITED: usize = 1 << 20;

/// How many sockets of peers there may be at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// HTTP connections and the gateway's sockets together.
    pub(crate) sockets_max: usize,
    /// Sessions.
    pub(crate) sessions_max: usize,
    /// Webhooks on their way.
    pub(crate) webhooks_max: usize,
}

impl Room {
    /// Raises the limit of this process as far as it may, and shares out what that gives.
    pub(crate) fn claim() -> Self {
        let limit = raise();
        let room = Self::of(limit);
        let Self { sockets_max, sessions_max, webhooks_max } = room;
        tracing::info!(limit, sockets_max, sessions_max, webhooks_max, "descriptors are shared out");
        room
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

/// Raises the soft limit to the hard one, and gives the limit that holds.
fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "the limit of descriptors could not be raised");
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

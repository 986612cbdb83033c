//! The requests of applications that this node counted and has not written yet, and its refused requests.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use domain::usage::{RequestCount, UsageKind};
use domain::{ChannelId, ClientId, Timestamp};

/// Maximum number of applications with counters, about 25 MiB. The requests of further ones are not counted.
const APPLICATIONS_MAX: usize = 100_000;
/// Refused requests of an application that a node keeps.
pub const REFUSED_KEPT: usize = 50;
/// Applications whose refused requests a node keeps, with [`REFUSED_KEPT`] about 10 MiB. A further one
/// replaces the one whose latest refused request is the oldest.
const REFUSED_APPLICATIONS_MAX: usize = 1_000;

/// The counters of one application on this node. A credential in the cache holds them, so a request finds
/// them without a look-up. Counting is an addition.
#[derive(Debug)]
pub struct ApplicationUsage {
    kinds: [KindCounter; UsageKind::COUNT],
    /// Events that its sessions received.
    events: AtomicU32,
}

/// Counters since the last write. They are small because they are written every few seconds.
#[derive(Debug, Default)]
struct KindCounter {
    requests: AtomicU32,
    refused: AtomicU32,
}

impl Default for ApplicationUsage {
    fn default() -> Self {
        Self { kinds: std::array::from_fn(|_| KindCounter::default()), events: AtomicU32::new(0) }
    }
}

impl ApplicationUsage {
    /// Counts a request.
    pub fn count(&self, kind: UsageKind, is_refused: bool) {
        let counter = &self.kinds[kind.index()];
        counter.requests.fetch_add(1, Relaxed);
        if is_refused {
            counter.refused.fetch_add(1, Relaxed);
        }
    }

    /// Counts events that a session has received.
    pub fn count_events(&self, events: usize) {
        self.events.fetch_add(u32::try_from(events).unwrap_or(u32::MAX), Relaxed);
    }

    /// Whether something was counted since the last write.
    fn is_pending(&self) -> bool {
        self.events.load(Relaxed) > 0 || !self.pending().is_empty()
    }

    /// The requests since the last write, by kind. Kinds without any are left out.
    pub(crate) fn pending(&self) -> Vec<(UsageKind, RequestCount)> {
        self.each(|counter| counter.load(Relaxed))
    }

    /// As [`pending`](Self::pending). The caller writes them.
    fn take(&self) -> Vec<(UsageKind, RequestCount)> {
        self.each(|counter| counter.swap(0, Relaxed))
    }

    /// Returns requests that could not be written.
    fn give_back(&self, kind: UsageKind, count: RequestCount) {
        let counter = &self.kinds[kind.index()];
        counter.requests.fetch_add(u32::try_from(count.requests).unwrap_or(u32::MAX), Relaxed);
        counter.refused.fetch_add(u32::try_from(count.refused).unwrap_or(u32::MAX), Relaxed);
    }

    fn each(&self, read: impl Fn(&AtomicU32) -> u32) -> Vec<(UsageKind, RequestCount)> {
        let count = |kind: UsageKind| {
            let KindCounter { requests, refused } = &self.kinds[kind.index()];
            // Most kinds have none. Reading is cheaper than writing.
            if requests.load(Relaxed) == 0 && refused.load(Relaxed) == 0 {
                return None;
            }
            let count = RequestCount { requests: read(requests).into(), refused: read(refused).into() };
            Some((kind, count))
        };
        UsageKind::all().filter_map(count).collect()
    }
}

/// The counters of the applications that were used lately.
#[derive(Debug, Default)]
pub(crate) struct UsageCounters(RwLock<HashMap<ClientId, Arc<ApplicationUsage>>>);

impl UsageCounters {
    /// The counters of an application, for a credential that enters the cache. `None` if there are too many
    /// applications.
    pub fn of(&self, client_id: &ClientId) -> Option<Arc<ApplicationUsage>> {
        if let Some(usage) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(client_id) {
            return Some(usage.clone());
        }
        let mut counters = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if counters.len() >= APPLICATIONS_MAX && !counters.contains_key(client_id) {
            return None;
        }
        Some(counters.entry(client_id.clone()).or_default().clone())
    }

    /// Takes all requests since the last write, by application and kind, in the order of the ids.
    pub fn take(&self) -> Vec<(ClientId, UsageKind, RequestCount)> {
        let counters = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut taken: Vec<_> = counters
            .iter()
            .flat_map(|(id, usage)| usage.take().into_iter().map(|(kind, count)| (id.clone(), kind, count)))
            .collect();
        taken.sort_unstable_by(|(a, kind, _), (b, other, _)| (a, kind).cmp(&(b, other)));
        taken
    }

    /// Takes all events since the last write, by application, in the order of the ids.
    pub fn take_events(&self) -> Vec<(ClientId, i64)> {
        let counters = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut taken: Vec<_> = counters
            .iter()
            .filter(|(_, usage)| usage.events.load(Relaxed) > 0)
            .map(|(id, usage)| (id.clone(), usage.events.swap(0, Relaxed).into()))
            .collect();
        taken.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        taken
    }

    /// Returns requests that could not be written.
    pub fn give_back(&self, taken: &[(ClientId, UsageKind, RequestCount)]) {
        for (client_id, kind, count) in taken {
            if let Some(usage) = self.of(client_id) {
                usage.give_back(*kind, *count);
            }
        }
    }

    /// Drops the counters without requests that no credential in the cache holds.
    pub fn drop_idle(&self) {
        let mut counters = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Only this map hands them out, and it is locked. So no other task can hold them now.
        counters.retain(|_, usage| Arc::strong_count(usage) > 1 || usage.is_pending());
    }
}

/// A request of an application that was refused, or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    /// Its id, as in `X-Request-Id`.
    pub request_id: String,
    /// When it was answered.
    pub at: Timestamp,
    /// The method.
    pub method: &'static str,
    /// The pattern of the route, never the requested path.
    pub route: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// The reason, as in `Stagedoor-Reason`.
    pub reason: String,
    /// The user of the token, if it was in user mode.
    pub channel_id: Option<ChannelId>,
}

/// The last refused requests of each application on this node.
#[derive(Debug, Default)]
pub(crate) struct RefusedRequests(Mutex<HashMap<ClientId, VecDeque<RefusedRequest>>>);

impl RefusedRequests {
    /// Keeps a refused request. It replaces the oldest of its application, if that has too many.
    pub fn note(&self, client_id: &ClientId, request: RefusedRequest) {
        let mut kept = self.lock();
        if !kept.contains_key(client_id) {
            make_room(&mut kept);
        }
        let of_application = kept.entry(client_id.clone()).or_default();
        if of_application.len() >= REFUSED_KEPT {
            of_application.pop_front();
        }
        of_application.push_back(request);
    }

    /// Those of an application, newest first.
    pub fn of(&self, client_id: &ClientId) -> Vec<RefusedRequest> {
        self.lock().get(client_id).into_iter().flatten().rev().cloned().collect()
    }

    /// The application and the facts of a refused request.
    pub fn find(&self, request_id: &str) -> Option<(ClientId, RefusedRequest)> {
        let kept = self.lock();
        kept.iter().find_map(|(client_id, requests)| {
            let request = requests.iter().find(|request| request.request_id == request_id)?;
            Some((client_id.clone(), request.clone()))
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientId, VecDeque<RefusedRequest>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_room(kept: &mut HashMap<ClientId, VecDeque<RefusedRequest>>) {
    if kept.len() < REFUSED_APPLICATIONS_MAX {
        return;
    }
    let latest = |requests: &VecDeque<RefusedRequest>| requests.back().map(|request| request.at);
    let oldest = kept.iter().min_by_key(|(_, requests)| latest(requests)).map(|(id, _)| id.clone());
    if let Some(oldest) = oldest {
        kept.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: impl ToString) -> ClientId {
        ClientId::stored(id.to_string())
    }

    fn refused(n: i64) -> RefusedRequest {
        RefusedRequest {
            request_id: format!("r{n}"),
            at: Timestamp::from_millis(n),
            method: "GET",
            route: "/open/v1/users/me",
            status: 403,
            reason: "scope-missing".to_owned(),
            channel_id: None,
        }
    }

    #[test]
    fn requests_are_taken_once_and_given_back_after_a_failure() {
        let counters = UsageCounters::default();
        let usage = counters.of(&client("a")).expect("room");
        usage.count(UsageKind::User, false);
        usage.count(UsageKind::User, true);
        counters.of(&client("b")).expect("room").count(UsageKind::Token, false);
        usage.count_events(3);
        assert_eq!(counters.take_events(), [(client("a"), 3)]);
        assert!(counters.take_events().is_empty());
        let taken = counters.take();
        let count = |requests, refused| RequestCount { requests, refused };
        assert_eq!(
            taken,
            [(client("a"), UsageKind::User, count(2, 1)), (client("b"), UsageKind::Token, count(1, 0))]
        );
        assert!(counters.take().is_empty());
        usage.count(UsageKind::User, false);
        counters.give_back(&taken);
        assert_eq!(counters.take()[0].2, count(3, 1));
    }

    #[test]
    fn counters_stay_while_they_are_held_or_pending_and_their_number_is_bounded() {
        let counters = UsageCounters::default();
        let held = counters.of(&client("held")).expect("room");
        counters.of(&client("pending")).expect("room").count(UsageKind::Client, false);
        for n in 2..APPLICATIONS_MAX {
            assert!(counters.of(&client(n)).is_some());
        }
        assert!(counters.of(&client("more")).is_none());
        counters.drop_idle();
        assert!(counters.of(&client("more")).is_some());
        held.count(UsageKind::Client, false);
        assert_eq!(counters.take().len(), 2);
    }

    #[test]
    fn the_last_refused_requests_of_the_latest_applications_are_kept() {
        let kept = RefusedRequests::default();
        let many = i64::try_from(REFUSED_KEPT).expect("small");
        for n in 0..many + 2 {
            kept.note(&client("a"), refused(n));
        }
        let of_a = kept.of(&client("a"));
        assert_eq!((of_a.len(), &of_a[0]), (REFUSED_KEPT, &refused(many + 1)));
        assert_eq!(kept.find("r2").map(|(id, _)| id), Some(client("a")));
        assert_eq!(kept.find("r1"), None);
        for n in 0..REFUSED_APPLICATIONS_MAX {
            kept.note(&client(n), refused(1_000 + i64::try_from(n).expect("small")));
        }
        assert!(kept.of(&client("a")).is_empty() && kept.of(&client("b")).is_empty());
        assert_eq!(kept.of(&client(0)).len(), 1);
        assert_eq!(kept.lock().len(), REFUSED_APPLICATIONS_MAX);
    }
}

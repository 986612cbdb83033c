//! The metrics of the HTTP side: requests by route, method and status, durations, refusals by kind. Counting
//! is a look-up in a constant map and a few additions, without a lock or an allocation.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use domain::Refusal;
use http::{Method, StatusCode};

use crate::failures::{FailureFigures, Failures};
use crate::objectives::fast_within;

/// The upper bounds of the buckets of durations, in microseconds. A last bucket has the longer ones.
pub const DURATION_BOUNDS_US: [u64; 11] =
    [1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000];

/// The names of the classes of statuses.
pub const STATUS_CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The route and method of requests without a route: unknown paths, wrong methods.
const UNMATCHED: (&str, &str) = ("unmatched", "any");

/// The counters of a node's HTTP side.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// The methods of each route pattern, with their indices in `routes`.
    places: HashMap<&'static str, Vec<(&'static str, usize)>>,
    /// The first entry counts requests without a route.
    routes: Box<[Route]>,
    refusals: [AtomicU64; Refusal::KINDS.len()],
    pub(crate) failures: Failures,
}

/// The counters of one method of one route.
#[derive(Debug)]
struct Route {
    route: &'static str,
    method: &'static str,
    statuses: [AtomicU64; STATUS_CLASSES.len()],
    durations: [AtomicU64; DURATION_BOUNDS_US.len() + 1],
    duration_us: AtomicU64,
    /// The answers without a failure that took longer than `fast_within`.
    slow: AtomicU64,
    fast_within: Duration,
}

/// A snapshot of one method of one route.
#[derive(Clone, Debug)]
pub struct RouteFigures {
    /// The route's pattern, with `{names}` for its parameters; never a requested path.
    pub route: &'static str,
    /// Its method.
    pub method: &'static str,
    /// Answers by the class of their status, in the order of [`STATUS_CLASSES`].
    pub statuses: [u64; STATUS_CLASSES.len()],
    /// Answers by duration: one count for each bound of [`DURATION_BOUNDS_US`] (above the bound before it),
    /// and one for longer durations.
    pub durations: [u64; DURATION_BOUNDS_US.len() + 1],
    /// The sum of the durations.
    pub duration_sum: Duration,
    /// Answers that took longer than the endpoint promises, without those of 5xx.
    pub slow: u64,
    /// The time within which the endpoint promises its answers.
    pub fast_within: Duration,
}

/// A snapshot of the HTTP side.
#[derive(Clone, Debug)]
pub struct TrafficFigures {
    /// Every method of every route, and the requests without a route.
    pub routes: Vec<RouteFigures>,
    /// Refusals, by [`Refusal::kind`].
    pub refusals: Vec<(&'static str, u64)>,
    /// Failed authentication.
    pub failures: FailureFigures,
}

impl Traffic {
    /// Counters for these routes: pattern and method.
    pub(crate) fn of(routes: impl Iterator<Item = (&'static str, &'static str)>) -> Self {
        let routes: Box<[Route]> = std::iter::once(UNMATCHED)
            .chain(routes)
            .map(|(route, method)| Route::new(route, method))
            .collect();
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        for (place, route) in routes.iter().enumerate().skip(1) {
            places.entry(route.route).or_default().push((route.method, place));
        }
        let refusals = std::array::from_fn(|_| AtomicU64::new(0));
        Self { places, routes, refusals, failures: Failures::default() }
    }

    /// The index at which requests of this method to the route of this pattern are counted.
    pub(crate) fn place(&self, pattern: Option<&str>, method: &Method) -> usize {
        // The route of GET also answers HEAD.
        let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
        let methods = pattern.and_then(|pattern| self.places.get(pattern));
        let found = methods.and_then(|methods| methods.iter().find(|(name, _)| *name == method));
        found.map_or(0, |(_, place)| *place)
    }

    /// The pattern and the method at an index.
    pub(crate) fn route(&self, place: usize) -> (&'static str, &'static str) {
        self.routes.get(place).map_or(UNMATCHED, |route| (route.route, route.method))
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, place: usize, status: StatusCode, took: Duration) {
        let Some(route) = self.routes.get(place) else { return };
        let class = usize::from(status.as_u16() / 100).clamp(2, STATUS_CLASSES.len() + 1) - 2;
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = DURATION_BOUNDS_US.partition_point(|bound| *bound < took_us);
        route.statuses[class].fetch_add(1, Relaxed);
        route.durations[bucket].fetch_add(1, Relaxed);
        route.duration_us.fetch_add(took_us, Relaxed);
        if took > route.fast_within && !status.is_server_error() {
            route.slow.fetch_add(1, Relaxed);
        }
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, refusal: &Refusal) {
        let kind = refusal.kind();
        if let Some(place) = Refusal::KINDS.iter().position(|each| *each == kind) {
            self.refusals[place].fetch_add(1, Relaxed);
        }
    }

    /// A snapshot.
    pub(crate) fn figures(&self) -> TrafficFigures {
        TrafficFigures {
            routes: self.routes.iter().map(Route::figures).collect(),
            refusals: Refusal::KINDS
                .into_iter()
                .zip(self.refusals.iter().map(|each| each.load(Relaxed)))
                .collect(),
            failures: self.failures.figures(),
        }
    }
}

impl Route {
    fn new(route: &'static str, method: &'static str) -> Self {
        Self {
            route,
            method,
            statuses: std::array::from_fn(|_| AtomicU64::new(0)),
            durations: std::array::from_fn(|_| AtomicU64::new(0)),
            duration_us: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            fast_within: fast_within(route),
        }
    }

    fn figures(&self) -> RouteFigures {
        RouteFigures {
            route: self.route,
            method: self.method,
            statuses: std::array::from_fn(|class| self.statuses[class].load(Relaxed)),
            durations: std::array::from_fn(|bucket| self.durations[bucket].load(Relaxed)),
            duration_sum: Duration::from_micros(self.duration_us.load(Relaxed)),
            slow: self.slow.load(Relaxed),
            fast_within: self.fast_within,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic() -> Traffic {
        Traffic::of([("/a/{id}", "GET"), ("/a/{id}", "PUT"), ("/b", "POST")].into_iter())
    }

    #[test]
    fn a_request_is_counted_by_pattern_and_method_or_as_unmatched() {
        let traffic = traffic();
        let place = |pattern, method| {
            let route = &traffic.routes[traffic.place(pattern, &method)];
            (route.route, route.method)
        };
        assert_eq!(place(Some("/a/{id}"), Method::GET), ("/a/{id}", "GET"));
        assert_eq!(place(Some("/a/{id}"), Method::HEAD), ("/a/{id}", "GET"));
        assert_eq!(place(Some("/a/{id}"), Method::PUT), ("/a/{id}", "PUT"));
        assert_eq!(place(Some("/b"), Method::POST), ("/b", "POST"));
        for (pattern, method) in [
            (None, Method::GET),
            (Some("/a/17"), Method::GET),
            (Some("/b"), Method::GET),
            (Some("/b"), Method::HEAD),
            (Some("/b"), Method::from_bytes(b"BREW").expect("a method")),
        ] {
            assert_eq!(place(pattern, method), UNMATCHED, "{pattern:?}");
        }
    }

    #[test]
    fn a_duration_is_counted_in_its_bucket() {
        for (bucket, bound) in DURATION_BOUNDS_US.into_iter().enumerate() {
            for (took_us, expected) in [(bound, bucket), (bound + 1, bucket + 1)] {
                let traffic = traffic();
                traffic.answered(1, StatusCode::OK, Duration::from_micros(took_us));
                let figures = &traffic.figures().routes[1];
                let full = figures.durations.iter().position(|count| *count == 1);
                assert_eq!((full, figures.duration_sum.as_micros()), (Some(expected), u128::from(took_us)));
            }
        }
    }

    #[test]
    fn an_answer_later_than_promised_is_slow_unless_it_failed() {
        let traffic = traffic();
        let promised = traffic.figures().routes[1].fast_within;
        for (status, took) in [
            (StatusCode::OK, promised),
            (StatusCode::OK, promised + Duration::from_micros(1)),
            (StatusCode::NOT_FOUND, promised * 2),
            (StatusCode::SERVICE_UNAVAILABLE, promised * 2),
        ] {
            traffic.answered(1, status, took);
        }
        assert_eq!(traffic.figures().routes[1].slow, 2);
    }

    #[test]
    fn statuses_are_counted_by_class() {
        let traffic = traffic();
        for status in [100, 200, 204, 302, 400, 404, 429, 500, 599, 600] {
            traffic.answered(2, StatusCode::from_u16(status).expect("a status"), Duration::ZERO);
        }
        assert_eq!(traffic.figures().routes[2].statuses, [3, 1, 3, 3]);
        assert_eq!(traffic.figures().routes[1].statuses, [0; 4]);
    }

    #[test]
    fn refusals_are_counted_by_kind() {
        let traffic = traffic();
        traffic.refused(&Refusal::NotFound(domain::refusal::Resource::Path));
        traffic.refused(&Refusal::NotFound(domain::refusal::Resource::Path));
        traffic.refused(&Refusal::Internal);
        let counted: Vec<_> =
            traffic.figures().refusals.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("not_found", 2), ("internal", 1)]);
    }
}

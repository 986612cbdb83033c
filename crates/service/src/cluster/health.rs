//! The parts of a node, each with its state, for `/health`. Makes no query: the background loops record
//! what they saw.

use domain::Timestamp;

use crate::Service;
use crate::cluster::job_metrics::{Job, JobRuns};
use crate::cluster::node_state::Roles;
use crate::cluster::nodes::Readiness;

/// How well a node works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthStatus {
    /// Every part works.
    Ok,
    /// Callers are served, but a part does not work.
    Degraded,
    /// The node is not ready: see [`Readiness`].
    Down,
}

/// A part of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Why it does not work; `None` while it works.
    pub problem: Option<&'static str>,
    /// When it was last known to work; `None` if never since the start.
    pub last_success: Option<Timestamp>,
}

/// The state of a node and of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether the node gets new work.
    pub readiness: Readiness,
    /// When the node started.
    pub started_at: Timestamp,
    /// The parts.
    pub parts: Vec<Part>,
}

impl Health {
    /// How well the node works.
    pub fn status(&self) -> HealthStatus {
        if self.readiness != Readiness::Ready {
            HealthStatus::Down
        } else if self.parts.iter().any(|part| part.problem.is_some()) {
            HealthStatus::Degraded
        } else {
            HealthStatus::Ok
        }
    }
}

impl Service {
    /// The state of this node and of its parts: the store, the bus if there is one, and each job that this
    /// node repeats.
    pub fn health(&self) -> Health {
        let started_at = self.node_state().started_at();
        let jobs = self.job_runs().filter_map(|runs| self.job(&runs, started_at));
        let parts = [Some(self.store_part()), self.bus_part()].into_iter().flatten().chain(jobs);
        Health { readiness: self.readiness(), started_at, parts: parts.collect() }
    }

    fn store_part(&self) -> Part {
        let problem = match self.store_readiness() {
            Readiness::DiskFull => Some("STORE_DISK_FULL"),
            Readiness::StoreAway => Some("STORE_UNAVAILABLE"),
            Readiness::Ready | Readiness::Draining | Readiness::BusRefused => None,
        };
        let silent_ms = i64::try_from(self.store_silent_ms()).unwrap_or(i64::MAX);
        Part { name: "store", problem, last_success: Some(self.now().plus_ms(-silent_ms)) }
    }

    fn bus_part(&self) -> Option<Part> {
        let bus = &self.0.bus;
        if !bus.is_shared() {
            return None;
        }
        let stats = bus.stats();
        // One connection publishes. On a node with sockets another one receives.
        let is_good = match self.roles().gateway {
            true => stats.connections >= 2 && bus.is_receiving(),
            false => stats.connections >= 1,
        };
        let is_good = is_good && !bus.is_refused();
        let problem = if bus.is_refused() { "BUS_REFUSED" } else { "BUS_DISCONNECTED" };
        let problem = (!is_good).then_some(problem);
        let last_success = if is_good { Some(self.now()) } else { stats.disconnected_at };
        Some(Part { name: "bus", problem, last_success })
    }

    /// The part of a job; `None` for one that this node does not repeat.
    fn job(&self, runs: &JobRuns, started_at: Timestamp) -> Option<Part> {
        let late_after_ms = late_after_ms(runs.job)?;
        if !(is_repeated(runs.job, self.roles(), self.has_event_outbox()) || runs.done + runs.failed > 0) {
            return None;
        }
        let since = runs.last_done_at.unwrap_or(started_at);
        let is_late = self.now().as_millis().saturating_sub(since.as_millis()) > late_after_ms;
        let problem = is_late.then_some(match runs.job {
            Job::Archive => "ARCHIVE_NOT_REACHED",
            _ => "LATE",
        });
        Some(Part { name: runs.job.name(), problem, last_success: runs.last_done_at })
    }
}

/// How long after its last success a job is late, in milliseconds: several times its pause. `None` for a job
/// without a fixed pause.
const fn late_after_ms(job: Job) -> Option<i64> {
    const SECOND_MS: i64 = 1_000;
    const HOUR_MS: i64 = 3_600_000;
    match job {
        Job::Heartbeat => Some(15 * SECOND_MS),
        Job::CredentialWatch | Job::SessionWatch | Job::OutboxSweep => Some(10 * SECOND_MS),
        // A few of the intervals in which the archive gets segments.
        Job::Archive => Some(20 * SECOND_MS),
        Job::UsageFlush | Job::WebhookLook | Job::Mail => Some(30 * SECOND_MS),
        Job::Sweep | Job::UsesFlush => Some(180 * SECOND_MS),
        Job::UnusedApplications => Some(3 * HOUR_MS),
        Job::OutboxSettle | Job::StoreMeasure => None,
    }
}

/// Whether a node with these roles always repeats a job. The sender of mail also needs a mail hook, and the
/// archive its option.
const fn is_repeated(job: Job, roles: Roles, has_event_outbox: bool) -> bool {
    match job {
        Job::Heartbeat => true,
        Job::Sweep | Job::UnusedApplications | Job::WebhookLook => roles.jobs,
        Job::UsesFlush | Job::CredentialWatch => roles.web,
        Job::UsageFlush => roles.web || roles.gateway,
        Job::SessionWatch => roles.gateway,
        Job::OutboxSweep => has_event_outbox && (roles.jobs || roles.gateway),
        Job::OutboxSettle | Job::Mail | Job::Archive | Job::StoreMeasure => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(readiness: Readiness, problem: Option<&'static str>) -> Health {
        let started_at = Timestamp::from_millis(0);
        Health { readiness, started_at, parts: vec![Part { name: "bus", problem, last_success: None }] }
    }

    #[test]
    fn a_node_that_is_not_ready_is_down_and_one_with_a_broken_part_is_degraded() {
        for (readiness, problem, expected) in [
            (Readiness::Ready, None, HealthStatus::Ok),
            (Readiness::Ready, Some("LATE"), HealthStatus::Degraded),
            (Readiness::Draining, None, HealthStatus::Down),
            (Readiness::StoreAway, Some("STORE_UNAVAILABLE"), HealthStatus::Down),
            (Readiness::BusRefused, Some("BUS_REFUSED"), HealthStatus::Down),
        ] {
            assert_eq!(health(readiness, problem).status(), expected, "{readiness:?} {problem:?}");
        }
    }

    #[test]
    fn a_node_shows_the_jobs_of_its_roles() {
        let web = Roles { web: true, gateway: false, jobs: false };
        assert!(is_repeated(Job::Heartbeat, web, false) && is_repeated(Job::UsageFlush, web, false));
        assert!(!is_repeated(Job::WebhookLook, web, true) && !is_repeated(Job::OutboxSweep, web, true));
        assert!(is_repeated(Job::OutboxSweep, Roles::ALL, true));
        assert!(!is_repeated(Job::OutboxSweep, Roles::ALL, false));
    }
}

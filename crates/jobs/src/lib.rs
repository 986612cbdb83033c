//! Background jobs. Each job but [`warm_up`] is a loop on the service's clock that never ends by itself. The
//! server stops it by dropping it between two steps.

pub mod mail;
pub mod webhooks;

use std::time::Duration;

use domain::limits::NODE_HEARTBEAT_MS;
use service::credentials::WATCH_EVERY;
use service::event_outbox::{OVERDUE_MAX, SETTLE_EVERY, TAKE_OVER_EVERY};
use service::housekeeping::{NodeStatus, SWEEP_ROWS_MAX};
use service::seals::SealedKind;
use service::service_key::KeyChange;
use service::{Job, Service};
use tokio::sync::mpsc;

/// How often the sweeps run without a backlog.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// The pause between sweeps with a backlog. Writes of users go first.
pub const SWEEP_BACKLOG_PAUSE: Duration = Duration::from_millis(100);

/// How often the recorded uses of applications are written.
pub const FLUSH_USES_EVERY: Duration = Duration::from_secs(60);
/// How often the counted requests of applications are written. A node that is killed loses those since then.
pub const FLUSH_USAGE_EVERY: Duration = Duration::from_secs(5);
/// How often the store is measured.
pub const MEASURE_EVERY: Duration = Duration::from_secs(60);
/// How often unused applications are retired.
pub const UNUSED_APPLICATIONS_EVERY: Duration = Duration::from_secs(60 * 60);

/// How often the seals of secrets are looked at while the service key is changed.
pub const RENEW_SEALS_EVERY: Duration = Duration::from_secs(10 * 60);

/// The pause after a failed heartbeat. It is short, so that a node whose store is back writes its heartbeat
/// before it is declared dead, or soon finds out that it was.
const HEARTBEAT_RETRY: Duration = Duration::from_secs(1);

/// Writes this node's heartbeat every 5 seconds, and ends the sessions of dead nodes. Sends on
/// `declared_dead` in two cases: the other nodes have declared this node dead, or they probably have, because
/// this node cannot reach the store. The store then lists its sessions as ended, so their sockets must close
/// too.
pub async fn heartbeat(service: Service, declared_dead: mpsc::Sender<()>) {
    let every = Duration::from_millis(NODE_HEARTBEAT_MS.unsigned_abs());
    let mut pause = every;
    loop {
        service.clock().sleep(pause).await;
        let status = service.heartbeat().await;
        service.record_job_run(Job::Heartbeat, status.is_ok());
        pause = if status.is_ok() { every } else { HEARTBEAT_RETRY };
        match status {
            Ok(NodeStatus::Alive) => {}
            Ok(NodeStatus::WasDeclaredDead) => {
                tracing::error!("the other nodes declared this node dead: its sessions were ended");
                // The channel is full only while the last notice is being processed.
                let _ = declared_dead.try_send(());
            }
            Err(error) => {
                service.log_failure("failed to write the heartbeat", &error);
                if service.is_cut_off() {
                    // Closes the remaining sessions. No session can connect without the store.
                    let _ = declared_dead.try_send(());
                }
            }
        }
    }
}

/// Loads the categories, so that the first search does not wait for them.
pub async fn warm_up(service: Service) {
    if let Err(error) = service.read_categories().await {
        tracing::warn!(%error, "failed to load the categories: the first search loads them");
    }
}

/// Deletes expired rows: used and expired credentials, old sessions, old idempotency keys.
pub async fn sweep(service: Service) {
    loop {
        let swept = service.sweep().await;
        service.record_job_run(Job::Sweep, swept.is_ok());
        let backlog = match swept {
            Ok(swept) => {
                tracing::debug!(swept, "sweep finished");
                swept >= SWEEP_ROWS_MAX.unsigned_abs()
            }
            Err(error) => {
                service.log_failure("failed to sweep expired rows", &error);
                false
            }
        };
        let pause = if backlog { SWEEP_BACKLOG_PAUSE } else { SWEEP_EVERY };
        service.clock().elapse(pause, SWEEP_BACKLOG_PAUSE).await;
    }
}

/// Deletes this node's published events from the outbox, after the answers of their calls.
pub async fn settle_events(service: Service) {
    loop {
        service.has_events_to_settle().await;
        service.clock().sleep(SETTLE_EVERY).await;
        let settled = service.settle_events().await;
        service.record_job_run(Job::OutboxSettle, settled.is_ok());
        if let Err(error) = settled {
            service.log_failure("failed to settle the event outbox: retrying", &error);
            service.clock().sleep(TAKE_OVER_EVERY).await;
        }
    }
}

/// Takes over events that were committed and never published, for example by a node that died.
pub async fn take_over_events(service: Service) {
    loop {
        let found = service.take_over_overdue_events().await;
        service.record_job_run(Job::OutboxSweep, found.is_ok());
        if let Err(error) = &found {
            service.log_failure("failed to look for unpublished events", error);
        }
        if found.is_ok_and(|found| found < OVERDUE_MAX) {
            service.clock().sleep(TAKE_OVER_EVERY).await;
        }
    }
}

/// Records which applications were used, after the answers of their calls.
pub async fn flush_uses(service: Service) {
    loop {
        service.clock().sleep(FLUSH_USES_EVERY).await;
        let flushed = service.flush_uses().await;
        service.record_job_run(Job::UsesFlush, flushed.is_ok());
        if let Err(error) = flushed {
            service.log_failure("failed to write the uses of applications: retrying at the next run", &error);
        }
    }
}

/// Writes the counted requests of applications, after their answers.
pub async fn flush_usage(service: Service) {
    loop {
        service.clock().sleep(FLUSH_USAGE_EVERY).await;
        let flushed = service.flush_usage().await;
        service.record_job_run(Job::UsageFlush, flushed.is_ok());
        if let Err(error) = flushed {
            service
                .log_failure("failed to write the usage of applications: retrying at the next run", &error);
        }
    }
}

/// Measures the store, for the metrics.
pub async fn measure_store(service: Service) {
    loop {
        let measured = service.measure_store().await;
        service.record_job_run(Job::StoreMeasure, measured.is_ok());
        if let Err(error) = measured {
            service.log_failure("failed to measure the store", &error);
        }
        service.clock().sleep(MEASURE_EVERY).await;
    }
}

/// Warns about and deletes unused applications, and purges deleted ones that were not restored. The first run
/// is an hour after the start, when every active application has recorded a use.
pub async fn retire_unused_applications(service: Service) {
    loop {
        service.clock().elapse(UNUSED_APPLICATIONS_EVERY, SWEEP_BACKLOG_PAUSE).await;
        let result = retire_and_purge(&service).await;
        service.record_job_run(Job::UnusedApplications, result.is_ok());
        if let Err(error) = result {
            service.log_failure("failed to retire unused applications", &error);
        }
    }
}

/// Seals the secrets that the other service key has sealed again, while the key is changed. Secrets that a
/// node with the former configuration seals meanwhile are found in the next round.
pub async fn renew_seals(service: Service) {
    loop {
        if let Err(error) = renew_until_none_is_left(&service).await {
            service.log_failure("failed to seal secrets again", &error);
        }
        service.clock().elapse(RENEW_SEALS_EVERY, SWEEP_BACKLOG_PAUSE).await;
    }
}

/// Looks at all secrets, and once more after some were sealed again: the change of the key ends with a look
/// that finds none.
async fn renew_until_none_is_left(service: &Service) -> Result<(), service::Error> {
    let (mut renewed, mut lost) = renew_all_seals(service).await?;
    if renewed > 0 {
        tracing::info!(renewed, lost, "sealed secrets again; `lost` is those that no key opens");
        (renewed, lost) = renew_all_seals(service).await?;
    }
    if renewed > 0 {
        return Ok(());
    }
    match service.finish_key_change().await? {
        KeyChange::Done => tracing::info!(lost, "no secret needs the other service key"),
        KeyChange::NotBegun => {
            tracing::info!(lost, "the other service key has sealed nothing in this store yet");
        }
        KeyChange::Elsewhere => {
            tracing::info!(lost, "another node changes the service key at the same time");
        }
    }
    Ok(())
}

/// The number of secrets that were sealed again, and of those that no key opens.
async fn renew_all_seals(service: &Service) -> Result<(u64, u64), service::Error> {
    let (mut renewed, mut lost) = (0, 0);
    for kind in SealedKind::ALL {
        let mut after = Some(String::new());
        while let Some(from) = after {
            let seen = service.renew_seals(kind, &from).await?;
            (renewed, lost, after) = (renewed + seen.renewed, lost + seen.lost, seen.next);
        }
    }
    Ok((renewed, lost))
}

async fn retire_and_purge(service: &Service) -> Result<(), service::Error> {
    service.inspect_unused_applications().await?;
    while service.purge_applications().await? > 0 {
        service.clock().sleep(SWEEP_BACKLOG_PAUSE).await;
    }
    Ok(())
}

/// Reads the credentials that other nodes changed, twice a second, and drops them from the cache. While that
/// fails, every credential is checked in the store.
pub async fn watch_credentials(service: Service) {
    let mut failing = false;
    loop {
        let found = service.watch_credentials().await;
        service.record_job_run(Job::CredentialWatch, found.is_ok());
        if let (Err(error), false) = (&found, failing) {
            tracing::warn!(%error, "failed to read changed credentials: every check goes to the store");
        }
        failing = found.is_err();
        service.clock().sleep(WATCH_EVERY).await;
    }
}

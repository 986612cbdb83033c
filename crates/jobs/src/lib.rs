//! Background jobs. Each job but [`warm_up`] is a loop on the service's clock that never ends by itself. The server stops it
//! by dropping it between two steps.

pub mod webhooks;

use std::time::Duration;

use domain::limits::NODE_HEARTBEAT_MS;
use service::credentials::WATCH_EVERY;
use service::event_outbox::{OVERDUE_MAX, SETTLE_EVERY, TAKE_OVER_EVERY};
use service::housekeeping::{NodeStanding, SWEEP_LOAD};
use service::{Job, Service};
use tokio::sync::mpsc;

/// How often the sweeps run when they find little to do.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// The pause between sweeps while there is a backlog, so that users' writes go first.
pub const SWEEP_BACKLOG_PAUSE: Duration = Duration::from_millis(100);

/// How often the uses of applications that are due are written down.
pub const FLUSH_USES_EVERY: Duration = Duration::from_secs(60);
/// How often unused applications are looked at.
pub const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);

/// The pause after a heartbeat that was not written. Short, so that a node whose store comes back is not taken for dead, or
/// soon learns that it was.
const HEARTBEAT_RETRY: Duration = Duration::from_secs(1);

/// Writes this node's heartbeat every 5 seconds, and ends the sessions of dead nodes. Sends on `struck_off` when the other nodes
/// have declared this node dead, or must be expected to because it cannot reach the store. Its sessions are then recorded as ended,
/// so their sockets must close too.
pub async fn heartbeat(service: Service, struck_off: mpsc::Sender<()>) {
    let every = Duration::from_millis(NODE_HEARTBEAT_MS.unsigned_abs());
    let mut pause = every;
    loop {
        service.clock().sleep(pause).await;
        let standing = service.heartbeat().await;
        service.note_job(Job::Heartbeat, standing.is_ok());
        pause = if standing.is_ok() { every } else { HEARTBEAT_RETRY };
        match standing {
            Ok(NodeStanding::Alive) => {}
            Ok(NodeStanding::WasStruckOff) => {
                tracing::error!("this node was silent for too long: its sessions were ended");
                // Only full while the last notice is still being worked on.
                let _ = struck_off.try_send(());
            }
            Err(error) => {
                service.log_failure("the heartbeat was not written", &error);
                if service.is_cut_off() {
                    // Those that are left, if any: nobody can connect without the store.
                    let _ = struck_off.try_send(());
                }
            }
        }
    }
}

/// Reads what searches look in, so that the first one after the start need not wait for it.
pub async fn warm_up(service: Service) {
    if let Err(error) = service.read_categories().await {
        tracing::warn!(%error, "the categories were not read; the first search will");
    }
}

/// Deletes what is over: used and expired credentials, old sessions, old idempotency keys.
pub async fn sweep(service: Service) {
    loop {
        let swept = service.sweep().await;
        service.note_job(Job::Sweep, swept.is_ok());
        let backlog = match swept {
            Ok(swept) => {
                tracing::debug!(swept, "swept");
                swept >= SWEEP_LOAD.unsigned_abs()
            }
            Err(error) => {
                service.log_failure("a sweep failed", &error);
                false
            }
        };
        service.clock().sleep(if backlog { SWEEP_BACKLOG_PAUSE } else { SWEEP_EVERY }).await;
    }
}

/// Deletes behind the calls what this node has in the outbox of events and was heard.
pub async fn settle_events(service: Service) {
    loop {
        service.has_events_to_settle().await;
        service.clock().sleep(SETTLE_EVERY).await;
        let settled = service.settle_events().await;
        service.note_job(Job::OutboxSettle, settled.is_ok());
        if let Err(error) = settled {
            service.log_failure("the outbox of events was not settled: it is tried again", &error);
            service.clock().sleep(TAKE_OVER_EVERY).await;
        }
    }
}

/// Takes over events that were committed and never published, as of a node that died.
pub async fn take_over_events(service: Service) {
    loop {
        let found = service.take_over_overdue_events().await;
        service.note_job(Job::OutboxSweep, found.is_ok());
        if let Err(error) = &found {
            service.log_failure("unpublished events were not looked for", error);
        }
        if found.is_ok_and(|found| found < OVERDUE_MAX) {
            service.clock().sleep(TAKE_OVER_EVERY).await;
        }
    }
}

/// Writes down behind the calls which applications were used.
pub async fn flush_uses(service: Service) {
    loop {
        service.clock().sleep(FLUSH_USES_EVERY).await;
        let flushed = service.flush_uses().await;
        service.note_job(Job::UsesFlush, flushed.is_ok());
        if let Err(error) = flushed {
            service.log_failure(
                "the uses of applications were not written: they are kept for the next time",
                &error,
            );
        }
    }
}

/// Warns and deletes applications that go unused, and clears away those that nobody restored. The first look comes after
/// an hour, when every application that is in use has shown itself.
pub async fn look_at_unused_applications(service: Service) {
    loop {
        service.clock().sleep(LOOK_EVERY).await;
        let looked = look(&service).await;
        service.note_job(Job::UnusedApplications, looked.is_ok());
        if let Err(error) = looked {
            service.log_failure("the look at unused applications failed", &error);
        }
    }
}

async fn look(service: &Service) -> Result<(), service::Error> {
    service.look_at_unused_applications().await?;
    while service.purge_applications().await? > 0 {
        service.clock().sleep(SWEEP_BACKLOG_PAUSE).await;
    }
    Ok(())
}

/// Looks twice a second for credentials that other nodes changed, so that this one stops believing them. While it fails,
/// credentials are checked in the store.
pub async fn watch_credentials(service: Service) {
    let mut failing = false;
    loop {
        let found = service.watch_credentials().await;
        service.note_job(Job::CredentialWatch, found.is_ok());
        if let (Err(error), false) = (&found, failing) {
            tracing::warn!(%error, "changed credentials cannot be looked for: every check goes to the store");
        }
        failing = found.is_err();
        service.clock().sleep(WATCH_EVERY).await;
    }
}

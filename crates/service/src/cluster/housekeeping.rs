//! Background work of a node: heartbeats, ending the sessions of dead nodes, deleting expired rows.

use std::time::Duration;

use bus::Message;
use domain::limits::{
    ENDED_TOKENS_KEPT_MS, LIVE_WALK_GRACE_MS, LIVE_WALK_MS, MAIL_COUNTED_MS, NODE_DEAD_AFTER_MS,
    REFRESH_TOKEN_LIFETIME_MS, SESSION_URLS_KEPT_MS, SLOW_MODE_MAX_MS,
};
use domain::retention::{Retained, Retention};
use domain::{StoreId, Timestamp};
pub use store::queries::sweeps::SWEEP_ROWS_MAX;
use store::queries::sweeps::Sweep;
use store::{PartitionedTable, Tx};

use crate::cluster::job_metrics::{Job, JobRuns};
use crate::developer::application_usage::LOAD_KEPT_MS;
use crate::platform::idempotency::KEY_LIFETIME_MS;
use crate::realtime::lost_events::LOST_EVENTS_KEPT_MS;
use crate::work::Work;
use crate::{Error, Service};

/// Rows of the first batch of a kind that grows with use.
const BATCH_ROWS_FIRST: i64 = 200;
/// The fewest and the most rows of a batch.
const BATCH_ROWS_MIN: i64 = 50;
const BATCH_ROWS_MAX: i64 = 2_000;
/// A batch that takes longer makes the next one half as large. On SQLite other writes wait for a batch.
const BATCH_TARGET: Duration = Duration::from_millis(10);
/// Maximum number of batches of a kind in one sweep.
const BATCHES_MAX: usize = 20;

/// Whether the other nodes count this node as alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStatus {
    /// The other nodes count this node as alive.
    Alive,
    /// This node was silent for too long, so the other nodes ended its sessions. It is registered again,
    /// without sessions.
    WasDeclaredDead,
}

/// Which store this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreClaim {
    /// Its id.
    pub store_id: StoreId,
    /// The command that made it: `dev` or `serve`.
    pub made_by: String,
    /// Whether this call has marked it.
    pub is_new: bool,
}

impl Service {
    /// Registers this node, and ends the sessions in the store that belong to no living node. These are
    /// the sessions of an earlier run of this node and of nodes that are not registered. If this node
    /// uses the store `alone`, it deregisters every other node first. Returns the number of ended
    /// sessions.
    pub async fn join(&self, alone: bool) -> Result<u64, Error> {
        let (node, record) = (self.node().clone(), self.node_record());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            if alone {
                work.deregister_other_nodes(&node).await?;
            }
            work.deregister_node(&node).await?;
            let ended = work.disconnect_sessions_of_dead_nodes(now).await?;
            work.register_node(&record, now).await?;
            Ok(ended)
        })
        .await
    }

    /// Records that [`join`](Self::join) failed, so that the next heartbeat repeats the call.
    pub fn join_later(&self, alone: bool) {
        self.node_state().set_pending_join(Some(alone));
    }

    /// When the store was made, by the clock of its engine.
    pub async fn store_made_at(&self) -> Result<Timestamp, Error> {
        self.read(async |tx: &mut Tx| Ok(tx.store_made_at().await?)).await
    }

    /// Marks a new store as made by this command, `dev` or `serve`.
    pub async fn claim_store(&self, command: &'static str) -> Result<StoreClaim, Error> {
        self.write(async move |work: &mut Work<'_>| {
            let is_new = work.claim_store(command).await?;
            let made_by = work.store_made_by().await?.unwrap_or_else(|| command.to_owned());
            Ok(StoreClaim { store_id: work.store_identity().await?.store_id, made_by, is_new })
        })
        .await
    }

    /// The id of the store, which its backups and archives repeat.
    pub async fn store_id(&self) -> Result<StoreId, Error> {
        self.read(async move |tx: &mut Tx| Ok(tx.store_identity().await?.store_id)).await
    }

    /// Writes the heartbeat of this node, declares nodes dead that were silent for 20 seconds, and ends
    /// the sessions of dead nodes. For 20 seconds after a failed heartbeat this node declares no node
    /// dead, because the heartbeats of other nodes may have failed too.
    pub async fn heartbeat(&self) -> Result<NodeStatus, Error> {
        let asked = self.clock().monotonic();
        let status = self.beat().await;
        self.disk_is_full();
        match status {
            Ok(_) => self.node_state().store_answered(asked),
            Err(_) => self.node_state().heartbeat_failed(self.clock().monotonic()),
        }
        status
    }

    async fn beat(&self) -> Result<NodeStatus, Error> {
        if let Some(alone) = self.node_state().pending_join() {
            self.join(alone).await?;
            self.node_state().set_pending_join(None);
            return Ok(NodeStatus::Alive);
        }
        let (node, record, now) = (self.node().clone(), self.node_record(), self.now());
        let status = self
            .write(async move |work: &mut Work<'_>| {
                if work.node_heartbeat(&node, now).await? {
                    return Ok(NodeStatus::Alive);
                }
                // This also ends sessions that connected after this node was declared dead.
                work.disconnect_sessions_of_dead_nodes(now).await?;
                work.register_node(&record, now).await?;
                Ok(NodeStatus::WasDeclaredDead)
            })
            .await?;
        if self.node_state().may_declare_dead(self.clock().monotonic()) {
            // This needs a transaction of its own: two nodes that each lock their own row first would
            // deadlock.
            self.declare_silent_nodes_dead(now).await?;
        }
        Ok(status)
    }

    async fn declare_silent_nodes_dead(&self, now: Timestamp) -> Result<(), Error> {
        self.write(async move |work: &mut Work<'_>| {
            let dead = work.deregister_silent_nodes(now.plus_ms(-NODE_DEAD_AFTER_MS)).await?;
            // This runs also when no node is silent, because a node may have admitted one more session
            // after it was declared dead.
            let ended = work.disconnect_sessions_of_dead_nodes(now).await?;
            if !dead.is_empty() || ended > 0 {
                tracing::warn!(dead = dead.len(), ended, "nodes died: their sessions were disconnected");
            }
            // A silent node may only have lost the store and still have open sockets.
            dead.into_iter().for_each(|node| work.publish(Message::NodeDeclaredDead { node }));
            Ok(())
        })
        .await
    }

    /// Deregisters this node, and ends its remaining sessions.
    pub async fn leave(&self) -> Result<(), Error> {
        let node = self.node().clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            work.deregister_node(&node).await?;
            work.disconnect_sessions_of_dead_nodes(now).await?;
            Ok(())
        })
        .await
    }

    /// Deletes expired rows and returns their number. At most [`SWEEP_ROWS_MAX`] rows of one kind, or some
    /// batches of a kind that grows with use, are deleted, so more may be left.
    ///
    /// # Errors
    /// The first failure, after all kinds were tried.
    pub async fn sweep(&self) -> Result<u64, Error> {
        let now = self.now();
        let (mut swept, mut failed) = (0, None);
        for sweep in Sweep::ALL {
            match self.sweep_kind(sweep, now).await {
                Ok(rows) => swept += rows,
                Err(Error::Store(error)) if error.may_pass() => return Err(error.into()),
                // The other kinds need nothing of this one.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        swept += self.delete_expired_secrets().await?;
        swept += self.purge_applications().await?;
        swept += self.sweep_channels().await?;
        failed.map_or(Ok(swept), Err)
    }

    async fn sweep_kind(&self, sweep: Sweep, now: Timestamp) -> Result<u64, Error> {
        match expiry(sweep, now) {
            Expiry::At(limit) => self.sweep_once(sweep, limit, SWEEP_ROWS_MAX).await,
            Expiry::Retention(of) if !self.drops_partitions(sweep).await? => {
                self.sweep_in_batches(sweep, self.0.retention.oldest(of, now)).await
            }
            Expiry::Retention(_) => Ok(0),
        }
    }

    async fn sweep_once(&self, sweep: Sweep, before: Timestamp, rows: i64) -> Result<u64, Error> {
        self.write(async move |work: &mut Work<'_>| Ok(work.sweep_rows(sweep, before, rows).await?)).await
    }

    /// Deletes rows in batches. Each batch is a write of its own, and on SQLite the writes that wait come
    /// before the next one.
    async fn sweep_in_batches(&self, sweep: Sweep, before: Timestamp) -> Result<u64, Error> {
        let (mut swept, mut rows) = (0, BATCH_ROWS_FIRST);
        for _ in 0..BATCHES_MAX {
            let began = self.clock().monotonic();
            let deleted = self.sweep_once(sweep, before, rows).await?;
            swept += deleted;
            if deleted < rows.unsigned_abs() {
                break;
            }
            rows = next_batch(rows, self.clock().monotonic().saturating_sub(began));
        }
        Ok(swept)
    }

    /// Whether the rows are in partitions, which are dropped as a whole.
    async fn drops_partitions(&self, sweep: Sweep) -> Result<bool, Error> {
        match sweep {
            Sweep::ChatMessages => self.keep_partitions(PartitionedTable::ChatMessages).await,
            Sweep::Donations => self.keep_partitions(PartitionedTable::Donations).await,
            Sweep::Sessions => self.keep_partitions(PartitionedTable::Sessions).await,
            Sweep::WebhookDeliveries => self.keep_partitions(PartitionedTable::WebhookDeliveries).await,
            Sweep::ClaimChanges => self.keep_partitions(PartitionedTable::ClaimChanges).await,
            Sweep::ApplicationUsage => self.keep_partitions(PartitionedTable::ApplicationUsage).await,
            _ => Ok(false),
        }
    }

    /// How long rows are kept that grow with use.
    pub fn retention(&self) -> &Retention {
        &self.0.retention
    }

    /// Records a run of a job, and whether the run succeeded.
    pub fn record_job_run(&self, job: Job, done: bool) {
        self.0.jobs.record(job, done, self.now());
    }

    /// The runs of every job.
    pub fn job_runs(&self) -> impl Iterator<Item = JobRuns> + '_ {
        self.0.jobs.all()
    }
}

/// The rows of the next batch after one of `rows` rows that took so long.
fn next_batch(rows: i64, took: Duration) -> i64 {
    let next = if took > BATCH_TARGET { rows / 2 } else { rows * 2 };
    next.clamp(BATCH_ROWS_MIN, BATCH_ROWS_MAX)
}

/// When a row of a kind is deleted.
enum Expiry {
    /// It was over at this time.
    At(Timestamp),
    /// The retention table says when it is old.
    Retention(Retained),
}

fn expiry(sweep: Sweep, now: Timestamp) -> Expiry {
    Expiry::At(match sweep {
        Sweep::ChatMessages => return Expiry::Retention(Retained::ChatMessages),
        Sweep::Donations => return Expiry::Retention(Retained::Donations),
        Sweep::Sessions => return Expiry::Retention(Retained::EndedSessions),
        Sweep::WebhookNotices | Sweep::WebhookDeliveries => {
            return Expiry::Retention(Retained::WebhookMessages);
        }
        Sweep::ClaimChanges => return Expiry::Retention(Retained::ClaimChanges),
        Sweep::ApplicationUsage => return Expiry::Retention(Retained::ApplicationRequests),
        Sweep::AuditLog => return Expiry::Retention(Retained::AuditLog),
        // A used code is kept as long as its tokens may live, so that a second use is detected.
        Sweep::Codes => now.plus_ms(-REFRESH_TOKEN_LIFETIME_MS),
        Sweep::AccessTokens | Sweep::RefreshTokens | Sweep::EndedTokens => now.plus_ms(-ENDED_TOKENS_KEPT_MS),
        Sweep::SessionUrls => now.plus_ms(-SESSION_URLS_KEPT_MS),
        Sweep::BrowserSessions
        | Sweep::PasswordResets
        | Sweep::PendingSignIns
        | Sweep::FormDrafts
        | Sweep::UpstreamFlows
        | Sweep::Mails
        | Sweep::SessionChanges
        | Sweep::TemporaryRestrictions
        | Sweep::WebhookSecrets
        | Sweep::DeletedWebhooks
        | Sweep::WebhookRemains => now,
        Sweep::MailCounts => now.plus_ms(-MAIL_COUNTED_MS),
        Sweep::IdempotencyKeys => now.plus_ms(-KEY_LIFETIME_MS),
        Sweep::ChatSpeakers => now.plus_ms(-SLOW_MODE_MAX_MS),
        Sweep::ApplicationLoad => now.plus_ms(-LOAD_KEPT_MS),
        Sweep::LostEvents | Sweep::EventOutbox => now.plus_ms(-LOST_EVENTS_KEPT_MS),
        Sweep::LiveSpans => now.plus_ms(-LIVE_WALK_MS - LIVE_WALK_GRACE_MS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_until_they_take_long() {
        let (fast, slow) = (BATCH_TARGET, BATCH_TARGET + Duration::from_millis(1));
        assert_eq!(next_batch(BATCH_ROWS_FIRST, fast), 400);
        assert_eq!(next_batch(400, slow), 200);
        assert_eq!(next_batch(BATCH_ROWS_MAX, fast), BATCH_ROWS_MAX);
        assert_eq!(next_batch(BATCH_ROWS_MIN, slow), BATCH_ROWS_MIN);
        // The job takes a full round for a backlog.
        assert!(BATCH_ROWS_MIN * BATCHES_MAX as i64 >= SWEEP_ROWS_MAX);
    }
}

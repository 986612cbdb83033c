//! What nobody waits for: saying that this node lives, ending the sessions of dead ones, deleting what is over.

use bus::Message;
use domain::Timestamp;
use domain::limits::{
    DISCONNECTED_SESSION_VISIBLE_MS, ENDED_TOKENS_KEPT_MS, LIVE_WALK_GRACE_MS, LIVE_WALK_MS,
    NODE_DEAD_AFTER_MS, REFRESH_TOKEN_LIFETIME_MS, SESSION_URLS_KEPT_MS, SLOW_MODE_MAX_MS,
    WEBHOOK_DELIVERIES_KEPT_MS,
};
use store::queries::sweeps::{SWEEP_ROWS_MAX, Sweep};

use crate::platform::idempotency::KEY_LIFETIME_MS;
use crate::realtime::lost_events::LOST_EVENTS_KEPT_MS;
use crate::{Error, Service};

/// Whether the others still count this node among the living.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStatus {
    /// They do.
    Alive,
    /// It was silent for so long that they ended its sessions. It is back on the list now, without any.
    WasDeclaredDead,
}

impl Service {
    /// Puts this node on the list, and ends the sessions that are open on paper only: those of an earlier life of this
    /// node and of nodes that are not on the list. A node that has the store to itself strikes every other one off
    /// first. Gives how many sessions that were.
    pub async fn join(&self, alone: bool) -> Result<u64, Error> {
        let (node, record, now) = (self.node().clone(), self.node_record(), self.now());
        self.write(move |tx| {
            Box::pin(async move {
                if alone {
                    tx.forget_other_nodes(&node).await?;
                }
                tx.forget_node(&node).await?;
                let ended = tx.disconnect_sessions_of_dead_nodes(now).await?;
                tx.register_node(&record, now).await?;
                Ok(ended)
            })
        })
        .await
    }

    /// Says that [`join`](Self::join) failed: the next heartbeat does it.
    pub fn join_later(&self, alone: bool) {
        self.node_state().set_joins_later(Some(alone));
    }

    /// Marks a new store as made by this command, `dev` or `serve`, and says what made the store.
    pub async fn claim_store(&self, command: &'static str) -> Result<String, Error> {
        self.write(move |tx| {
            Box::pin(async move {
                tx.claim_store(command).await?;
                Ok(tx.store_made_by().await?.unwrap_or_else(|| command.to_owned()))
            })
        })
        .await
    }

    /// Says that this node lives, declares nodes dead that were silent for 20 seconds, and ends their sessions. After a
    /// heartbeat that failed no node is declared dead for as long, because the heartbeats of the others failed too.
    pub async fn heartbeat(&self) -> Result<NodeStatus, Error> {
        let asked = self.clock().monotonic();
        let standing = self.beat().await;
        self.disk_is_full();
        match standing {
            Ok(_) => self.node_state().store_answered(asked),
            Err(_) => self.node_state().heartbeat_failed(self.clock().monotonic()),
        }
        standing
    }

    async fn beat(&self) -> Result<NodeStatus, Error> {
        if let Some(alone) = self.node_state().joins_later() {
            self.join(alone).await?;
            self.node_state().set_joins_later(None);
            return Ok(NodeStatus::Alive);
        }
        let (node, record, now) = (self.node().clone(), self.node_record(), self.now());
        let standing = self
            .write(move |tx| {
                Box::pin(async move {
                    if tx.node_heartbeat(&node, now).await? {
                        return Ok(NodeStatus::Alive);
                    }
                    // Sessions that connected before this node heard of its end go too.
                    tx.disconnect_sessions_of_dead_nodes(now).await?;
                    tx.register_node(&record, now).await?;
                    Ok(NodeStatus::WasDeclaredDead)
                })
            })
            .await?;
        if self.node_state().has_listened(self.clock().monotonic()) {
            // In a transaction of its own: two nodes that each held their own row here would wait for each other's.
            self.strike_off_silent_nodes(now).await?;
        }
        Ok(standing)
    }

    async fn strike_off_silent_nodes(&self, now: Timestamp) -> Result<(), Error> {
        self.write_then_publish(move |tx| {
            Box::pin(async move {
                let dead = tx.forget_silent_nodes(now.plus_ms(-NODE_DEAD_AFTER_MS)).await?;
                // Also without a death: a node that has not heard of its own may have let in one session more.
                let ended = tx.disconnect_sessions_of_dead_nodes(now).await?;
                if !dead.is_empty() || ended > 0 {
                    tracing::warn!(dead = dead.len(), ended, "nodes died: their sessions were disconnected");
                }
                // One of them may only have lost the store, and still have sockets.
                let notices = dead.into_iter().map(|node| Message::NodeDeclaredDead { node }).collect();
                Ok(((), notices))
            })
        })
        .await
    }

    /// Takes this node off the list, and ends the sessions that it could not end one by one.
    pub async fn leave(&self) -> Result<(), Error> {
        let (node, now) = (self.node().clone(), self.now());
        self.write(move |tx| {
            Box::pin(async move {
                tx.forget_node(&node).await?;
                tx.disconnect_sessions_of_dead_nodes(now).await?;
                Ok(())
            })
        })
        .await
    }

    /// Deletes what is over. Gives how many rows that were; more may be left when it gives a full load of one kind.
    pub async fn sweep(&self) -> Result<u64, Error> {
        let now = self.now();
        let mut swept = 0;
        for sweep in Sweep::ALL {
            let before = over_before(sweep, now);
            swept +=
                self.write(move |tx| Box::pin(async move { Ok(tx.sweep(sweep, before).await?) })).await?;
        }
        swept += self.bury_expired_secrets().await?;
        swept += self.purge_applications().await?;
        swept += self.sweep_channels().await?;
        Ok(swept)
    }
}

/// Rows of one kind that a sweep deletes at the most.
pub const SWEEP_LOAD: i64 = SWEEP_ROWS_MAX;

fn over_before(sweep: Sweep, now: Timestamp) -> Timestamp {
    match sweep {
        // A used code is kept for as long as what it bought may live, so that its theft is noticed.
        Sweep::Codes => now.plus_ms(-REFRESH_TOKEN_LIFETIME_MS),
        Sweep::AccessTokens | Sweep::RefreshTokens | Sweep::EndedTokens => now.plus_ms(-ENDED_TOKENS_KEPT_MS),
        Sweep::SessionUrls => now.plus_ms(-SESSION_URLS_KEPT_MS),
        Sweep::BrowserSessions
        | Sweep::SessionChanges
        | Sweep::TemporaryRestrictions
        | Sweep::WebhookSecrets
        | Sweep::DeletedWebhooks
        | Sweep::WebhookRemains => now,
        Sweep::WebhookNotices | Sweep::WebhookDeliveries => now.plus_ms(-WEBHOOK_DELIVERIES_KEPT_MS),
        Sweep::Sessions => now.plus_ms(-DISCONNECTED_SESSION_VISIBLE_MS),
        Sweep::IdempotencyKeys => now.plus_ms(-KEY_LIFETIME_MS),
        Sweep::ChatSpeakers => now.plus_ms(-SLOW_MODE_MAX_MS),
        Sweep::LostEvents | Sweep::EventOutbox => now.plus_ms(-LOST_EVENTS_KEPT_MS),
        Sweep::LiveSpans => now.plus_ms(-LIVE_WALK_MS - LIVE_WALK_GRACE_MS),
    }
}

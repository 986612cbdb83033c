//! Waits of a shard in separate tasks: for changes from the store, and for confirmed interests. Each wait
//! ends with [`Command::CaughtUp`].

use std::sync::Arc;

use bus::Interest;
use domain::SessionKey;
use domain::session::{ChangeKind, SessionChange};
use socketio::CloseReason;
use tokio::sync::Semaphore;

use super::command::Command;
use super::shards::Shards;
use crate::config::{CATCH_UP_TRIES, CATCH_UPS_MAX, INTEREST_CONFIRM_TIMEOUT, backoff};
use crate::context::Context;
use crate::session::Session;

/// Reads missed changes from the store, for all shards of a node.
pub(crate) struct CatchUps {
    context: Arc<Context>,
    shards: Arc<Shards>,
    /// Limits the concurrent reads.
    permits: Semaphore,
}

impl CatchUps {
    pub(crate) fn new(context: Arc<Context>, shards: Arc<Shards>) -> Arc<Self> {
        Arc::new(Self { context, shards, permits: Semaphore::new(CATCH_UPS_MAX) })
    }

    /// Reads the changes that a session missed, and sends them to its shard.
    pub(super) async fn run(self: Arc<Self>, session: Arc<Session>, after: i64) {
        let Context { service, .. } = &*self.context;
        for tries in 0..CATCH_UP_TRIES {
            let read = match self.permits.acquire().await {
                Ok(_permit) => service.session_changes(session.key(), after).await,
                Err(_) => Err(service::Error::Internal("catch-ups are over")),
            };
            match read {
                Ok(changes) => {
                    let subscribed = changes.iter().filter(|change| change.kind == ChangeKind::Subscribed);
                    let channels = subscribed.map(|change| &change.subscription.channel_id);
                    let interests = channels.map(|channel| service.interest(channel)).collect();
                    let key = session.key().clone();
                    return self.wait_for_interests(key, changes, interests).await;
                }
                Err(error) => {
                    service.log_failure("failed to read the changes of a session", &error);
                    self.context.clock().sleep(backoff(tries)).await;
                }
            }
        }
        session.end(CloseReason::InternalError);
    }

    /// Waits until the bus has confirmed the interests, and sends the changes to the shard.
    pub(super) async fn wait_for_interests(
        &self,
        key: SessionKey,
        changes: Vec<SessionChange>,
        interests: Vec<Interest>,
    ) {
        let ready = async {
            for interest in &interests {
                interest.ready().await;
            }
        };
        tokio::select! {
            () = ready => {}
            () = self.context.clock().sleep(INTEREST_CONFIRM_TIMEOUT) => {}
        }
        // The interests are held until the shard holds its own.
        self.shards.send(&key.clone(), Command::CaughtUp { key, changes, interests }).await;
    }
}

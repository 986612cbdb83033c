//! Reconciles this node's sessions with the store about once a second. So a change reaches its session within
//! [`RECONCILE_EVERY`], even if the bus lost it, or if it was never published because the answer to its
//! commit was lost. A change that the bus has already delivered is ignored, by its version.
//!
//! The store marks a change as read. The change is then in the memory of this node, and its shard at least
//! has the number of the version to read. If the process dies, the session ends with it.

use domain::SessionKey;
use service::{Error, Job};
use socketio::CloseReason;
use tokio::sync::Notify;

use crate::config::RECONCILE_EVERY;
use crate::context::Context;
use crate::fanout::{Command, Shards};

/// Reconciles every second, and at once after a notification.
pub(super) async fn run(context: &Context, shards: &Shards, now: &Notify) {
    let mut failing = false;
    loop {
        let result = reconcile(context, shards).await;
        if let (Err(error), false) = (&result, failing) {
            tracing::warn!(%error, "failed to reconcile the sessions of this node with the store");
        }
        failing = result.is_err();
        context.service.record_job_run(Job::SessionWatch, !failing);
        tokio::select! {
            () = context.clock().sleep(RECONCILE_EVERY) => {}
            () = now.notified() => {}
        }
    }
}

async fn reconcile(context: &Context, shards: &Shards) -> Result<(), Error> {
    send_changes(context, shards).await?;
    close_ended(context, shards).await
}

/// Sends undelivered changes of subscriptions to the shards.
async fn send_changes(context: &Context, shards: &Shards) -> Result<(), Error> {
    loop {
        let (changes, taken) = context.service.take_undelivered_changes().await;
        let found_any = !changes.is_empty();
        for (key, change) in changes {
            shards.send(&key.clone(), Command::Change(Box::new((key, change)))).await;
        }
        taken?;
        if !found_any {
            return Ok(());
        }
    }
}

/// Closes sessions that were ended in the store. The store lists such a session until its own task has
/// recorded the end, so a session that has not joined its shard yet is found again.
async fn close_ended(context: &Context, shards: &Shards) -> Result<(), Error> {
    let mut after = SessionKey::stored(String::new());
    loop {
        let page = context.service.sessions_closing(&after).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = last.clone();
        for (key, reason) in page {
            // A newer node may write a reason that this version does not have. The session has ended anyway.
            let reason = CloseReason::from_name(&reason).unwrap_or(CloseReason::Revoked);
            shards.send(&key.clone(), Command::End(key, reason)).await;
        }
    }
}

//! The vigil: asks the store about once a second what became of this node's sessions, so that they learn of it whatever
//! the bus did. A change that the bus lost, or that was committed while its commit's answer was lost and so was never
//! published, is told here, within [`VIGIL_EVERY`]; a change that the bus brought before is ignored, by its number.
//!
//! A change is marked in the store when it is taken from there. By then it is in this node's memory: its shard knows at
//! least that it has something to read. If the process dies, the session has died with it.

use std::sync::Arc;

use domain::SessionKey;
use service::{Error, Job};
use socketio::CloseReason;

use crate::config::VIGIL_EVERY;
use crate::hub::Hub;
use crate::shard::Command;

/// Looks again and again: in time, and whenever somebody has reason to ask at once.
pub(crate) async fn keep(hub: Arc<Hub>) {
    let mut failing = false;
    loop {
        let looked = look(&hub).await;
        if let (Err(error), false) = (&looked, failing) {
            tracing::warn!(%error, "the store does not say what became of this node's sessions");
        }
        failing = looked.is_err();
        hub.service.note_job(Job::SessionWatch, !failing);
        tokio::select! {
            () = hub.service.clock().sleep(VIGIL_EVERY) => {}
            () = hub.look_now.notified() => {}
        }
    }
}

async fn look(hub: &Hub) -> Result<(), Error> {
    tell_changes(hub).await?;
    close_ended(hub).await
}

/// Changes of subscriptions.
async fn tell_changes(hub: &Hub) -> Result<(), Error> {
    loop {
        let (changes, taken) = hub.service.take_untold_changes().await;
        let told = !changes.is_empty();
        for (key, change) in changes {
            hub.tell(&key.clone(), Command::Change(Box::new((key, change)))).await;
        }
        taken?;
        if !told {
            return Ok(());
        }
    }
}

/// Sessions that somebody else ended. Each is told again until its own task has recorded its end, so one that has not
/// joined its shard yet is not forgotten.
async fn close_ended(hub: &Hub) -> Result<(), Error> {
    let mut after = SessionKey::stored(String::new());
    loop {
        let page = hub.service.sessions_closing(&after).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = last.clone();
        for (key, reason) in page {
            // Written by a newer node: all that matters is that the session is over.
            let reason = CloseReason::from_name(&reason).unwrap_or(CloseReason::Revoked);
            hub.tell(&key.clone(), Command::End(key, reason)).await;
        }
    }
}

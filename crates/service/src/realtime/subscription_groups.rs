//! Changes of subscriptions that share a transaction, on PostgreSQL (`group_commit.rs`).

use std::collections::HashSet;
use std::sync::Arc;

use bus::Message;
use domain::limits::SUBSCRIPTIONS_PER_SESSION_MAX;
use domain::session::{SessionChange, Subscription};
use store::queries::subscription_groups::{SessionBounds, SubscriptionRow};

use crate::commit_queue::CommitQueue;
use crate::group_commit::{GroupCommit, Locking, Written};
use crate::realtime::subscription_change::SubscriptionChange;
use crate::service::Inner;
use crate::work::Work;
use crate::{Error, Service};

/// Maximum number of changes kept for a connected session. Its node applies changes at once, so the node
/// is never this far behind.
pub(super) const CHANGES_KEPT: i64 = 1_000;
/// Old changes of a session are deleted after this number of new changes.
pub(super) const DELETE_EVERY: i64 = 100;

const BOUNDS: SessionBounds = SessionBounds {
    subscriptions: SUBSCRIPTIONS_PER_SESSION_MAX,
    changes_kept: CHANGES_KEPT,
    delete_every: DELETE_EVERY,
};

impl GroupCommit for SubscriptionChange {
    type Done = ();

    fn queue(inner: &Inner) -> &CommitQueue<Self, ()> {
        &inner.subscription_changes
    }

    /// A change that is alone finds out why it is refused, and waits for rows that others have locked. A
    /// second change of the same subscription is alone too.
    async fn write(
        _: &Service,
        work: &mut Work<'_>,
        requests: &[Arc<Self>],
        _: Locking,
    ) -> Result<Vec<Written<()>>, Error> {
        let now = work.now();
        let mut written: Vec<_> = requests.iter().map(|_| Written::Alone).collect();
        let rows: Vec<_> = requests.iter().map(|change| row(change)).collect();
        let mut places = work.lock_subscription_changes(&rows).await?;
        let mut subscriptions = HashSet::new();
        places.retain(|place| {
            let SubscriptionChange { caller, session_key, event, .. } = &*requests[*place];
            subscriptions.insert((session_key, &caller.channel_id, event.name()))
        });
        if places.is_empty() {
            return Ok(written);
        }
        let free: Vec<_> = places.iter().map(|place| rows[*place]).collect();
        for (place, number) in places.into_iter().zip(work.change_subscriptions(&free, BOUNDS, now).await?) {
            let Some((version, node)) = number else { continue };
            let SubscriptionChange { caller, session_key, event, kind } = (*requests[place]).clone();
            let subscription = Subscription { event_type: event, channel_id: caller.channel_id };
            let change = SessionChange { version, kind, subscription };
            work.publish(Message::SessionChanged { node, session_key, change });
            written[place] = Written::Done(());
        }
        Ok(written)
    }
}

fn row(change: &SubscriptionChange) -> SubscriptionRow<'_> {
    let SubscriptionChange { caller, session_key, event, kind } = change;
    SubscriptionRow { session_key, caller, event: *event, kind: *kind }
}

//! Follows and unfollows that share a transaction, on PostgreSQL (`group_commit.rs`).

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use store::queries::follow_groups::{FollowRow, FollowWritten};

use crate::channel::follow_change::{FollowChange, FollowKind};
use crate::commit_queue::CommitQueue;
use crate::group_commit::{GroupCommit, Locking, Written};
use crate::service::Inner;
use crate::work::Work;
use crate::{Error, Service};

impl GroupCommit for FollowChange {
    type Done = ();

    fn queue(inner: &Inner) -> &CommitQueue<Self, ()> {
        &inner.follow_changes
    }

    fn lock(&self) -> &str {
        self.channel.as_str()
    }

    /// A change that is alone finds out what does not exist, and moves the day of a follow. A second change
    /// of the same follow is alone too.
    async fn write(
        _: &Service,
        work: &mut Work<'_>,
        requests: &[Arc<Self>],
        locking: Locking,
    ) -> Result<Vec<Written<()>>, Error> {
        let now = work.now();
        let channels: BTreeSet<_> = requests.iter().map(|change| &change.channel).collect();
        let locked = work.lock_channels(&channels, locking == Locking::Wait).await?;
        let mut follows = HashSet::new();
        let written = requests.iter().map(|change| {
            if !locked.contains(&change.channel) {
                return Written::Locked;
            }
            let is_first = follows.insert((&change.channel, &change.follower));
            if is_first { Written::Done(()) } else { Written::Alone }
        });
        let mut written: Vec<_> = written.collect();
        let is_written = |place: &usize| matches!(written[*place], Written::Done(()));
        let places: Vec<usize> = (0..requests.len()).filter(is_written).collect();
        let row = |place: &usize| {
            let FollowChange { channel, follower, kind } = &*requests[*place];
            let follows_at = match kind {
                FollowKind::Follow { created } => Some(created.unwrap_or(now)),
                FollowKind::Unfollow => None,
            };
            FollowRow { channel, follower, follows_at }
        };
        if places.is_empty() {
            return Ok(written);
        }
        let rows: Vec<_> = places.iter().map(row).collect();
        for (place, done) in places.into_iter().zip(work.change_follows(&rows).await?) {
            let FollowWritten::Written { followed_since } = done else {
                written[place] = Written::Alone;
                continue;
            };
            if let FollowKind::Follow { created: Some(created) } = requests[place].kind
                && followed_since.is_some_and(|since| since != created)
            {
                written[place] = Written::Alone;
            }
        }
        Ok(written)
    }
}

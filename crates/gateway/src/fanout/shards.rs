//! The sending side of a node's shards. The key of a session decides which shard owns it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use domain::SessionKey;
use domain::session::Subscription;
use tokio::sync::{mpsc, oneshot};

use super::command::{Command, Join, PendingJoins};
use crate::config::INBOX_MAX;
use crate::session::Session;

/// The senders to the shards of a node.
pub(crate) struct Shards {
    senders: Box<[ShardSender]>,
    /// Number of changes whose session was not found in any shard. A session that joins while this number
    /// rises may have missed a change.
    unmatched_changes: Arc<AtomicU64>,
}

/// The sending end of one shard.
struct ShardSender {
    pending_joins: Arc<PendingJoins>,
    commands: mpsc::Sender<Command>,
}

/// The receiving end of one shard.
pub(crate) struct Inbox {
    pub(super) pending_joins: Arc<PendingJoins>,
    pub(super) commands: mpsc::Receiver<Command>,
}

impl Shards {
    /// A number of shards, at least one, and their inboxes.
    pub(crate) fn new(count: usize) -> (Arc<Self>, Vec<Inbox>) {
        let shard = |_| {
            let (commands, inbox) = mpsc::channel(INBOX_MAX);
            let pending_joins = Arc::<PendingJoins>::default();
            (
                ShardSender { pending_joins: pending_joins.clone(), commands },
                Inbox { pending_joins, commands: inbox },
            )
        };
        let (senders, inboxes): (Vec<_>, Vec<_>) = (0..count.max(1)).map(shard).unzip();
        (Arc::new(Self { senders: senders.into(), unmatched_changes: Arc::default() }), inboxes)
    }

    /// The shard that owns a session. There is at least one shard.
    fn shard_of(&self, key: &SessionKey) -> &ShardSender {
        let mut hash = DefaultHasher::new();
        key.hash(&mut hash);
        &self.senders[(hash.finish() % self.senders.len() as u64) as usize]
    }

    /// Sends a command to a session's shard. Returns `false` if the shard has stopped, because the gateway
    /// has.
    pub(crate) async fn send(&self, key: &SessionKey, command: Command) -> bool {
        self.shard_of(key).commands.send(command).await.is_ok()
    }

    /// Sends a command to every shard. Waits for room in each inbox, which slows the bus down (backpressure).
    pub(crate) async fn send_to_all(&self, command: impl Fn() -> Command) {
        for shard in &self.senders {
            let _ = shard.commands.send(command()).await;
        }
    }

    /// Passes a session to its shard. Returns `false` if the shard has stopped.
    pub(crate) fn join(&self, join: Join) -> bool {
        self.shard_of(&join.key).pending_joins.push(join)
    }

    /// Every session of this node that has joined its shard.
    pub(crate) async fn sessions(&self) -> Vec<Arc<Session>> {
        let mut sessions = Vec::new();
        for shard in &self.senders {
            let (reply, answer) = oneshot::channel();
            if shard.commands.send(Command::List(reply)).await.is_ok() {
                sessions.extend(answer.await.unwrap_or_default());
            }
        }
        sessions
    }

    /// A session of this node.
    pub(crate) async fn session(&self, key: &SessionKey) -> Option<Arc<Session>> {
        let (reply, answer) = oneshot::channel();
        self.send(key, Command::Find(key.clone(), reply)).await;
        answer.await.ok().flatten()
    }

    /// The subscriptions of some sessions, in their order. `None` for a session that is not on this node.
    pub(crate) async fn subscriptions(&self, keys: &[SessionKey]) -> Vec<Option<Vec<Subscription>>> {
        let mut found = vec![None; keys.len()];
        for shard in &self.senders {
            let of_shard = |(_, key): &(usize, &SessionKey)| std::ptr::eq(self.shard_of(key), shard);
            let (places, asked): (Vec<_>, Vec<_>) = keys.iter().enumerate().filter(of_shard).unzip();
            let (reply, answer) = oneshot::channel();
            let asked = asked.into_iter().cloned().collect();
            if shard.commands.send(Command::Subscriptions(asked, reply)).await.is_ok() {
                let answers = answer.await.unwrap_or_default();
                places.into_iter().zip(answers).for_each(|(place, answer): (usize, _)| found[place] = answer);
            }
        }
        found
    }

    /// Number of changes so far whose session was not found in any shard.
    pub(crate) fn unmatched_changes(&self) -> u64 {
        self.unmatched_changes.load(SeqCst)
    }

    /// The counter behind [`unmatched_changes`](Self::unmatched_changes).
    pub(super) fn unmatched_counter(&self) -> Arc<AtomicU64> {
        self.unmatched_changes.clone()
    }
}

//! The channels that this node subscribes to, shared by the holders of guards and the task of the receiving
//! connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{ChannelId, Timestamp};
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};

use crate::Guard;

/// The first number of a channel's subscription. The receiver itself uses smaller numbers.
const FIRST_SID: u64 = 16;

#[derive(Debug)]
pub(super) struct Interests {
    table: Mutex<Table>,
    /// Wakes the receiver to send changes to the server.
    pub(super) changed: Notify,
    /// The number of the last subscription that the server has confirmed. All earlier ones are confirmed too.
    confirmed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Table {
    held: HashMap<ChannelId, HeldChannel>,
    next_sid: u64,
    /// Changes that are still to be sent to the server. Empty without a connection, because a new connection
    /// sends every subscription.
    changes: Vec<Change>,
    is_connected: bool,
    /// The time of the first subscription that is still to be sent to the server.
    waiting_since: Option<Timestamp>,
}

/// A channel with guards.
#[derive(Debug)]
struct HeldChannel {
    sid: u64,
    guards: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Subscribe(ChannelId, u64),
    Unsubscribe(u64),
}

/// Changes to send to the server. The ping after them confirms every subscription up to `up_to`.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) changes: Vec<Change>,
    pub(super) up_to: u64,
    pub(super) waiting_since: Option<Timestamp>,
}

impl Interests {
    pub(super) fn new() -> Self {
        let table = Table {
            held: HashMap::new(),
            next_sid: FIRST_SID,
            changes: Vec::new(),
            is_connected: false,
            waiting_since: None,
        };
        Self { table: Mutex::new(table), changed: Notify::new(), confirmed: watch::Sender::new(0) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.table().held.len()
    }

    /// Adds a guard of a channel.
    pub(super) fn hold(self: &Arc<Self>, channel: &ChannelId, now: Timestamp) -> ChannelGuard {
        let mut table = self.table();
        let sid = match table.held.get_mut(channel) {
            Some(held) => {
                held.guards += 1;
                held.sid
            }
            None => {
                let sid = table.next_sid;
                table.next_sid += 1;
                table.held.insert(channel.clone(), HeldChannel { sid, guards: 1 });
                table.waiting_since.get_or_insert(now);
                table.push(Change::Subscribe(channel.clone(), sid));
                self.changed.notify_one();
                sid
            }
        };
        ChannelGuard { interests: self.clone(), channel: channel.clone(), sid }
    }

    fn release(&self, channel: &ChannelId) {
        let mut table = self.table();
        let Some(held) = table.held.get_mut(channel) else { return };
        held.guards -= 1;
        if held.guards == 0 {
            let sid = held.sid;
            table.held.remove(channel);
            if table.held.len() < table.held.capacity() / 4 {
                let kept = table.held.len() * 2;
                table.held.shrink_to(kept);
            }
            table.push(Change::Unsubscribe(sid));
            self.changed.notify_one();
        }
    }

    /// Marks the connection as up, and returns every subscription.
    pub(super) fn connected(&self) -> Changes {
        let mut table = self.table();
        table.is_connected = true;
        let held = table.held.iter();
        table.changes = held.map(|(channel, held)| Change::Subscribe(channel.clone(), held.sid)).collect();
        table.take()
    }

    /// The changes since the last call.
    pub(super) fn changes(&self) -> Changes {
        self.table().take()
    }

    /// Marks the connection as down until [`connected`](Self::connected).
    pub(super) fn disconnected(&self) {
        let mut table = self.table();
        table.is_connected = false;
        table.changes = Vec::new();
    }

    /// Marks every subscription up to this one as confirmed.
    pub(super) fn confirm(&self, up_to: u64) {
        self.confirmed.send_if_modified(|confirmed| {
            let is_new = *confirmed < up_to;
            *confirmed = up_to.max(*confirmed);
            is_new
        });
    }
}

impl Table {
    fn push(&mut self, change: Change) {
        if self.is_connected {
            self.changes.push(change);
        }
    }

    fn take(&mut self) -> Changes {
        Changes {
            changes: std::mem::take(&mut self.changes),
            up_to: self.next_sid - 1,
            waiting_since: self.waiting_since.take(),
        }
    }
}

/// Keeps a channel subscribed.
#[derive(Debug)]
pub(super) struct ChannelGuard {
    interests: Arc<Interests>,
    channel: ChannelId,
    sid: u64,
}

impl Guard for ChannelGuard {
    fn is_ready(&self) -> bool {
        *self.interests.confirmed.borrow() >= self.sid
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let mut confirmed = self.interests.confirmed.subscribe();
            // The guard holds the table, and the table holds the sender. So the wait cannot fail.
            let _ = confirmed.wait_for(|confirmed| *confirmed >= self.sid).await;
        })
    }
}

impl Drop for ChannelGuard {
    fn drop(&mut self) {
        self.interests.release(&self.channel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(id: &str) -> ChannelId {
        ChannelId::stored(id.into())
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_channel_with_several_guards_is_subscribed_once() {
        let interests = Arc::new(Interests::new());
        assert!(interests.connected().changes.is_empty());
        let one = interests.hold(&channel("c"), at(1));
        let two = interests.hold(&channel("c"), at(2));
        let changes = interests.changes();
        assert_eq!(changes.changes, [Change::Subscribe(channel("c"), FIRST_SID)]);
        assert_eq!((changes.up_to, changes.waiting_since), (FIRST_SID, Some(at(1))));
        drop(one);
        assert!(interests.changes().changes.is_empty());
        assert_eq!(interests.len(), 1);
        drop(two);
        assert_eq!(interests.changes().changes, [Change::Unsubscribe(FIRST_SID)]);
        assert_eq!(interests.len(), 0);
    }

    #[test]
    fn a_channel_that_was_released_is_confirmed_again() {
        let interests = Arc::new(Interests::new());
        drop(interests.hold(&channel("c"), at(1)));
        interests.confirm(interests.connected().up_to);
        let again = interests.hold(&channel("c"), at(2));
        assert!(!again.is_ready());
        interests.confirm(interests.changes().up_to);
        assert!(again.is_ready());
    }

    #[test]
    fn a_new_connection_sends_every_subscription() {
        let interests = Arc::new(Interests::new());
        interests.connected();
        let _kept = interests.hold(&channel("kept"), at(1));
        interests.disconnected();
        drop(interests.hold(&channel("left"), at(2)));
        let _new = interests.hold(&channel("new"), at(3));
        assert!(interests.changes().changes.is_empty());
        let mut changes = interests.connected().changes;
        changes.sort_by_key(|change| matches!(change, Change::Subscribe(_, sid) if *sid > FIRST_SID));
        let expected = [("kept", FIRST_SID), ("new", FIRST_SID + 2)];
        assert_eq!(changes, expected.map(|(id, sid)| Change::Subscribe(channel(id), sid)));
    }

    #[tokio::test]
    async fn a_guard_is_ready_when_the_server_has_confirmed() {
        let interests = Arc::new(Interests::new());
        let guard = Arc::new(interests.hold(&channel("c"), at(1)));
        let waiting = tokio::spawn({
            let guard = guard.clone();
            async move { guard.ready().await }
        });
        tokio::task::yield_now().await;
        assert!(!guard.is_ready() && !waiting.is_finished());
        interests.confirm(interests.connected().up_to);
        waiting.await.expect("it is ready");
        assert!(guard.is_ready());
        guard.ready().await;
    }
}

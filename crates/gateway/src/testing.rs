//! Access to internals for the tests of the gateway (feature `testing`).

use bus::Delivery;
use domain::SessionKey;
use socketio::CloseReason;

use crate::Gateway;

impl Gateway {
    /// Dispatches a delivery as if it came from the bus.
    pub async fn dispatch(&self, delivery: Delivery) {
        self.0.dispatcher.dispatch(delivery).await;
    }

    /// Ends every session that has joined its shard.
    pub async fn end_sessions(&self, reason: CloseReason) {
        for session in self.0.shards.sessions().await {
            session.end(reason);
        }
    }

    /// Makes the task of a session panic when it is polled next.
    ///
    /// # Panics
    /// When the session is not on this node.
    pub async fn panic_session(&self, key: &SessionKey) {
        self.0.shards.session(key).await.expect("the session is on this node").panic_for_test();
    }

    /// Number of sessions whose end is not recorded in the store yet.
    pub fn live_sessions(&self) -> usize {
        self.0.registry.live()
    }
}

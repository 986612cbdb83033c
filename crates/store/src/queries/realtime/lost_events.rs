//! Events that may be lost between nodes.

use domain::{ChannelId, MessageId, NodeId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const RECORD: &str = "
    INSERT INTO lost_events (lost_at, channel_id, node_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

const SINCE: &str = sql!(
    "SELECT ",
    LostEvents::COLUMNS,
    " FROM lost_events WHERE lost_at >= $1
    ORDER BY lost_at DESC, channel_id DESC, node_id DESC LIMIT $2"
);

/// Three ranges, each of an index that grows with time.
const CHANNELS_WITH_EVENTS: &str = "
    SELECT channel_id FROM chat_messages WHERE message_id >= $1
    UNION SELECT channel_id FROM donations WHERE donation_id >= $1
    UNION SELECT channel_id FROM subscribers WHERE told_at >= $2 AND told_at > 0
    LIMIT $3";

const RECORD_SUBSCRIPTION_EVENT: &str = "
    UPDATE subscribers SET told_at = $3 WHERE channel_id = $1 AND subscriber_channel_id = $2";

/// Events of a channel that a node gave up. The three fields are its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LostEvents {
    /// When the node gave them up, by its own clock.
    pub lost_at: Timestamp,
    /// The channel.
    pub channel_id: ChannelId,
    /// The node.
    pub node_id: NodeId,
}

columns!(LostEvents { lost_at: "lost_at", channel_id: "channel_id", node_id: "node_id" });

impl Tx {
    /// Records that events of a channel were given up. A repetition in the same millisecond changes nothing.
    pub async fn record_lost_events(&mut self, lost: &LostEvents) -> Result<(), StoreError> {
        let LostEvents { lost_at, channel_id, node_id } = lost;
        self.execute(RECORD, params![*lost_at, channel_id, node_id]).await?;
        Ok(())
    }

    /// Up to `limit` channels whose events were given up at `since` or later, newest first.
    pub async fn lost_events_since(
        &mut self,
        since: Timestamp,
        limit: i64,
    ) -> Result<Vec<LostEvents>, StoreError> {
        self.fetch_all(SINCE, params![since, limit]).await
    }

    /// Up to `limit` channels with events at `since` or later.
    pub async fn channels_with_events_since(
        &mut self,
        since: Timestamp,
        limit: i64,
    ) -> Result<Vec<ChannelId>, StoreError> {
        self.fetch_all(CHANNELS_WITH_EVENTS, params![&MessageId::bound_at(since), since, limit]).await
    }

    /// Records the time of the event of a paid subscription.
    pub async fn record_subscription_event(
        &mut self,
        channel: &ChannelId,
        subscriber: &ChannelId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(RECORD_SUBSCRIPTION_EVENT, params![channel, subscriber, now]).await?;
        Ok(())
    }
}

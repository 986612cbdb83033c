//! The latest messages and the notice of a chat, as the person of its channel sees them.

use domain::limits::SECOND_MS;
use domain::{ChannelId, MessageId, Timestamp};
use store::Tx;
use store::queries::chat_log::CHAT_LOG_ROWS_MAX;
pub use store::queries::chat_log::{LoggedMessage, PinnedNotice};

use crate::{Error, Service};

/// Messages may be committed this much later than others with later ids: they were posted on another node,
/// or in a longer transaction. Who asks for the messages since a time gets these again.
const LATE_MS: i64 = 5 * SECOND_MS;

impl Service {
    /// Up to `limit` messages of a chat, newest first, hidden ones included; with `since` those of that time
    /// and later, and a few seconds before. Those of the last 13 minutes are looked at, and those among the
    /// newest of all chats, which reach further back on a quiet service.
    pub async fn latest_messages(
        &self,
        channel: &ChannelId,
        since: Option<Timestamp>,
        limit: i64,
    ) -> Result<Vec<LoggedMessage>, Error> {
        let channel = channel.clone();
        let after = since.map_or(Timestamp::from_millis(0), |since| since.plus_ms(-LATE_MS));
        let (after, now) = (MessageId::bound_at(after), self.now());
        self.read(async move |tx: &mut Tx| {
            let (recent, from) = tx.recent_messages(&channel, &after, limit, now).await?;
            if recent.len() as i64 >= limit || from == after {
                return Ok(recent);
            }
            let latest = tx.latest_messages(&channel, &after, limit, CHAT_LOG_ROWS_MAX).await?;
            // Neither list has a gap.
            Ok(if latest.len() > recent.len() { latest } else { recent })
        })
        .await
    }

    /// The notice above a chat.
    pub async fn notice(&self, channel: &ChannelId) -> Result<Option<PinnedNotice>, Error> {
        let channel = channel.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.notice(&channel).await?)).await
    }
}

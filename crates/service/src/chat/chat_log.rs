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
    /// and later, and a few seconds before. They are the newest messages of all chats that are looked at, so
    /// a quiet chat of a busy service may have older ones.
    pub async fn latest_messages(
        &self,
        channel: &ChannelId,
        since: Option<Timestamp>,
        limit: i64,
    ) -> Result<Vec<LoggedMessage>, Error> {
        let channel = channel.clone();
        let after = since.map_or(Timestamp::from_millis(0), |since| since.plus_ms(-LATE_MS));
        let after = MessageId::bound_at(after);
        self.read(async move |tx: &mut Tx| {
            Ok(tx.latest_messages(&channel, &after, limit, CHAT_LOG_ROWS_MAX).await?)
        })
        .await
    }

    /// The notice above a chat.
    pub async fn notice(&self, channel: &ChannelId) -> Result<Option<PinnedNotice>, Error> {
        let channel = channel.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.notice(&channel).await?)).await
    }
}

//! Chat settings (`docs/spec/chat.md#settings`). They are enforced where messages are posted, in
//! [`chats`](crate::chat::chats).

use domain::ChannelId;
use domain::chat_settings::{ChatSettings, ChatSettingsChange};
use domain::refusal::Resource;

use crate::channel::channels::not_found;
use crate::work::Work;
use crate::{Error, Service};
use store::Tx;

impl Service {
    /// The settings of a channel's chat.
    pub async fn chat_settings(&self, channel: &ChannelId) -> Result<ChatSettings, Error> {
        let channel = channel.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.chat_settings(&channel).await?)).await
    }

    /// Changes the given settings. The change applies from the next message on.
    ///
    /// # Errors
    /// `Invalid` for a number that is not one of its allowed values.
    pub async fn change_chat_settings(
        &self,
        channel: &ChannelId,
        change: ChatSettingsChange,
    ) -> Result<(), Error> {
        change.check()?;
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            work.change_chat_settings(&channel, change).await.map_err(not_found(Resource::Channel))
        })
        .await
    }
}

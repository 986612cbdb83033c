//! The notice above a chat (`docs/spec/chat.md#notice`). A chat has one; the next takes its place.

use domain::chat::Notice;
use domain::refusal::Resource;
use domain::{ChannelId, Refusal};

use crate::channel::channels::not_found;
use crate::{Error, Service};

impl Service {
    /// Puts a notice above the chat of `channel`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] for a message that does not exist, is hidden, or stands in another chat.
    pub async fn put_notice(&self, channel: &ChannelId, notice: Notice) -> Result<(), Error> {
        let (channel, now) = (channel.clone(), self.now());
        self.write(move |tx| {
            Box::pin(async move {
                match notice {
                    Notice::Text(text) => {
                        tx.put_notice(&channel, &text, now).await.map_err(not_found(Resource::Channel))
                    }
                    Notice::Message(id) if tx.pin_message(&channel, &id, now).await? => Ok(()),
                    Notice::Message(_) => Err(Refusal::NotFound(Resource::Message).into()),
                }
            })
        })
        .await
    }
}

//! The notice above a chat (`docs/spec/chat.md#notice`). A chat has one notice; a new notice replaces it.
//! Only the studio takes it down.

use domain::chat::Notice;
use domain::refusal::Resource;
use domain::{ChannelId, Refusal};

use crate::channel::channels::not_found;
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Puts a notice above the chat of `channel`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] for a message that does not exist, is hidden or belongs to another chat.
    pub async fn put_notice(&self, channel: &ChannelId, notice: Notice) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            match notice {
                Notice::Text(text) => {
                    work.put_notice(&channel, &text, now).await.map_err(not_found(Resource::Channel))
                }
                Notice::Message(id) if work.pin_message(&channel, &id, now).await? => Ok(()),
                Notice::Message(_) => Err(Refusal::NotFound(Resource::Message).into()),
            }
        })
        .await
    }

    /// Takes the notice above the chat of `channel` down. A repeated call is no error.
    pub async fn take_notice_down(&self, channel: &ChannelId) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| Ok(work.delete_notice(&channel).await?)).await
    }
}

//! Withdrawal of consents (`docs/spec/authorization.md#consent`).

use domain::refusal::Resource;
use domain::{ChannelId, ClientId, Refusal};

use crate::identity::application_life::irrecoverable_since;
use crate::identity::tokens::end_tokens;
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Withdraws the consent of a user to an application. Its codes and tokens are deleted, and the
    /// subscriptions made with them are revoked. A missing consent is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application or the channel does not exist.
    pub async fn withdraw_consent(&self, client_id: &ClientId, channel_id: &ChannelId) -> Result<(), Error> {
        let (client_id, channel_id) = (client_id.clone(), channel_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            // A deleted application can be restored with its consents. A withdrawn consent must not be among
            // them.
            work.application_life(&client_id, irrecoverable_since(now))
                .await?
                .ok_or(Refusal::NotFound(Resource::Application))?;
            work.channels_by_id(std::slice::from_ref(&channel_id))
                .await?
                .pop()
                .ok_or(Refusal::NotFound(Resource::Channel))?;
            if work.lock_consent(&client_id, &channel_id).await?.is_none() {
                return Ok(());
            }
            end_tokens(work, &client_id, &channel_id, None).await?;
            work.delete_consent(&client_id, &channel_id).await?;
            Ok(())
        })
        .await
    }
}

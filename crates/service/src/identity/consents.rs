//! Consents taken back (`docs/spec/authorization.md#consent`).

use domain::refusal::Resource;
use domain::{ChannelId, ClientId, Refusal};

use crate::identity::application_life::gone_since;
use crate::identity::tokens::end_tokens;
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Withdraws what a user lets an application do: codes and tokens die at once, and the subscriptions that
    /// stood on them are revoked. Where there is no consent there is nothing to do, and that is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such application or channel.
    pub async fn withdraw_consent(&self, client_id: &ClientId, channel_id: &ChannelId) -> Result<(), Error> {
        let (client_id, channel_id) = (client_id.clone(), channel_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            // Also while it is deleted: what it is restored with must not hold what its user took back.
            work.application_life(&client_id, gone_since(now))
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

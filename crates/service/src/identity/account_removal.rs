//! The removal of an account by its person.

use domain::{ChannelId, Invalid, Rule};

use crate::identity::accounts::{Confirmation, lock_unchanged};
use crate::identity::two_factor::check_code_if_on;
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Removes the account of a signed-in person with its channel and its data, as
    /// [`delete_channel`](Self::delete_channel) does. `login` is typed by the person, as a confirmation, and
    /// `code` where the second step of the sign-in is on.
    ///
    /// # Errors
    /// `Invalid` naming `login`, `password` or `code`;
    /// [`Refusal::TooManyRequests`](domain::Refusal::TooManyRequests) after too many wrong codes;
    /// [`Refusal::Busy`](domain::Refusal::Busy).
    pub async fn delete_account(
        &self,
        channel: &ChannelId,
        login: &str,
        code: &str,
        confirmation: impl Into<Confirmation<'_>>,
    ) -> Result<(), Error> {
        let account = self.checked_account(channel, confirmation).await?;
        if account.login != login {
            return Err(Invalid::new("login", Rule::OwnLogin).into());
        }
        let (key, code) = (self.key().clone(), code.to_owned());
        let verdict = self
            .write(async move |work: &mut Work<'_>| {
                lock_unchanged(work, &account).await?;
                check_code_if_on(work, &key, &account.channel_id, &code).await
            })
            .await?;
        verdict.accepted()?;
        self.delete_channel(channel).await
    }
}

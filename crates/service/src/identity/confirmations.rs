//! Fresh proofs that the person at a browser owns the account (`docs/accounts.md#fresh-proof`). What a stolen
//! sign-in must not do asks for one that is not older than ten minutes.

use domain::limits::{BROWSER_SESSION_LIFETIME_MS, RECENT_SIGN_IN_MS};
use domain::refusal::TokenFault;
use domain::secret::BrowserToken;
use domain::upstream::UpstreamIdentity;
use domain::{ChannelId, Refusal, Timestamp};
use store::Tx;

use crate::identity::accounts::lock_unchanged;
use crate::identity::browser_sessions::still_signed_in;
use crate::identity::two_factor::check_code_if_on;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// From when on a sign-in or a confirmation is recent, and until when such a sign-in lasts at least. A
/// sign-in ends a fixed time after it began.
fn recent_since(now: Timestamp) -> (Timestamp, Timestamp) {
    let since = now.plus_ms(-RECENT_SIGN_IN_MS);
    (since, since.plus_ms(BROWSER_SESSION_LIFETIME_MS))
}

impl Service {
    /// Whether the person at this browser signed in, or proved to own the account, within ten minutes.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn is_confirmed(&self, channel: &ChannelId, browser: &BrowserToken) -> Result<bool, Error> {
        let (id, hash, now) = (channel.clone(), browser.hash(), self.now());
        self.read(async move |tx: &mut Tx| {
            Ok(tx.is_browser_confirmed(&hash, &id, recent_since(now), now).await?)
        })
        .await
    }

    /// Takes the password, and a code where the second step is on, as a fresh proof of the person at this
    /// browser. Gives the browser's new token. A copy of the former one is of no use.
    ///
    /// # Errors
    /// `Invalid` naming `password`, also for an account without one, or `code`;
    /// [`Refusal::TooManyRequests`] after too many wrong codes; [`Refusal::Busy`].
    pub async fn confirm(
        &self,
        channel: &ChannelId,
        browser: &BrowserToken,
        password: &str,
        code: &str,
    ) -> Result<BrowserToken, Error> {
        let account = self.checked_account(channel, password).await?;
        let (key, hash, code) = (self.key().clone(), browser.hash(), code.to_owned());
        let new = BrowserToken::generate(self.random(Purpose::Browser));
        let new_hash = new.hash();
        let verdict = self
            .write(async move |work: &mut Work<'_>| {
                lock_unchanged(work, &account).await?;
                let verdict = check_code_if_on(work, &key, &account.channel_id, &code).await?;
                if verdict.is_right() {
                    let now = work.now();
                    let is_in = work.confirm_browser(&hash, &account.channel_id, now, &new_hash).await?;
                    still_signed_in(is_in)?;
                }
                Ok::<_, Error>(verdict)
            })
            .await?;
        verdict.accepted().map(|()| new)
    }

    /// Checks the code of a person without a password, who proves the rest at a provider.
    ///
    /// # Errors
    /// `Invalid` naming `code`; [`Refusal::TooManyRequests`] after too many wrong codes.
    pub async fn check_second_step(&self, channel: &ChannelId, code: &str) -> Result<(), Error> {
        let (key, id, code) = (self.key().clone(), channel.clone(), code.to_owned());
        let verdict = self
            .write(async move |work: &mut Work<'_>| {
                if !work.lock_unbarred_channel(&id).await? {
                    return Err(Refusal::InvalidToken(TokenFault::Revoked).into());
                }
                check_code_if_on(work, &key, &id, &code).await
            })
            .await?;
        verdict.accepted()
    }

    /// Takes a sign-in at a provider as a fresh proof of the person at this browser, and gives the browser's
    /// new token: `None` if the account is not linked to this person of the provider.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn confirm_upstream(
        &self,
        channel: &ChannelId,
        browser: &BrowserToken,
        identity: &UpstreamIdentity,
    ) -> Result<Option<BrowserToken>, Error> {
        let (id, hash, person) = (channel.clone(), browser.hash(), identity.clone());
        let new = BrowserToken::generate(self.random(Purpose::Browser));
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            if work.upstream_identity(&person.issuer, &person.subject).await?.as_ref() != Some(&id) {
                return Ok(None);
            }
            Ok::<_, Error>(work.confirm_browser(&hash, &id, now, &new.hash()).await?.then_some(new))
        })
        .await
    }
}

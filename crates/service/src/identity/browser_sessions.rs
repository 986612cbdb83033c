//! The browsers in which a person is signed in (`docs/accounts.md#browsers`).

use domain::client_address::AddressBlock;
use domain::limits::{BROWSER_SESSION_LIFETIME_MS, USE_WRITTEN_EVERY_MS, USER_AGENT_BYTES_MAX};
use domain::refusal::{Resource, TokenFault};
use domain::secret::BrowserToken;
use domain::{BrowserSessionId, ChannelId, Refusal, Timestamp};
use store::Tx;
use store::queries::browser_sessions::{BrowserSession, BrowserUse, SignedIn};

use crate::work::Work;
use crate::{Error, Purpose, Service};

/// Browsers of a person on one page.
pub const BROWSERS_PAGE_SIZE: usize = 20;

/// A browser in which a person is signed in.
#[derive(Clone, Debug)]
pub struct PersonsBrowser {
    /// Its name in the list.
    pub session_id: BrowserSessionId,
    /// Whether it is the browser that asks.
    pub is_this: bool,
    /// When the person signed in.
    pub since: Timestamp,
    /// When it was last used, to the hour; `None` if it was not used yet.
    pub last_used_at: Option<Timestamp>,
    /// The `User-Agent` of that use. Untrusted.
    pub user_agent: String,
    /// The address of that use, of IPv6 the /64.
    pub address: String,
}

/// Some browsers of a person.
#[derive(Clone, Debug)]
pub struct PersonsBrowsers {
    /// The browsers, the latest sign-in first.
    pub browsers: Vec<PersonsBrowser>,
    /// Where the list goes on: end and name of the last browser.
    pub next: Option<(Timestamp, BrowserSessionId)>,
}

/// Refuses what a browser asks for whose sign-in has ended, or which got another token meanwhile.
pub(crate) fn still_signed_in(is_in: bool) -> Result<(), Refusal> {
    match is_in {
        true => Ok(()),
        false => Err(Refusal::InvalidToken(TokenFault::Revoked)),
    }
}

impl Service {
    /// Notes that a signed-in browser is used. At most one use an hour is written. A failure is logged only:
    /// the page that is asked for matters more.
    pub async fn note_browser_use(
        &self,
        token: &BrowserToken,
        person: &SignedIn,
        user_agent: &str,
        address: Option<AddressBlock>,
    ) {
        let now = self.now();
        let recorded_before = now.plus_ms(-USE_WRITTEN_EVERY_MS);
        if person.last_used_at > recorded_before {
            return;
        }
        let user_agent = user_agent.chars().filter(char::is_ascii).take(USER_AGENT_BYTES_MAX);
        let address = address.map(|address| address.to_string()).unwrap_or_default();
        let (hash, used) = (token.hash(), BrowserUse { user_agent: user_agent.collect(), address });
        let recorded = self.write(async move |work: &mut Work<'_>| {
            Ok::<_, Error>(work.record_browser_use(&hash, &used, now, recorded_before).await?)
        });
        if let Err(error) = recorded.await {
            self.log_failure("the use of a browser could not be recorded", &error);
        }
    }

    /// The browsers in which a person is signed in, from `after` on. `token` is that of the browser that
    /// asks, if the person does.
    pub async fn browser_sessions(
        &self,
        channel: &ChannelId,
        token: Option<&BrowserToken>,
        after: Option<(Timestamp, String)>,
    ) -> Result<PersonsBrowsers, Error> {
        let own = token.map(|token| BrowserSessionId::of(&token.hash()));
        let (channel, now) = (channel.clone(), self.now());
        // The first page begins with the latest time.
        let (time, id) = after.unwrap_or((Timestamp::LAST, String::new()));
        let size = i64::try_from(BROWSERS_PAGE_SIZE).unwrap_or(i64::MAX);
        let mut found = self
            .read(async move |tx: &mut Tx| {
                Ok(tx.browser_sessions(&channel, now, (time, &id), size + 1).await?)
            })
            .await?;
        let has_more = found.len() > BROWSERS_PAGE_SIZE;
        found.truncate(BROWSERS_PAGE_SIZE);
        let last = found.last().filter(|_| has_more);
        let next = last.map(|last| (last.expires_at, last.session_id.clone()));
        let browser = |session: BrowserSession| PersonsBrowser {
            is_this: own.as_ref() == Some(&session.session_id),
            session_id: session.session_id,
            since: session.expires_at.plus_ms(-BROWSER_SESSION_LIFETIME_MS),
            last_used_at: Some(session.last_used_at).filter(|used| used.as_millis() > 0),
            user_agent: session.user_agent,
            address: session.address,
        };
        Ok(PersonsBrowsers { browsers: found.into_iter().map(browser).collect(), next })
    }

    /// Signs one browser of a person out.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the person has no such browser.
    pub async fn end_browser_session(&self, channel: &ChannelId, id: &BrowserSessionId) -> Result<(), Error> {
        let (channel, id) = (channel.clone(), id.clone());
        self.write(async move |work: &mut Work<'_>| {
            match work.delete_browser_session_of(&channel, &id).await? {
                true => Ok(()),
                false => Err(Error::from(Refusal::NotFound(Resource::Path))),
            }
        })
        .await
    }

    /// Signs every browser of a person out but the one with this token, which gets the token that is
    /// returned.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist.
    pub async fn end_other_browser_sessions(
        &self,
        channel: &ChannelId,
        token: &BrowserToken,
    ) -> Result<BrowserToken, Error> {
        let (channel, hash) = (channel.clone(), token.hash());
        let new = BrowserToken::generate(self.random(Purpose::Browser));
        self.write(async move |work: &mut Work<'_>| {
            if !work.lock_channel(&channel).await? {
                return Err(Error::from(Refusal::NotFound(Resource::Channel)));
            }
            still_signed_in(work.renew_browser(&hash, &channel, &new.hash()).await?)?;
            work.delete_other_browser_sessions(&channel, &new.hash()).await?;
            Ok(new)
        })
        .await
    }
}

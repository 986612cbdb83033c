//! Channels as the operator sees them: listed, barred, deleted.

use domain::refusal::Resource;
use domain::{ChannelId, ClientId, MessageId, Refusal};
use store::Tx;
pub use store::queries::channel_admin::{ChannelDetails, ChannelFilter};
use store::queries::channel_deletions::DeletionStep;
use store::queries::session_ends::AdmittedBy;

use crate::cluster::housekeeping::SWEEP_LOAD;
use crate::identity::tokens::end_tokens;
use crate::live::lives;
use crate::work::Work;
use crate::{Error, Service};

/// How long after the deletion of a channel something that was begun in its name before may still be written.
const WRITERS_GONE_AFTER_MS: i64 = 10_000;
/// How far the clock of another node may be ahead, in whose time ids of messages begin.
const CLOCKS_DIFFER_MS: i64 = 60_000;
/// Loads that the call that deletes a channel waits for: a small one is gone by then.
const LOADS_AT_ONCE: usize = 40;

/// Deletions that are looked at together: while the oldest wait, others go on.
const DELETIONS_AT_ONCE: i64 = 100;

/// One page of the list of channels.
#[derive(Clone, Debug)]
pub struct ChannelPage {
    /// By their ids.
    pub channels: Vec<ChannelDetails>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

impl Service {
    /// A channel as the operator sees it.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is none.
    pub async fn channel_details(&self, channel: &ChannelId) -> Result<ChannelDetails, Error> {
        let channel = channel.clone();
        let details = self.read(async move |tx: &mut Tx| Ok(tx.channel_details(&channel).await?)).await?;
        Ok(details.ok_or(Refusal::NotFound(Resource::Channel))?)
    }

    /// Channels under a filter, by their ids.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor that is not of this list and filter.
    pub async fn list_channels(
        &self,
        filter: ChannelFilter,
        size: i64,
        next: Option<&str>,
    ) -> Result<ChannelPage, Error> {
        let context = context(&filter);
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let after = after.unwrap_or_default();
        let mut channels = self
            .read(async move |tx: &mut Tx| {
                // One more than the page shows whether there is a next one.
                Ok(tx.list_channel_details(&filter, &after, size + 1).await?)
            })
            .await?;
        let more = channels.len() > usize::try_from(size).unwrap_or(usize::MAX);
        if more {
            channels.pop();
        }
        let last = channels.last().filter(|_| more);
        let next = last.map(|last| self.cursors().seal(&context, last.channel_id.as_str()));
        Ok(ChannelPage { channels, next })
    }

    /// Bars the person of a channel: no sign-in, no browser session, no token and no session is left, on any
    /// node. Consents stay. Repeating it is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such channel.
    pub async fn bar_channel(&self, channel: &ChannelId) -> Result<(), Error> {
        let id = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            if !work.bar_channel(&id, now).await? {
                return Err(Error::from(Refusal::NotFound(Resource::Channel)));
            }
            work.delete_browser_sessions(&id).await?;
            Ok(())
        })
        .await?;
        tracing::info!(channel_id = %channel, "channel barred");
        self.end_credentials(channel, false).await
    }

    /// Lets the person of a channel sign in again. Repeating it is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such channel.
    pub async fn unbar_channel(&self, channel: &ChannelId) -> Result<(), Error> {
        let id = channel.clone();
        let there = self.write(async move |work: &mut Work<'_>| Ok(work.unbar_channel(&id).await?)).await?;
        if !there {
            return Err(Refusal::NotFound(Resource::Channel).into());
        }
        tracing::info!(channel_id = %channel, "channel unbarred");
        Ok(())
    }

    /// Deletes a channel with what hangs on it. It is hidden and barred at once, and off air; what hangs on
    /// it goes load by load, and what stays for others stands under an alias then. One that is not there is
    /// no error.
    pub async fn delete_channel(&self, channel: &ChannelId) -> Result<(), Error> {
        let (id, now) = (channel.clone(), self.now());
        let alias = ChannelId::stored(format!("deleted-{}", ChannelId::generate(now, self.random())));
        let until = MessageId::bound_at(now.plus_ms(WRITERS_GONE_AFTER_MS + CLOCKS_DIFFER_MS));
        let deleted = self
            .write(async move |work: &mut Work<'_>| {
                if work.channel_details(&id).await?.is_none() {
                    return Ok(false);
                }
                lives::end(work, &id).await?;
                if !work.mark_channel_deleted(&id, &alias, &until, now).await? {
                    return Ok(false);
                }
                work.delete_browser_sessions(&id).await?;
                Ok::<_, Error>(true)
            })
            .await?;
        if deleted {
            tracing::info!(channel_id = %channel, "channel deleted");
        }
        self.end_credentials(channel, true).await?;
        self.delete_loads(LOADS_AT_ONCE).await.map(drop)
    }

    /// Ends the tokens, session URLs and sessions of a person that is barred already, and the consents too
    /// where they are to go. Nobody can consent anew meanwhile.
    async fn end_credentials(&self, channel: &ChannelId, consents_too: bool) -> Result<(), Error> {
        let id = channel.clone();
        let clients = self.read(async move |tx: &mut Tx| Ok(tx.consented_to(&id).await?)).await?;
        for client_id in clients {
            self.end_tokens_of_barred(client_id, channel.clone(), consents_too).await?;
        }
        self.end_admitted(AdmittedBy::Channel(channel.clone())).await
    }

    async fn end_tokens_of_barred(
        &self,
        client_id: ClientId,
        channel: ChannelId,
        consent_too: bool,
    ) -> Result<(), Error> {
        self.write(async move |work: &mut Work<'_>| {
            if work.lock_consent(&client_id, &channel).await?.is_none() {
                return Ok(());
            }
            end_tokens(work, &client_id, &channel, None).await?;
            if consent_too {
                work.delete_consent(&client_id, &channel).await?;
            }
            Ok(())
        })
        .await
    }

    /// Goes on deleting channels. Gives a full load of a sweep while there is more to do at once.
    pub(crate) async fn sweep_channels(&self) -> Result<u64, Error> {
        let more = self.delete_loads(LOADS_AT_ONCE).await?;
        Ok(if more { SWEEP_LOAD.unsigned_abs() } else { 0 })
    }

    /// Deletes up to so many loads. Gives whether there is more to do at once.
    async fn delete_loads(&self, mut loads: usize) -> Result<bool, Error> {
        let channels = self
            .read(async move |tx: &mut Tx| Ok(tx.channels_being_deleted(DELETIONS_AT_ONCE).await?))
            .await?;
        for channel in channels {
            while self.delete_load(channel.clone()).await? == DeletionStep::More {
                loads = loads.saturating_sub(1);
                if loads == 0 {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    async fn delete_load(&self, channel: ChannelId) -> Result<DeletionStep, Error> {
        let writers_finished = self.now().plus_ms(-WRITERS_GONE_AFTER_MS);
        self.write(async move |work: &mut Work<'_>| {
            Ok(work.delete_channel_rows(&channel, writers_finished).await?)
        })
        .await
    }
}

/// What a cursor is bound to: the list and its filter, but not the size of a page.
fn context(filter: &ChannelFilter) -> String {
    let filter = match filter {
        ChannelFilter::All => None,
        ChannelFilter::Name(name) => Some(("name", name.as_str())),
        ChannelFilter::Login(login) => Some(("login", login.as_str())),
        ChannelFilter::Barred => Some(("barred", "")),
    };
    serde_json::json!(["channels", filter]).to_string()
}

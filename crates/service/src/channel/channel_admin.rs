//! The operator's calls on channels: list, bar, delete.

use domain::audit::AuditAction;
use domain::refusal::Resource;
use domain::{ChannelId, ClientId, MessageId, Refusal};
use store::Tx;
pub use store::queries::channel_admin::{ChannelDetails, ChannelFilter};
use store::queries::channel_deletions::DeletionStep;
use store::queries::session_ends::AdmittedBy;

use crate::cluster::housekeeping::SWEEP_ROWS_MAX;
use crate::identity::tokens::end_tokens;
use crate::live::lives;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// How long after the deletion of a channel a write that began before the deletion may still commit.
const WRITES_END_AFTER_MS: i64 = 10_000;
/// How far the clock of another node may be ahead. The ids of its messages begin with its time.
const CLOCK_SKEW_MAX_MS: i64 = 60_000;
/// Maximum number of batches that one call deletes. They suffice for a small channel.
const BATCHES_PER_CALL: usize = 40;

/// Maximum number of deletions in one read. If the oldest ones must wait, the call continues with the next.
const DELETIONS_PER_CALL: i64 = 100;

/// One page of the list of channels.
#[derive(Clone, Debug)]
pub struct ChannelPage {
    /// Ordered by id.
    pub channels: Vec<ChannelDetails>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

impl Service {
    /// The details of a channel.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist.
    pub async fn channel_details(&self, channel: &ChannelId) -> Result<ChannelDetails, Error> {
        let channel = channel.clone();
        let details = self.read(async move |tx: &mut Tx| Ok(tx.channel_details(&channel).await?)).await?;
        Ok(details.ok_or(Refusal::NotFound(Resource::Channel))?)
    }

    /// The channels that match a filter, ordered by id.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list or filter.
    pub async fn list_channels(
        &self,
        filter: ChannelFilter,
        size: i64,
        next: Option<&str>,
    ) -> Result<ChannelPage, Error> {
        let context = context(&filter);
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let after = after.unwrap_or_default();
        let channels = self
            .read(async move |tx: &mut Tx| Ok(tx.list_channel_details(&filter, &after, size + 1).await?))
            .await?;
        let (channels, next) = self.page(&context, channels, size, |channel| channel.channel_id.to_string());
        Ok(ChannelPage { channels, next })
    }

    /// Bars the person of a channel. The person cannot sign in, and all browser sessions, tokens and
    /// sessions of the person end on every node. Consents stay. A repeated call is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist.
    pub async fn bar_channel(&self, channel: &ChannelId) -> Result<(), Error> {
        let id = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            work.lock_account_of_lower_rank(&id).await?;
            if !work.bar_channel(&id, now).await? {
                return Err(Refusal::NotFound(Resource::Channel).into());
            }
            work.delete_browser_sessions(&id).await?;
            Ok(work.audit(AuditAction::ChannelBar, &id).await?)
        })
        .await?;
        tracing::info!(channel_id = %channel, "channel barred");
        self.end_credentials(channel, false).await
    }

    /// Lets the person of a channel sign in again. A repeated call is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist.
    pub async fn unbar_channel(&self, channel: &ChannelId) -> Result<(), Error> {
        let id = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            work.lock_account_of_lower_rank(&id).await?;
            if !work.unbar_channel(&id).await? {
                return Err(Refusal::NotFound(Resource::Channel).into());
            }
            Ok::<_, Error>(work.audit(AuditAction::ChannelUnbar, &id).await?)
        })
        .await?;
        tracing::info!(channel_id = %channel, "channel unbarred");
        Ok(())
    }

    /// Deletes a channel with its dependent rows. The first transaction hides and bars the channel, ends its
    /// live, and makes the person's applications unusable. The dependent rows are deleted in batches. Rows
    /// that are kept for others refer to an alias of the channel then. A missing channel is no error.
    pub async fn delete_channel(&self, channel: &ChannelId) -> Result<(), Error> {
        let (id, now) = (channel.clone(), self.now());
        let alias = ChannelId::generate(now, self.random(Purpose::Alias));
        let alias = ChannelId::stored(format!("deleted-{alias}"));
        let until = MessageId::bound_at(now.plus_ms(WRITES_END_AFTER_MS + CLOCK_SKEW_MAX_MS));
        let deleted = self
            .write(async move |work: &mut Work<'_>| {
                if work.channel_details(&id).await?.is_none() {
                    return Ok(None);
                }
                work.lock_account_of_lower_rank(&id).await?;
                lives::end(work, &id).await?;
                if !work.mark_channel_deleted(&id, &alias, &until, now).await? {
                    return Ok(None);
                }
                work.delete_browser_sessions(&id).await?;
                // Further applications follow with the rows of the channel.
                let owned = work.begin_purge_of_owned(&id, now).await?;
                for client_id in &owned {
                    work.delete_webhook(client_id, now).await?;
                }
                work.audit(AuditAction::ChannelDelete, &id).await?;
                Ok::<_, Error>(Some(owned))
            })
            .await?;
        if let Some(owned) = deleted {
            tracing::info!(channel_id = %channel, "channel deleted");
            for client_id in owned {
                self.end_admitted(AdmittedBy::Application(client_id)).await?;
            }
        }
        self.end_credentials(channel, true).await?;
        self.delete_batches(BATCHES_PER_CALL).await.map(drop)
    }

    /// Ends the tokens, session URLs and sessions of a barred person, and with `consents_too` the consents.
    /// A barred person cannot give a new consent.
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

    /// Continues the deletions of channels. Returns the size of a full sweep while more rows can be deleted
    /// at once.
    pub(crate) async fn sweep_channels(&self) -> Result<u64, Error> {
        let more = self.delete_batches(BATCHES_PER_CALL).await?;
        Ok(if more { SWEEP_ROWS_MAX.unsigned_abs() } else { 0 })
    }

    /// Deletes up to `batches` batches. Returns whether more rows can be deleted at once.
    async fn delete_batches(&self, mut batches: usize) -> Result<bool, Error> {
        let channels = self
            .read(async move |tx: &mut Tx| Ok(tx.channels_being_deleted(DELETIONS_PER_CALL).await?))
            .await?;
        for channel in channels {
            while self.delete_batch(channel.clone()).await? == DeletionStep::More {
                batches = batches.saturating_sub(1);
                if batches == 0 {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    async fn delete_batch(&self, channel: ChannelId) -> Result<DeletionStep, Error> {
        let writes_ended = self.now().plus_ms(-WRITES_END_AFTER_MS);
        self.write(async move |work: &mut Work<'_>| {
            Ok(work.delete_channel_rows(&channel, writes_ended).await?)
        })
        .await
    }
}

/// The context that a cursor is bound to: the list and its filter, but not the size of a page.
fn context(filter: &ChannelFilter) -> String {
    let filter = match filter {
        ChannelFilter::All => None,
        ChannelFilter::Name(name) => Some(("name", name.as_str())),
        ChannelFilter::Login(login) => Some(("login", login.as_str())),
        ChannelFilter::Barred => Some(("barred", "")),
    };
    serde_json::json!(["channels", filter]).to_string()
}

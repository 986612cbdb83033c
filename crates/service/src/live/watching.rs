//! Watching for drops: the platform's reports of watched minutes, and the progress of viewers (the
//! platform API's drops).

use std::sync::Arc;

use domain::drops::{Campaign, RewardProgress};
use domain::refusal::Resource;
use domain::{CampaignId, CategoryId, ChannelId, Invalid, Refusal, RewardId, Rule};
use store::Tx;
use store::queries::locks::Shared;
pub use store::queries::watching::Watched;
use store::queries::watching_groups::{AddedMinutes, MinutesReport};

use crate::commit_queue::CommitQueue;
use crate::group_commit::{GroupCommit, Locking, Written};
pub use crate::live::watching_reports::{Viewers, Watching, WatchingReport};
use crate::platform::idempotency::{self, IdempotencyKey, StoredAnswer};
use crate::service::Inner;
use crate::work::Work;
use crate::{Error, Service};

/// The progress of a viewer in a campaign.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Minutes watched.
    pub minutes: i64,
    /// The rewards of the campaign, each with the viewer's progress.
    pub rewards: Vec<RewardProgress>,
}

impl Service {
    /// Adds watched minutes to every campaign for which they count. They count for a running campaign
    /// with the category of the channel's live, if the channel takes part in the campaign.
    ///
    /// # Errors
    /// `Invalid` for an unknown channel or viewer, for no viewer or more than 100, and for less than 1
    /// minute or more than a day.
    pub async fn report_watching(
        &self,
        report: WatchingReport,
        key: Option<IdempotencyKey>,
    ) -> Result<Watching, Error> {
        if key.is_none() {
            report.check()?;
            if let Some(watching) = self.share_commit(report.clone()).await {
                return watching;
            }
        }
        self.write(async move |work: &mut Work<'_>| watch_once(work, &report, key.as_ref()).await).await
    }

    /// Returns a campaign, with the rewards that can be claimed.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the campaign does not exist.
    pub async fn campaign(&self, id: CampaignId) -> Result<Campaign, Error> {
        self.snapshot(async move |tx: &mut Tx| campaign(tx, &id).await).await
    }

    /// The first reward that a viewer could claim now, of any campaign.
    pub async fn first_claimable(&self, viewer: &ChannelId) -> Result<Option<(CampaignId, RewardId)>, Error> {
        let (viewer, now) = (viewer.clone(), self.now());
        self.read(async move |tx: &mut Tx| Ok(tx.first_claimable(&viewer, now).await?)).await
    }

    /// The progress of a viewer in a campaign.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the campaign or the viewer does not exist.
    pub async fn drops_progress(&self, campaign: CampaignId, viewer: ChannelId) -> Result<Progress, Error> {
        self.snapshot(async move |tx: &mut Tx| {
            let minutes =
                tx.watched_minutes(&campaign, &viewer).await?.ok_or(Refusal::NotFound(Resource::Campaign))?;
            Ok(Progress { minutes, rewards: tx.reward_progress(&campaign, Some(&viewer)).await? })
        })
        .await
    }
}

impl GroupCommit for WatchingReport {
    type Done = Watching;

    fn queue(inner: &Inner) -> &CommitQueue<Self, Watching> {
        &inner.watching_reports
    }

    fn rows(&self) -> usize {
        self.viewers.ids().len()
    }

    /// The call that is alone finds out which channel does not exist.
    async fn write(
        _: &Service,
        work: &mut Work<'_>,
        requests: &[Arc<Self>],
        _: Locking,
    ) -> Result<Vec<Written<Watching>>, Error> {
        let now = work.now();
        let reports: Vec<_> = requests
            .iter()
            .map(|report| MinutesReport {
                channel: &report.channel_id,
                viewers: report.viewers.ids(),
                minutes: report.minutes,
            })
            .collect();
        let written = |added: Option<AddedMinutes>| {
            added.map_or(Written::Alone, |AddedMinutes { on_air, category_id, watched }| {
                Written::Done(Watching { on_air, category_id, watched })
            })
        };
        Ok(work.add_reported_minutes(&reports, now).await?.into_iter().map(written).collect())
    }
}

/// Applies one report, inside a transaction. A report with a key counts once.
async fn watch_once(
    work: &mut Work<'_>,
    report: &WatchingReport,
    key: Option<&IdempotencyKey>,
) -> Result<Watching, Error> {
    // Reports lock their rows in one order, but a batch locks the rows of one line after another.
    work.share_lock(Shared::WatchedMinutes).await?;
    if let Some(earlier) = idempotency::claim_without_answer(work, key).await? {
        return Ok(earlier);
    }
    let watching = watch(work, report).await?;
    idempotency::answer(work, key, &watching).await?;
    Ok(watching)
}

/// Applies one report, inside a transaction.
pub(crate) async fn watch(work: &mut Work<'_>, report: &WatchingReport) -> Result<Watching, Error> {
    let now = work.now();
    report.check()?;
    let WatchingReport { channel_id, viewers, minutes } = report;
    let Some(channel) = work.watchable(channel_id, viewers.ids()).await? else {
        return Err(Invalid::new("channelId", Rule::KnownChannel).into());
    };
    if i64::try_from(viewers.ids().len()) != Ok(channel.viewers) {
        return Err(Invalid::new(viewers.field(), Rule::KnownChannel).into());
    }
    let mut watched = work.accrue(channel_id, viewers.ids(), *minutes, now).await?;
    watched.sort();
    Ok(Watching { on_air: channel.on_air, category_id: channel.category_id, watched })
}

async fn campaign(tx: &mut Tx, id: &CampaignId) -> Result<Campaign, Error> {
    let mut campaign = tx.campaign(id).await?.ok_or(Refusal::NotFound(Resource::Campaign))?;
    if let Some(channels) = &mut campaign.channels {
        *channels = tx.campaign_channels(id).await?;
    }
    let rewards = tx.reward_progress(id, None).await?;
    campaign.rewards = rewards.into_iter().map(|progress| progress.reward).collect();
    Ok(campaign)
}

/// The text form of [`Watching`] that an idempotency key stores.
type StoredWatching = (bool, Option<String>, Vec<(String, String, i64)>);

impl StoredAnswer for Watching {
    fn to_text(&self) -> String {
        let watched = |each: &Watched| (each.campaign_id.to_string(), each.viewer.to_string(), each.minutes);
        let category = self.category_id.as_ref().map(CategoryId::to_string);
        let stored: StoredWatching = (self.on_air, category, self.watched.iter().map(watched).collect());
        // Writing strings, numbers and booleans as JSON never fails.
        serde_json::to_string(&stored).unwrap_or_default()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (on_air, category, watched): StoredWatching = serde_json::from_str(text).ok()?;
        let watched = watched.into_iter().map(|(campaign, viewer, minutes)| Watched {
            campaign_id: CampaignId::stored(campaign),
            viewer: ChannelId::stored(viewer),
            minutes,
        });
        Some(Self { on_air, category_id: category.map(CategoryId::stored), watched: watched.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_answer_is_read_as_it_was_written() {
        let watched = Watched {
            campaign_id: CampaignId::stored("c".to_owned()),
            viewer: ChannelId::stored("v".to_owned()),
            minutes: 7,
        };
        for watching in [
            Watching { on_air: false, category_id: None, watched: Vec::new() },
            Watching {
                on_air: true,
                category_id: Some(CategoryId::stored("스타".to_owned())),
                watched: vec![watched.clone(), watched],
            },
        ] {
            assert_eq!(Watching::from_text(&watching.to_text()), Some(watching));
        }
        assert_eq!(Watching::from_text(""), None);
    }
}

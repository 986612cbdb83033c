//! Watching for drops: what the platform reports of it, and how far it has brought a viewer (the platform
//! API's drops).

use std::slice;

use domain::drops::{Campaign, RewardProgress};
use domain::limits::{WATCHING_MINUTES_MAX, WATCHING_VIEWERS_MAX};
use domain::refusal::Resource;
use domain::{CampaignId, CategoryId, ChannelId, Invalid, Refusal, Rule};
use store::Tx;
use store::queries::locks::Shared;
pub use store::queries::watching::Watched;

use crate::platform::idempotency::{self, IdempotencyKey, StoredAnswer};
use crate::work::Work;
use crate::{Error, Service};

/// How often a report is tried that the database ended for another transaction.
const REPORT_TRIES: u32 = 3;

/// Watching as the platform reports it. That as many minutes have passed is the platform's word: several
/// reports may come at once, and late.
#[derive(Clone, Debug)]
pub struct WatchingReport {
    /// Whose live was watched.
    pub channel_id: ChannelId,
    /// Who watched it.
    pub viewers: Viewers,
    /// For how many minutes.
    pub minutes: i64,
}

/// Those who watched.
#[derive(Clone, Debug)]
pub enum Viewers {
    /// One of them.
    One(ChannelId),
    /// Up to 100 different ones.
    Many(Vec<ChannelId>),
}

/// What came of a report of watching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watching {
    /// Whether the channel was on air.
    pub on_air: bool,
    /// The category of what it had on air.
    pub category_id: Option<CategoryId>,
    /// What the viewers now have in the campaigns for which the minutes counted.
    pub watched: Vec<Watched>,
}

/// How far a viewer has come in a campaign.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Minutes watched.
    pub minutes: i64,
    /// What can be claimed, and whether it was.
    pub rewards: Vec<RewardProgress>,
}

impl Service {
    /// Adds minutes that were watched to every campaign that they count for now. One that they count for
    /// runs, has the category of what the channel has on air, and the channel takes part in it.
    ///
    /// # Errors
    /// `Invalid` for an unknown channel or viewer, no viewer or more than 100, and for less than 1 minute or
    /// more than a day.
    pub async fn report_watching(
        &self,
        report: WatchingReport,
        key: Option<IdempotencyKey>,
    ) -> Result<Watching, Error> {
        let mut tries = 1..REPORT_TRIES;
        loop {
            let (report, key) = (report.clone(), key.clone());
            let watching = self
                .write(async move |work: &mut Work<'_>| watch_once(work, &report, key.as_ref()).await)
                .await;
            match watching {
                // A node of an earlier version takes the minutes of a batch line by line, and locks nothing
                // before.
                Err(Error::Store(error)) if error.is_deadlock() && tries.next().is_some() => {}
                watching => return watching,
            }
        }
    }

    /// A campaign, with the rewards that can be claimed.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is none.
    pub async fn campaign(&self, id: CampaignId) -> Result<Campaign, Error> {
        self.snapshot(async move |tx: &mut Tx| campaign(tx, &id).await).await
    }

    /// How far a viewer has come in a campaign.
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

impl Viewers {
    pub(crate) fn ids(&self) -> &[ChannelId] {
        match self {
            Self::One(id) => slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }

    fn field(&self) -> &'static str {
        match self {
            Self::One(_) => "viewerChannelId",
            Self::Many(_) => "viewerChannelIds",
        }
    }
}

impl WatchingReport {
    fn check(&self) -> Result<(), Invalid> {
        if !(1..=WATCHING_VIEWERS_MAX).contains(&self.viewers.ids().len()) {
            let rule = Rule::Items { min: 1, max: WATCHING_VIEWERS_MAX };
            return Err(Invalid::new(self.viewers.field(), rule));
        }
        if !(1..=WATCHING_MINUTES_MAX).contains(&self.minutes) {
            return Err(Invalid::new("minutes", Rule::Integer { min: 1, max: WATCHING_MINUTES_MAX }));
        }
        Ok(())
    }
}

/// One report that its key lets count once, inside a transaction.
async fn watch_once(
    work: &mut Work<'_>,
    report: &WatchingReport,
    key: Option<&IdempotencyKey>,
) -> Result<Watching, Error> {
    // Reports add to their rows in one order, but a batch adds to those of one line after the other.
    work.share_lock(Shared::WatchedMinutes).await?;
    if let Some(earlier) = idempotency::claim_without_answer(work, key).await? {
        return Ok(earlier);
    }
    let watching = watch(work, report).await?;
    idempotency::answer(work, key, &watching).await?;
    Ok(watching)
}

/// One report, inside a transaction.
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
        // Strings, numbers and booleans can always be written as JSON.
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

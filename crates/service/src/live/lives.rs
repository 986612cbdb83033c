//! Lives: on air, off air, and the list of them (`docs/spec/lives.md#lives`).

use domain::chat::check_web_address;
use domain::limits::{CONCURRENT_USERS_MAX, LIVE_WALK_MS};
use domain::live::{CategoryChoice, check_title, distinct_tags};
use domain::refusal::Resource;
use domain::{CategoryId, ChannelId, ClientId, Invalid, Refusal, Rule, Timestamp};
use store::Tx;
use store::queries::broadcast_settings::BroadcastSetting;
use store::queries::lives::{FirstLives, LivePlace, LiveVersions};
pub use store::queries::lives::{LiveListing, LiveOnAir, LiveShow};
use store::queries::locks::Shared;

use crate::work::Work;
use crate::{Error, Service};

/// A live as the platform reports it. Fields that are not given come from the broadcast setting.
#[derive(Clone, Debug)]
pub struct LiveReport {
    /// Its title.
    pub title: Option<String>,
    /// The address of its picture.
    pub thumbnail_image_url: Option<String>,
    /// The current number of viewers.
    pub concurrent_user_count: i64,
    /// Whether it is for adults.
    pub adult: bool,
    /// Its category.
    pub category: CategoryChoice,
    /// Its tags.
    pub tags: Option<Vec<String>>,
}

/// What the store otherwise gives a new live.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveStart {
    /// Its number.
    pub live_id: Option<i64>,
    /// Since when it is on air.
    pub opened_at: Option<Timestamp>,
}

/// A page of the live list.
#[derive(Debug)]
pub struct LivePage {
    /// Its lives.
    pub lives: Vec<LiveListing>,
    /// The cursor of the next page. `None` on the last page.
    pub next: Option<String>,
}

impl Service {
    /// Puts a channel on air, or changes its live. A changed live keeps its number and its start time. A
    /// report without a change writes nothing.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist; `Invalid` for a wrong field.
    pub async fn put_live(&self, channel: &ChannelId, report: LiveReport) -> Result<(), Error> {
        let report = report.checked()?;
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| put(work, &channel, &report).await).await
    }

    /// [`put_live`](Self::put_live) with the start of a live that began in another sandbox.
    ///
    /// # Errors
    /// As [`put_live`](Self::put_live).
    pub async fn put_live_since(
        &self,
        channel: &ChannelId,
        report: LiveReport,
        start: LiveStart,
    ) -> Result<(), Error> {
        let report = report.checked()?;
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| put_since(work, &channel, &report, start).await).await
    }

    /// The live of a channel; `None` when it is off air.
    pub async fn live_on_air(&self, channel: &ChannelId) -> Result<Option<LiveOnAir>, Error> {
        let channel = channel.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.live_on_air(&channel).await?)).await
    }

    /// Takes a channel off air. Nothing happens when the channel is not on air.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist.
    pub async fn end_live(&self, channel: &ChannelId) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| end(work, &channel).await).await
    }

    /// Returns a page of the live list, most viewers first, then by number. A walk from cursor to cursor
    /// keeps the order of its first page, also when viewer counts change. A live that stays on air is
    /// returned exactly once. A live that ended is left out. A live that went on air after the first page
    /// is not in this walk.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor that is not of this list and application, or whose walk began
    /// more than 15 minutes ago.
    pub async fn lives(&self, client: &ClientId, size: i64, next: Option<&str>) -> Result<LivePage, Error> {
        let (context, now) = (format!("lives {client}"), self.now());
        let walk = match next {
            Some(cursor) => Some(Walk::parse(&self.cursors().open("next", &context, cursor)?, now)?),
            None => None,
        };
        let limit = size + 1;
        let began_at = walk.as_ref().map_or(now, |walk| walk.began_at);
        let FirstLives { versions, lives } = self
            .read(async move |tx: &mut Tx| {
                Ok(match walk {
                    None => tx.first_lives(limit).await?,
                    Some(Walk { place, .. }) => {
                        let lives = tx.next_lives(&place, limit).await?;
                        FirstLives { versions: Some(place.versions), lives }
                    }
                })
            })
            .await?;
        let position = |last: &LiveListing| {
            let walk = versions.clone().map(|versions| Walk { place: place_of(last, versions), began_at });
            walk.map_or_else(String::new, |walk| walk.text())
        };
        let (lives, next) = self.page(&context, lives, size, position);
        Ok(LivePage { lives, next })
    }
}

impl LiveReport {
    /// The report with each tag once.
    ///
    /// # Errors
    /// `Invalid` for a wrong title, address, number of viewers or tag.
    pub fn checked(self) -> Result<Self, Invalid> {
        if let Some(title) = &self.title {
            check_title("liveTitle", title)?;
        }
        if let Some(url) = &self.thumbnail_image_url {
            check_web_address("liveThumbnailImageUrl", url)?;
        }
        if !(0..=CONCURRENT_USERS_MAX).contains(&self.concurrent_user_count) {
            let rule = Rule::Integer { min: 0, max: CONCURRENT_USERS_MAX };
            return Err(Invalid::new("concurrentUserCount", rule));
        }
        let tags = self.tags.as_deref().map(distinct_tags).transpose()?;
        Ok(Self { tags, ..self })
    }

    /// Fills the missing fields of the report from the channel's setting.
    fn completed_from(&self, setting: &BroadcastSetting) -> LiveShow {
        let set_title = || match setting.default_live_title.as_str() {
            "" => setting.channel_name.clone(),
            title => title.to_owned(),
        };
        LiveShow {
            title: self.title.clone().unwrap_or_else(set_title),
            thumbnail_image_url: self.thumbnail_image_url.clone(),
            concurrent_user_count: self.concurrent_user_count,
            adult: self.adult,
            category_id: match &self.category {
                CategoryChoice::Of(id) => Some(id.clone()),
                CategoryChoice::None => None,
                CategoryChoice::Unsaid => setting.category_id().cloned(),
            },
            tags: self.tags.clone().unwrap_or_else(|| setting.tags.clone()),
        }
    }
}

/// Applies one report, inside a transaction.
pub(crate) async fn put(work: &mut Work<'_>, channel: &ChannelId, report: &LiveReport) -> Result<(), Error> {
    put_since(work, channel, report, LiveStart::default()).await
}

async fn put_since(
    work: &mut Work<'_>,
    channel: &ChannelId,
    report: &LiveReport,
    start: LiveStart,
) -> Result<(), Error> {
    if let CategoryChoice::Of(id) = &report.category {
        check_category(work, id).await?;
    }
    let show = report.completed_from(&setting_of(work, channel).await?);
    match work.live_on_air(channel).await? {
        Some(live) if live.show == show => return Ok(()),
        Some(_) => {}
        // A start also locks the row that numbers the lives. A batch keeps that lock for its later lines, so
        // it must not meet a start there that has locked a setting of the batch.
        None => work.share_lock(Shared::Channel(channel)).await?,
    }
    // Everything is read again under the locks of the clock and of the setting.
    let version = work.next_live_version().await?;
    work.lock_broadcast_setting(channel).await?;
    let show = report.completed_from(&setting_of(work, channel).await?);
    match work.live_on_air(channel).await? {
        None => begin(work, channel, show, version, start).await,
        Some(live) => change(work, channel, live, show, version).await,
    }
}

async fn begin(
    work: &mut Work<'_>,
    channel: &ChannelId,
    show: LiveShow,
    version: i64,
    start: LiveStart,
) -> Result<(), Error> {
    let opened_at = start.opened_at.unwrap_or(work.now());
    let live_id = match start.live_id {
        Some(live_id) => {
            work.raise_last_live_id(live_id).await?;
            live_id
        }
        None => work.next_live_id().await?,
    };
    let count = show.concurrent_user_count;
    work.begin_live(channel, &LiveOnAir { live_id, counted_since: version, show }, opened_at).await?;
    Ok(work.open_live_span(live_id, count, version).await?)
}

async fn change(
    work: &mut Work<'_>,
    channel: &ChannelId,
    live: LiveOnAir,
    show: LiveShow,
    version: i64,
) -> Result<(), Error> {
    let now = work.now();
    let LiveOnAir { live_id, mut counted_since, show: before } = live;
    let count = show.concurrent_user_count;
    if count != before.concurrent_user_count {
        work.close_live_span(live_id, counted_since, version, now).await?;
        work.open_live_span(live_id, count, version).await?;
        counted_since = version;
    }
    Ok(work.change_live(channel, &LiveOnAir { live_id, counted_since, show }).await?)
}

pub(crate) async fn end(work: &mut Work<'_>, channel: &ChannelId) -> Result<(), Error> {
    setting_of(work, channel).await?;
    if work.live_on_air(channel).await?.is_some() {
        // Concurrent changes of this live or of its setting are serialized by this lock.
        work.lock_broadcast_setting(channel).await?;
        work.end_live(channel).await?;
    }
    Ok(())
}

pub(crate) async fn setting_of(tx: &mut Tx, channel: &ChannelId) -> Result<BroadcastSetting, Error> {
    tx.broadcast_setting(channel).await?.ok_or(Refusal::NotFound(Resource::Channel).into())
}

/// Looks up the category that a caller named.
pub(crate) async fn check_category(tx: &mut Tx, id: &CategoryId) -> Result<domain::live::Category, Error> {
    let unknown = Invalid::new("categoryId", Rule::KnownCategory);
    tx.category(id).await?.ok_or(unknown.into())
}

/// The position of a walk through the list, and its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Walk {
    place: LivePlace,
    began_at: Timestamp,
}

impl Walk {
    fn text(&self) -> String {
        let LivePlace { versions, concurrent_user_count, live_id } = &self.place;
        format!("{versions} {concurrent_user_count} {live_id} {}", self.began_at.as_millis())
    }

    fn parse(text: &str, now: Timestamp) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("next", Rule::Cursor);
        let (versions, numbers) = text.split_once(' ').ok_or_else(wrong)?;
        let versions = LiveVersions::parse(versions).ok_or_else(wrong)?;
        let numbers: Vec<i64> =
            numbers.split(' ').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let [concurrent_user_count, live_id, began_at] = numbers[..] else { return Err(wrong()) };
        let walk = Self {
            place: LivePlace { versions, concurrent_user_count, live_id },
            began_at: Timestamp::from_millis(began_at),
        };
        // The counts from the start of an older walk are deleted by the sweep.
        if walk.began_at.plus_ms(LIVE_WALK_MS) < now { Err(wrong()) } else { Ok(walk) }
    }
}

fn place_of(live: &LiveListing, versions: LiveVersions) -> LivePlace {
    let LiveListing { concurrent_user_count, live_id, .. } = *live;
    LivePlace { versions, concurrent_user_count, live_id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_goes_on_for_fifteen_minutes() {
        let numbers: Vec<String> = (0..32).map(|number| number.to_string()).collect();
        let versions = LiveVersions::parse(&numbers.join(",")).unwrap();
        let place = LivePlace { versions, concurrent_user_count: 0, live_id: 3 };
        let walk = Walk { place, began_at: Timestamp::from_millis(1_000) };
        let at = |ms| Walk::parse(&walk.text(), Timestamp::from_millis(1_000 + ms)).ok();
        assert_eq!(at(0).as_ref(), Some(&walk));
        assert_eq!(at(LIVE_WALK_MS).as_ref(), Some(&walk));
        assert_eq!(at(LIVE_WALK_MS + 1), None);
        // A walk that began before there were clocks has one number.
        assert!(Walk::parse("1 2 3 1000", walk.began_at).is_ok());
        for text in ["", "1 2 3", "1 2 3 4 5", "a 2 3 4", "1  2 3 4", "1,2 2 3 4", "-1 2 3 4"] {
            assert!(Walk::parse(text, walk.began_at).is_err(), "{text}");
        }
    }
}

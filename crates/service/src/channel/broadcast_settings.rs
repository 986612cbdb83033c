//! Broadcast settings and stream keys
//! (`docs/spec/lives.md#broadcast-setting`).

use domain::live::{CategoryChoice, CategoryType, check_category_type, check_title, distinct_tags};
use domain::refusal::Resource;
use domain::secret::StreamKey;
use domain::{ChannelId, Refusal};
use store::Tx;
pub use store::queries::broadcast_settings::BroadcastSetting;

use crate::channel::channels::not_found;
use crate::live::lives::{check_category, setting_of};
use crate::platform::idempotency::{self, IdempotencyKey};
use crate::work::Work;
use crate::{Error, Service};

/// A change of a broadcast setting: only what is given changes.
#[derive(Clone, Debug)]
pub struct SettingChange {
    /// The title of lives.
    pub title: Option<String>,
    /// What type the category is; it must be the category's own.
    pub category_type: Option<CategoryType>,
    /// Their category.
    pub category: CategoryChoice,
    /// Their tags.
    pub tags: Option<Vec<String>>,
}

impl Service {
    /// The setting of a channel; that of one which never set anything is empty.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel is gone.
    pub async fn broadcast_setting(&self, channel: &ChannelId) -> Result<BroadcastSetting, Error> {
        let channel = channel.clone();
        self.read(async move |tx: &mut Tx| setting_of(tx, &channel).await).await
    }

    /// Changes the setting of a channel, and the live that it has on air with it. Two changes at once that
    /// give different fields both hold.
    ///
    /// # Errors
    /// `Invalid` for a wrong field; [`Refusal::NotFound`] when the channel is gone.
    pub async fn change_broadcast_setting(
        &self,
        channel: &ChannelId,
        change: SettingChange,
    ) -> Result<(), Error> {
        if let Some(title) = &change.title {
            check_title("defaultLiveTitle", title)?;
        }
        let tags = change.tags.map(distinct_tags).transpose()?;
        let (channel, change) = (channel.clone(), SettingChange { tags, ..change });
        self.write(async move |work: &mut Work<'_>| change_setting(work, &channel, change).await).await
    }

    /// The stream key of a channel, made when it is first asked for, and the same until it is issued again.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel is gone; [`Error::Internal`] when the key was sealed with
    /// another service key than this one.
    pub async fn stream_key(&self, channel: &ChannelId) -> Result<StreamKey, Error> {
        let of = channel.clone();
        let found = self.read(async move |tx: &mut Tx| Ok(tx.stream_key(&of).await?)).await?;
        let sealed = match found {
            Some(sealed) => sealed,
            None => self.make_stream_key(channel).await?,
        };
        let opened = self.key().open(&subject(channel), &sealed);
        let opened = opened.and_then(|key| StreamKey::presented(&key));
        opened.ok_or(Error::Internal("a stream key was sealed with another service key"))
    }

    /// Gives a channel another stream key; the one before is worth nothing from now on.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist.
    pub async fn reissue_stream_key(
        &self,
        channel: &ChannelId,
        key: Option<IdempotencyKey>,
    ) -> Result<(), Error> {
        let (channel, sealed) = (channel.clone(), self.sealed_stream_key(channel));
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            if idempotency::claim(work, key.as_ref(), &()).await?.is_none() {
                work.replace_stream_key(&channel, &sealed, now)
                    .await
                    .map_err(not_found(Resource::Channel))?;
            }
            Ok(())
        })
        .await
    }

    /// Whoever comes first makes it; everybody gets that one, sealed.
    async fn make_stream_key(&self, channel: &ChannelId) -> Result<String, Error> {
        let (channel, sealed) = (channel.clone(), self.sealed_stream_key(channel));
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            work.make_stream_key(&channel, &sealed, now).await.map_err(not_found(Resource::Channel))?;
            work.stream_key(&channel).await?.ok_or(Refusal::NotFound(Resource::Channel).into())
        })
        .await
    }

    fn sealed_stream_key(&self, channel: &ChannelId) -> String {
        self.key().seal(&subject(channel), StreamKey::generate(self.random()).expose(), self.random())
    }
}

/// One change, inside a transaction.
async fn change_setting(
    work: &mut Work<'_>,
    channel: &ChannelId,
    change: SettingChange,
) -> Result<(), Error> {
    // Before the lock, which would make a row for a channel that is not there.
    setting_of(work, channel).await?;
    work.lock_broadcast_setting(channel).await?;
    let before = setting_of(work, channel).await?;
    let category = match &change.category {
        CategoryChoice::Unsaid => before.category.clone(),
        CategoryChoice::None => None,
        CategoryChoice::Of(id) => Some(check_category(work, id).await?),
    };
    check_category_type(change.category_type, &change.category, category.as_ref())?;
    let after = BroadcastSetting {
        channel_name: before.channel_name.clone(),
        default_live_title: change.title.clone().unwrap_or_else(|| before.default_live_title.clone()),
        category,
        tags: change.tags.clone().unwrap_or_else(|| before.tags.clone()),
    };
    if after != before {
        work.change_broadcast_setting(channel, &after).await?;
    }
    redress(work, channel, &change, &after).await
}

/// What was given, also for the live on air, which may show something else than the setting.
async fn redress(
    work: &mut Work<'_>,
    channel: &ChannelId,
    change: &SettingChange,
    setting: &BroadcastSetting,
) -> Result<(), Error> {
    let Some(live) = work.live_on_air(channel).await? else { return Ok(()) };
    let mut show = live.show.clone();
    if let Some(title) = &change.title {
        show.title.clone_from(title);
    }
    if change.category != CategoryChoice::Unsaid {
        show.category_id = setting.category_id().cloned();
    }
    if let Some(tags) = &change.tags {
        show.tags.clone_from(tags);
    }
    if show != live.show {
        work.change_live_details(channel, &show.title, show.category_id.as_ref(), &show.tags).await?;
    }
    Ok(())
}

/// What a stream key is sealed for.
fn subject(channel: &ChannelId) -> String {
    format!("stream key of {channel}")
}

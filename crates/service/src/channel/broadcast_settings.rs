//! Broadcast settings and stream keys
//! (`docs/spec/lives.md#broadcast-setting`).

use domain::audit::AuditAction;
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
use crate::{Error, Purpose, Service};

/// A change of a broadcast setting. Absent fields stay.
#[derive(Clone, Debug)]
pub struct SettingChange {
    /// The title of lives.
    pub title: Option<String>,
    /// The expected type of the category. A different type is refused.
    pub category_type: Option<CategoryType>,
    /// The category of lives.
    pub category: CategoryChoice,
    /// The tags of lives.
    pub tags: Option<Vec<String>>,
}

impl Service {
    /// The setting of a channel. It is empty before its first change.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist.
    pub async fn broadcast_setting(&self, channel: &ChannelId) -> Result<BroadcastSetting, Error> {
        let channel = channel.clone();
        self.read(async move |tx: &mut Tx| setting_of(tx, &channel).await).await
    }

    /// Changes the setting of a channel, and its live on air. Two concurrent changes of different fields
    /// both take effect.
    ///
    /// # Errors
    /// `Invalid` for a wrong field; [`Refusal::NotFound`] when the channel does not exist.
    pub async fn change_broadcast_setting(
        &self,
        channel: &ChannelId,
        change: SettingChange,
    ) -> Result<(), Error> {
        if let Some(title) = &change.title {
            check_title("defaultLiveTitle", title)?;
        }
        let tags = change.tags.as_deref().map(distinct_tags).transpose()?;
        let (channel, change) = (channel.clone(), SettingChange { tags, ..change });
        self.write(async move |work: &mut Work<'_>| change_setting(work, &channel, change).await).await
    }

    /// The stream key of a channel. The first call creates it. It stays the same until it is reissued.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist; [`Error::Internal`] when the key was sealed
    /// with another service key.
    pub async fn stream_key(&self, channel: &ChannelId) -> Result<StreamKey, Error> {
        let id = channel.clone();
        let found = self.read(async move |tx: &mut Tx| Ok(tx.stream_key(&id).await?)).await?;
        let sealed = match found {
            Some(sealed) => sealed,
            None => self.create_stream_key(channel).await?,
        };
        let opened = self.key().open(&subject(channel), &sealed);
        let opened = opened.and_then(|key| StreamKey::presented(&key));
        opened.ok_or(Error::Internal("a stream key was sealed with another service key"))
    }

    /// Replaces the stream key of a channel. The earlier key is invalid from now on.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist; [`Refusal::RoleMissing`] for an operator with a
    /// lower role than the channel's person.
    pub async fn reissue_stream_key(
        &self,
        channel: &ChannelId,
        key: Option<IdempotencyKey>,
    ) -> Result<(), Error> {
        let (channel, sealed) = (channel.clone(), self.sealed_stream_key(channel));
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            work.lock_account_of_lower_rank(&channel).await?;
            if idempotency::claim(work, key.as_ref(), &()).await?.is_none() {
                work.replace_stream_key(&channel, &sealed, now)
                    .await
                    .map_err(not_found(Resource::Channel))?;
                work.audit(AuditAction::StreamKeyReissue, &channel).await?;
            }
            Ok(())
        })
        .await
    }

    /// Of concurrent calls the first creates the key. All return this key, sealed.
    async fn create_stream_key(&self, channel: &ChannelId) -> Result<String, Error> {
        let (channel, sealed) = (channel.clone(), self.sealed_stream_key(channel));
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            work.make_stream_key(&channel, &sealed, now).await.map_err(not_found(Resource::Channel))?;
            work.stream_key(&channel).await?.ok_or(Refusal::NotFound(Resource::Channel).into())
        })
        .await
    }

    fn sealed_stream_key(&self, channel: &ChannelId) -> String {
        let key = StreamKey::generate(self.random(Purpose::StreamKey));
        self.key().seal(&subject(channel), key.expose(), self.random(Purpose::Nonce))
    }
}

/// Changes a setting, inside a transaction.
async fn change_setting(
    work: &mut Work<'_>,
    channel: &ChannelId,
    change: SettingChange,
) -> Result<(), Error> {
    // This refuses a missing channel, for which the lock would insert a row.
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
    change_live(work, channel, &change, &after).await
}

/// Applies the given fields to the live on air. Its other fields stay, also where they differ from the
/// setting.
async fn change_live(
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

/// The subject under which a stream key is sealed.
pub(crate) fn subject(channel: &ChannelId) -> String {
    format!("stream key of {channel}")
}

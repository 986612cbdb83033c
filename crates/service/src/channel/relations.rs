//! The followers, subscribers and managers of a channel (`docs/spec/channels.md`).

use domain::channel::{Follower, Manager, Subscriber, SubscriberSort, UserRole};
use domain::limits::MANAGERS_MAX;
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, Refusal, Rule, Timestamp};
use store::Tx;
use store::queries::relations::FollowOutcome;
pub use store::queries::relations::ManagedChannel;

use crate::channel::follow_change::{FollowChange, FollowKind};
use crate::identity::organizations::ListPage;
use crate::work::Work;
use crate::{Error, Page, Service};

/// A page of a list. The total is present if it was requested.
#[derive(Debug)]
pub struct Listed<T> {
    /// The page.
    pub items: Vec<T>,
    /// The number of items on all pages.
    pub total: Option<i64>,
}

impl Service {
    /// The owner of a channel, then its managers by the day of their first role.
    pub async fn managers(&self, channel: ChannelId) -> Result<Vec<Manager>, Error> {
        self.read(async move |tx: &mut Tx| Ok(tx.managers(&channel).await?)).await
    }

    /// The managers of a channel by the day of their first role, without the owner.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list.
    pub async fn managers_by_day(
        &self,
        channel: &ChannelId,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<Manager>, Error> {
        let context = serde_json::json!(["managers", channel.as_str()]).to_string();
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let place = after.as_deref().and_then(|after| {
            let (since, id) = after.split_once(' ')?;
            Some((since.parse().ok()?, id.to_owned()))
        });
        let (since, id) = place.unwrap_or((i64::MIN, String::new()));
        let channel = channel.clone();
        let items = self
            .read(async move |tx: &mut Tx| {
                let after = (Timestamp::from_millis(since), id.as_str());
                Ok(tx.managers_after(&channel, after, size + 1).await?)
            })
            .await?;
        let place = |manager: &Manager| format!("{} {}", manager.created_at.as_millis(), manager.channel_id);
        let (items, next) = self.page(&context, items, size, place);
        Ok(ListPage { items, next })
    }

    /// The channels in which a person has a role, ordered by their ids.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list.
    pub async fn managed_channels(
        &self,
        person: &ChannelId,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<ManagedChannel>, Error> {
        let context = serde_json::json!(["managed-channels", person.as_str()]).to_string();
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let (after, person) = (after.unwrap_or_default(), person.clone());
        let items = self
            .read(async move |tx: &mut Tx| Ok(tx.managed_channels(&person, &after, size + 1).await?))
            .await?;
        let (items, next) = self.page(&context, items, size, |managed| managed.channel_id.to_string());
        Ok(ListPage { items, next })
    }

    /// A channel in which a person has a role.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such channel, it is barred, or the person has no role in it.
    pub async fn managed_channel(
        &self,
        person: &ChannelId,
        channel: &ChannelId,
    ) -> Result<ManagedChannel, Error> {
        let (person, channel) = (person.clone(), channel.clone());
        let found =
            self.read(async move |tx: &mut Tx| Ok(tx.managed_channel(&person, &channel).await?)).await?;
        Ok(found.ok_or(Refusal::NotFound(Resource::Channel))?)
    }

    /// Gives a manager a role in a channel. A change of the role keeps the day of the first role.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when either channel does not exist; `Invalid` for the channel itself, and beyond
    /// [`MANAGERS_MAX`] managers.
    pub async fn put_manager(
        &self,
        channel: ChannelId,
        manager: ChannelId,
        role: UserRole,
    ) -> Result<(), Error> {
        self.write(async move |work: &mut Work<'_>| self::put_manager(work, &channel, &manager, role).await)
            .await
    }

    /// Removes the role of a manager in a channel, if there is one.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when either channel does not exist.
    pub async fn delete_manager(&self, channel: ChannelId, manager: ChannelId) -> Result<(), Error> {
        self.write(async move |work: &mut Work<'_>| self::delete_manager(work, &channel, &manager).await)
            .await
    }

    /// Lets one channel follow another, since `created` or since now. If the follow exists, `created`
    /// changes its day.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when either channel does not exist; `Invalid` for a channel that follows itself.
    pub async fn follow(
        &self,
        channel: ChannelId,
        follower: ChannelId,
        created: Option<Timestamp>,
    ) -> Result<(), Error> {
        check_different("followerChannelId", &channel, &follower)?;
        let kind = FollowKind::Follow { created };
        let change = FollowChange { channel: channel.clone(), follower: follower.clone(), kind };
        if let Some(followed) = self.share_commit(change).await {
            return followed;
        }
        self.write(async move |work: &mut Work<'_>| self::follow(work, &channel, &follower, created).await)
            .await
    }

    /// Ends a follow, if there is one.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when either channel does not exist.
    pub async fn unfollow(&self, channel: ChannelId, follower: ChannelId) -> Result<(), Error> {
        let kind = FollowKind::Unfollow;
        let change = FollowChange { channel: channel.clone(), follower: follower.clone(), kind };
        if let Some(ended) = self.share_commit(change).await {
            return ended;
        }
        self.write(async move |work: &mut Work<'_>| self::unfollow(work, &channel, &follower).await).await
    }

    /// One page of a channel's followers, the newest first, ties ordered by id. With `counted` the total is
    /// present.
    pub async fn followers(
        &self,
        channel: ChannelId,
        page: Page,
        counted: bool,
    ) -> Result<Listed<Follower>, Error> {
        self.read(async move |tx: &mut Tx| {
            let items = tx.followers(&channel, page).await?;
            let total = if counted { Some(tx.count_followers(&channel).await?) } else { None };
            Ok(Listed { items, total })
        })
        .await
    }

    /// One page of a channel's subscribers in the order `sort`, ties ordered by id. With `counted` the total
    /// is present.
    pub async fn subscribers(
        &self,
        channel: ChannelId,
        sort: SubscriberSort,
        page: Page,
        counted: bool,
    ) -> Result<Listed<Subscriber>, Error> {
        self.read(async move |tx: &mut Tx| {
            let items = tx.subscribers(&channel, sort, page).await?;
            let total = if counted { Some(tx.count_subscribers(&channel).await?) } else { None };
            Ok(Listed { items, total })
        })
        .await
    }
}

/// Gives a manager a role, inside a transaction.
pub(crate) async fn put_manager(
    work: &mut Work<'_>,
    channel: &ChannelId,
    manager: &ChannelId,
    role: UserRole,
) -> Result<(), Error> {
    let now = work.now();
    put_manager_since(work, channel, manager, role, now).await
}

/// Gives a manager a role since a time, inside a transaction.
pub(crate) async fn put_manager_since(
    work: &mut Work<'_>,
    channel: &ChannelId,
    manager: &ChannelId,
    role: UserRole,
    since: Timestamp,
) -> Result<(), Error> {
    check_different("managerChannelId", channel, manager)?;
    work.lock_channel(channel).await?;
    check_both_exist(work, channel, manager).await?;
    if work.count_other_managers(channel, manager).await? >= MANAGERS_MAX {
        let rule = Rule::Items { min: 0, max: MANAGERS_MAX as usize };
        return Err(Invalid::new("managerChannelId", rule).into());
    }
    Ok(work.put_manager(channel, manager, role, since).await?)
}

/// Removes the role of a manager, inside a transaction.
pub(crate) async fn delete_manager(
    work: &mut Work<'_>,
    channel: &ChannelId,
    manager: &ChannelId,
) -> Result<(), Error> {
    work.lock_channel(channel).await?;
    check_both_exist(work, channel, manager).await?;
    work.delete_manager(channel, manager).await?;
    Ok(())
}

/// Lets one channel follow another, inside a transaction.
pub(crate) async fn follow(
    work: &mut Work<'_>,
    channel: &ChannelId,
    follower: &ChannelId,
    created: Option<Timestamp>,
) -> Result<(), Error> {
    let now = work.now();
    check_different("followerChannelId", channel, follower)?;
    check_both_exist(work, channel, follower).await?;
    let followed = work.follow(channel, follower, created.unwrap_or(now)).await?;
    if let (FollowOutcome::Since(since), Some(created)) = (followed, created)
        && since != created
    {
        work.move_follow(channel, follower, created).await?;
    }
    Ok(())
}

/// Ends a follow, inside a transaction.
pub(crate) async fn unfollow(
    work: &mut Work<'_>,
    channel: &ChannelId,
    follower: &ChannelId,
) -> Result<(), Error> {
    check_both_exist(work, channel, follower).await?;
    work.unfollow(channel, follower).await?;
    Ok(())
}

fn check_different(field: &'static str, channel: &ChannelId, other: &ChannelId) -> Result<(), Invalid> {
    if channel == other { Err(Invalid::new(field, Rule::OtherChannel)) } else { Ok(()) }
}

async fn check_both_exist(tx: &mut Tx, channel: &ChannelId, other: &ChannelId) -> Result<(), Error> {
    tx.speaker(channel, other).await?.map(drop).ok_or_else(|| Refusal::NotFound(Resource::Channel).into())
}

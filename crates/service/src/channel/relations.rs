//! Who follows, subscribes to and helps to run a channel (`docs/spec/channels.md`).

use domain::channel::{Follower, Manager, Subscriber, SubscriberSort, UserRole};
use domain::limits::MANAGERS_MAX;
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, Refusal, Rule, Timestamp};
use store::Tx;
use store::queries::relations::Followed;

use crate::work::Work;
use crate::{Error, Page, Service};

/// A page of a list and, where it was asked for, the number of items on all pages.
#[derive(Debug)]
pub struct Listed<T> {
    /// The page.
    pub items: Vec<T>,
    /// Items on all pages.
    pub total: Option<i64>,
}

impl Service {
    /// The owner of a channel, then its managers by the day of their first role.
    pub async fn managers(&self, channel: ChannelId) -> Result<Vec<Manager>, Error> {
        self.read(async move |tx: &mut Tx| Ok(tx.managers(&channel).await?)).await
    }

    /// Gives somebody a role in a channel; the day of the first role stays.
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

    /// Takes somebody's role in a channel, if there is one.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when either channel does not exist.
    pub async fn delete_manager(&self, channel: ChannelId, manager: ChannelId) -> Result<(), Error> {
        self.write(async move |work: &mut Work<'_>| self::delete_manager(work, &channel, &manager).await)
            .await
    }

    /// Lets one channel follow another, since `created` or since now. Of a follow that is there already,
    /// `created` moves the day.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when either channel does not exist; `Invalid` for a channel that follows itself.
    pub async fn follow(
        &self,
        channel: ChannelId,
        follower: ChannelId,
        created: Option<Timestamp>,
    ) -> Result<(), Error> {
        self.write(async move |work: &mut Work<'_>| self::follow(work, &channel, &follower, created).await)
            .await
    }

    /// Ends a follow, if there is one.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when either channel does not exist.
    pub async fn unfollow(&self, channel: ChannelId, follower: ChannelId) -> Result<(), Error> {
        self.write(async move |work: &mut Work<'_>| self::unfollow(work, &channel, &follower).await).await
    }

    /// One page of a channel's followers, the newest first, ties by id. `counted` asks for the number of all
    /// of them too.
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

    /// One page of a channel's subscribers in an order, ties by id. `counted` asks for the number of all of
    /// them too.
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

/// A role, inside a transaction.
pub(crate) async fn put_manager(
    work: &mut Work<'_>,
    channel: &ChannelId,
    manager: &ChannelId,
    role: UserRole,
) -> Result<(), Error> {
    let now = work.now();
    differ("managerChannelId", channel, manager)?;
    work.lock_channel(channel).await?;
    both_exist(work, channel, manager).await?;
    if work.count_other_managers(channel, manager).await? >= MANAGERS_MAX {
        let rule = Rule::Items { min: 0, max: MANAGERS_MAX as usize };
        return Err(Invalid::new("managerChannelId", rule).into());
    }
    Ok(work.put_manager(channel, manager, role, now).await?)
}

/// No role any more, inside a transaction.
pub(crate) async fn delete_manager(
    work: &mut Work<'_>,
    channel: &ChannelId,
    manager: &ChannelId,
) -> Result<(), Error> {
    work.lock_channel(channel).await?;
    both_exist(work, channel, manager).await?;
    work.delete_manager(channel, manager).await?;
    Ok(())
}

/// A follow, inside a transaction.
pub(crate) async fn follow(
    work: &mut Work<'_>,
    channel: &ChannelId,
    follower: &ChannelId,
    created: Option<Timestamp>,
) -> Result<(), Error> {
    let now = work.now();
    differ("followerChannelId", channel, follower)?;
    both_exist(work, channel, follower).await?;
    let followed = work.follow(channel, follower, created.unwrap_or(now)).await?;
    if let (Followed::Since(since), Some(created)) = (followed, created)
        && since != created
    {
        work.move_follow(channel, follower, created).await?;
    }
    Ok(())
}

/// No follow any more, inside a transaction.
pub(crate) async fn unfollow(
    work: &mut Work<'_>,
    channel: &ChannelId,
    follower: &ChannelId,
) -> Result<(), Error> {
    both_exist(work, channel, follower).await?;
    work.unfollow(channel, follower).await?;
    Ok(())
}

fn differ(field: &'static str, channel: &ChannelId, other: &ChannelId) -> Result<(), Invalid> {
    if channel == other { Err(Invalid::new(field, Rule::OtherChannel)) } else { Ok(()) }
}

async fn both_exist(tx: &mut Tx, channel: &ChannelId, other: &ChannelId) -> Result<(), Error> {
    tx.speaker(channel, other).await?.map(drop).ok_or_else(|| Refusal::NotFound(Resource::Channel).into())
}

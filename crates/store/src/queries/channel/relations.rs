//! The followers, subscribers and managers of a channel (`docs/spec/channels.md`).
//!
//! A change of a list locks the channel's row first. So the rows, counts and blocks of a list change
//! together.

use domain::channel::{Follower, Manager, Subscriber, SubscriberSort, UserRole};
use domain::event::SubscriptionEvent;
use domain::{ChannelId, Timestamp};

use crate::queries::Page;
use crate::queries::columns::{FromColumns, Select, columns, sql};
use crate::queries::list_blocks::{List, page_sql};
use crate::{StoreError, Tx, params};

const LOCK_CHANNEL: &str = "UPDATE channels SET follower_count = follower_count WHERE channel_id = $1";

const PUT_MANAGER: &str = "
    INSERT INTO managers (channel_id, manager_channel_id, user_role, created_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (channel_id, manager_channel_id) DO UPDATE SET user_role = excluded.user_role";

const COUNT_OTHER_MANAGERS: &str =
    "SELECT COUNT(*) FROM managers WHERE channel_id = $1 AND manager_channel_id <> $2";

const DELETE_MANAGER: &str = "DELETE FROM managers WHERE channel_id = $1 AND manager_channel_id = $2";

/// The owner is the row without a role.
const MANAGERS: &str = sql!(
    "SELECT ",
    Manager::COLUMNS,
    "
    FROM (
        SELECT 0 AS place, channel_id AS id, channel_name AS name, CAST(NULL AS TEXT) AS user_role, created_at
        FROM channels WHERE channel_id = $1
        UNION ALL
        SELECT 1, c.channel_id, c.channel_name, m.user_role, m.created_at
        FROM managers m JOIN channels c ON c.channel_id = m.manager_channel_id WHERE m.channel_id = $1
    ) roles ORDER BY place, created_at, id"
);

const MANAGERS_AFTER: &str = sql!(
    "SELECT ",
    Manager::COLUMNS,
    "
    FROM (
        SELECT c.channel_id AS id, c.channel_name AS name, m.user_role, m.created_at
        FROM managers m JOIN channels c ON c.channel_id = m.manager_channel_id
        WHERE m.channel_id = $1 AND (m.created_at, m.manager_channel_id) > ($2, $3)
        ORDER BY m.created_at, m.manager_channel_id LIMIT $4
    ) roles ORDER BY created_at, id"
);

const MANAGED: &str = sql!(
    "SELECT ",
    ManagedChannel::COLUMNS,
    "
    FROM managers m JOIN channels c ON c.channel_id = m.channel_id
    WHERE m.manager_channel_id = $1 AND m.channel_id > $2 AND c.deleted_at IS NULL AND c.barred_at IS NULL
    ORDER BY m.channel_id LIMIT $3"
);

const MANAGED_ONE: &str = sql!(
    "SELECT ",
    ManagedChannel::COLUMNS,
    "
    FROM managers m JOIN channels c ON c.channel_id = m.channel_id
    WHERE m.manager_channel_id = $1 AND m.channel_id = $2 AND c.deleted_at IS NULL AND c.barred_at IS NULL"
);

const INSERT_FOLLOWER: &str = "
    INSERT INTO followers (channel_id, follower_channel_id, created_at, newest_rank)
    VALUES ($1, $2, $3, -CAST($3 AS BIGINT)) ON CONFLICT (channel_id, follower_channel_id) DO NOTHING";

const COUNT_FOLLOWER: &str = "UPDATE channels SET follower_count = follower_count + $2 WHERE channel_id = $1";

const FOLLOWED_AT: &str =
    "SELECT created_at FROM followers WHERE channel_id = $1 AND follower_channel_id = $2";

const SET_FOLLOWED_AT: &str = "
    UPDATE followers SET created_at = $3, newest_rank = -CAST($3 AS BIGINT)
    WHERE channel_id = $1 AND follower_channel_id = $2";

const DELETE_FOLLOWER: &str = "
    DELETE FROM followers WHERE channel_id = $1 AND follower_channel_id = $2 RETURNING created_at";

const FOLLOWERS: &str = page_sql!(
    "followers",
    "newest_rank",
    "follower_channel_id",
    Follower::COLUMNS,
    "JOIN channels c ON c.channel_id = p.id"
);

const SUBSCRIBED_MONTH: &str =
    "SELECT month FROM subscribers WHERE channel_id = $1 AND subscriber_channel_id = $2";

const INSERT_SUBSCRIBER: &str = "
    INSERT INTO subscribers
        (channel_id, subscriber_channel_id, tier_no, tier_name, month, created_at, newest_rank, longest_rank)
    VALUES ($1, $2, $3, $4, $5, $6, -CAST($6 AS BIGINT), -CAST($5 AS BIGINT))";

const UPDATE_SUBSCRIBER: &str = "
    UPDATE subscribers SET tier_no = $3, tier_name = $4, month = $5, longest_rank = -CAST($5 AS BIGINT)
    WHERE channel_id = $1 AND subscriber_channel_id = $2";

const DELETE_SUBSCRIBER: &str = "
    DELETE FROM subscribers WHERE channel_id = $1 AND subscriber_channel_id = $2 RETURNING created_at, month";

macro_rules! subscribers_sql {
    ($rank:literal) => {
        page_sql!(
            "subscribers",
            $rank,
            "subscriber_channel_id",
            Subscriber::COLUMNS,
            "JOIN subscribers s ON s.channel_id = $1 AND s.subscriber_channel_id = p.id
             JOIN channels c ON c.channel_id = p.id"
        )
    };
}
const NEWEST_SUBSCRIBERS: &str = subscribers_sql!("newest_rank");
const LONGEST_SUBSCRIBERS: &str = subscribers_sql!("longest_rank");

/// The result of a follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowOutcome {
    /// A new follower.
    New,
    /// An existing follower, since that time.
    Since(Timestamp),
}

columns!(Manager {
    channel_id: "id",
    name: "name",
    role: "user_role" => |role: Option<UserRole>| role.unwrap_or(UserRole::StreamingChannelOwner),
    created_at: "created_at",
});

columns!(Follower { channel_id: "p.id", name: "c.channel_name", created_at: "-p.rank" });

columns!(Subscriber {
    channel_id: "p.id",
    name: "c.channel_name",
    month: "s.month",
    tier_no: "s.tier_no",
    tier_name: "s.tier_name",
    created_at: "s.created_at",
});

/// A channel that a person manages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedChannel {
    /// Its id.
    pub channel_id: ChannelId,
    /// Its name.
    pub name: String,
    /// The person's role.
    pub role: UserRole,
    /// When the first role was given.
    pub created_at: Timestamp,
}

columns!(ManagedChannel {
    channel_id: "m.channel_id",
    name: "c.channel_name",
    role: "m.user_role",
    created_at: "m.created_at",
});

impl Tx {
    /// Locks a channel's lists for the rest of the transaction: `false` if there is no such channel.
    pub async fn lock_channel(&mut self, channel: &ChannelId) -> Result<bool, StoreError> {
        Ok(self.execute(LOCK_CHANNEL, params![channel]).await? > 0)
    }

    /// Gives a person a role in a channel. A changed role keeps the date of the first one.
    pub async fn put_manager(
        &mut self,
        channel: &ChannelId,
        manager: &ChannelId,
        role: UserRole,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(PUT_MANAGER, params![channel, manager, role.name(), now]).await?;
        Ok(())
    }

    /// How many managers a channel has beside this one.
    pub async fn count_other_managers(
        &mut self,
        channel: &ChannelId,
        manager: &ChannelId,
    ) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_OTHER_MANAGERS, params![channel, manager]).await
    }

    /// Removes a person's role in a channel: `false` if there was none.
    pub async fn delete_manager(
        &mut self,
        channel: &ChannelId,
        manager: &ChannelId,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(DELETE_MANAGER, params![channel, manager]).await? > 0)
    }

    /// The owner, and then the managers by the date of their first role.
    pub async fn managers(&mut self, channel: &ChannelId) -> Result<Vec<Manager>, StoreError> {
        self.fetch_all(MANAGERS, params![channel]).await
    }

    /// Up to `size` managers behind `after`, a day of the first role and an id, without the owner.
    pub async fn managers_after(
        &mut self,
        channel: &ChannelId,
        (since, manager): (Timestamp, &str),
        size: i64,
    ) -> Result<Vec<Manager>, StoreError> {
        self.fetch_all(MANAGERS_AFTER, params![channel, since, manager, size]).await
    }

    /// Up to `size` channels after `after` in which a person has a role, in the order of their ids, without
    /// barred ones.
    pub async fn managed_channels(
        &mut self,
        manager: &ChannelId,
        after: &str,
        size: i64,
    ) -> Result<Vec<ManagedChannel>, StoreError> {
        self.fetch_all(MANAGED, params![manager, after, size]).await
    }

    /// A channel in which a person has a role, unless it is barred.
    pub async fn managed_channel(
        &mut self,
        manager: &ChannelId,
        channel: &ChannelId,
    ) -> Result<Option<ManagedChannel>, StoreError> {
        self.fetch_optional(MANAGED_ONE, params![manager, channel]).await
    }

    /// Adds a follower and counts it. An existing follower keeps its date.
    pub async fn follow(
        &mut self,
        channel: &ChannelId,
        follower: &ChannelId,
        at: Timestamp,
    ) -> Result<FollowOutcome, StoreError> {
        self.lock_channel(channel).await?;
        if let Some(since) = self.fetch_optional(FOLLOWED_AT, params![channel, follower]).await? {
            return Ok(FollowOutcome::Since(since));
        }
        self.execute(INSERT_FOLLOWER, params![channel, follower, at]).await?;
        self.execute(COUNT_FOLLOWER, params![channel, 1]).await?;
        self.enter_list(List::Followers, channel, newest(at), follower).await?;
        Ok(FollowOutcome::New)
    }

    /// Changes the date of a follow: `false` if there is no such follow.
    pub async fn move_follow(
        &mut self,
        channel: &ChannelId,
        follower: &ChannelId,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.lock_channel(channel).await?;
        let Some(before) = self.fetch_optional(FOLLOWED_AT, params![channel, follower]).await? else {
            return Ok(false);
        };
        self.execute(SET_FOLLOWED_AT, params![channel, follower, at]).await?;
        self.leave_list(List::Followers, channel, newest(before), follower).await?;
        self.enter_list(List::Followers, channel, newest(at), follower).await?;
        Ok(true)
    }

    /// Ends a follow and counts it: `false` if there was none.
    pub async fn unfollow(&mut self, channel: &ChannelId, follower: &ChannelId) -> Result<bool, StoreError> {
        self.lock_channel(channel).await?;
        let Some(since) = self.fetch_optional(DELETE_FOLLOWER, params![channel, follower]).await? else {
            return Ok(false);
        };
        self.execute(COUNT_FOLLOWER, params![channel, -1]).await?;
        self.leave_list(List::Followers, channel, newest(since), follower).await?;
        Ok(true)
    }

    /// One page of a channel's followers, the newest first, then by id.
    pub async fn followers(&mut self, channel: &ChannelId, page: Page) -> Result<Vec<Follower>, StoreError> {
        self.page_of(List::Followers, FOLLOWERS, channel, page).await
    }

    /// How many followers the list has.
    pub async fn count_followers(&mut self, channel: &ChannelId) -> Result<i64, StoreError> {
        self.count_listed(List::Followers, channel).await
    }

    /// Records a subscriber. A subscriber has one row, with the date of the first subscription.
    pub async fn put_subscriber(
        &mut self,
        channel: &ChannelId,
        subscription: &SubscriptionEvent,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let SubscriptionEvent { subscriber_channel_id: id, tier_no, tier_name, month, .. } = subscription;
        self.lock_channel(channel).await?;
        if let Some(month_before) = self.fetch_optional(SUBSCRIBED_MONTH, params![channel, id]).await? {
            let row_values = params![channel, id, *tier_no, tier_name, *month];
            self.execute(UPDATE_SUBSCRIBER, row_values).await?;
            self.leave_list(List::LongestSubscribers, channel, longest(month_before), id).await?;
        } else {
            let row_values = params![channel, id, *tier_no, tier_name, *month, at];
            self.execute(INSERT_SUBSCRIBER, row_values).await?;
            self.enter_list(List::NewestSubscribers, channel, newest(at), id).await?;
        }
        self.enter_list(List::LongestSubscribers, channel, longest(*month), id).await
    }

    /// Ends a subscription: `false` if there was none.
    pub async fn delete_subscriber(
        &mut self,
        channel: &ChannelId,
        subscriber: &ChannelId,
    ) -> Result<bool, StoreError> {
        self.lock_channel(channel).await?;
        let deleted = self.fetch_optional(DELETE_SUBSCRIBER, params![channel, subscriber]).await?;
        let Some((since, month)) = deleted else { return Ok(false) };
        self.leave_list(List::NewestSubscribers, channel, newest(since), subscriber).await?;
        self.leave_list(List::LongestSubscribers, channel, longest(month), subscriber).await?;
        Ok(true)
    }

    /// One page of a channel's subscribers, in an order, then by id.
    pub async fn subscribers(
        &mut self,
        channel: &ChannelId,
        sort: SubscriberSort,
        page: Page,
    ) -> Result<Vec<Subscriber>, StoreError> {
        let (list, sql) = match sort {
            SubscriberSort::Recent => (List::NewestSubscribers, NEWEST_SUBSCRIBERS),
            SubscriberSort::Longer => (List::LongestSubscribers, LONGEST_SUBSCRIBERS),
        };
        self.page_of(list, sql, channel, page).await
    }

    /// How many subscribers the list has.
    pub async fn count_subscribers(&mut self, channel: &ChannelId) -> Result<i64, StoreError> {
        self.count_listed(List::NewestSubscribers, channel).await
    }

    async fn page_of<T>(
        &mut self,
        list: List,
        sql: &'static str,
        channel: &ChannelId,
        page: Page,
    ) -> Result<Vec<T>, StoreError>
    where
        T: for<'r> FromColumns<'r>,
    {
        match self.find_in_list(list, channel, page.offset()).await? {
            Some(start) => {
                self.fetch_all(sql, params![channel, start.rank, &start.id, page.size, start.behind]).await
            }
            None => Ok(Vec::new()),
        }
    }
}

/// Places newest first.
fn newest(at: Timestamp) -> i64 {
    -at.as_millis()
}

/// Places longest first.
fn longest(month: i64) -> i64 {
    -month
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn managers_and_managed_channels_are_read_from_their_position_on() {
        for (sql, place) in [
            (MANAGERS_AFTER, "managers_appointed (channel_id=? AND (created_at,manager_channel_id)>(?,?))"),
            (MANAGED, "managers_of_manager (manager_channel_id=? AND channel_id>?)"),
        ] {
            let plan = sqlite_plan(sql);
            assert!(plan.iter().any(|step| step.ends_with(place)), "{plan:#?}");
        }
    }

    /// A page is found by index searches alone: nothing is scanned but the statement's own subqueries.
    #[test]
    fn sqlite_searches_every_table_of_a_page_by_its_whole_key() {
        for sql in [FOLLOWERS, NEWEST_SUBSCRIBERS, LONGEST_SUBSCRIBERS] {
            let plan = sqlite_plan(sql);
            for table in ["followers", "subscribers", "channels", "c", "s"] {
                assert!(!plan.contains(&format!("SCAN {table}")), "{plan:#?}");
            }
            let by_place = |step: &String| {
                step.starts_with("SEARCH") && step.contains("COVERING INDEX") && step.contains("_rank,")
            };
            assert!(plan.iter().any(by_place), "{plan:#?}");
        }
    }
}

//! Follows and roles: what the platform tells about itself.

use domain::channel::UserRole;
use domain::{ChannelId, Timestamp};

use crate::{StoreError, Tx, params};

const PUT_MANAGER: &str = "
    INSERT INTO managers (channel_id, manager_channel_id, user_role, created_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (channel_id, manager_channel_id) DO UPDATE SET user_role = excluded.user_role";

const INSERT_FOLLOWER: &str = "
    INSERT INTO followers (channel_id, follower_channel_id, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (channel_id, follower_channel_id) DO NOTHING";

const COUNT_FOLLOWER: &str = "UPDATE channels SET follower_count = follower_count + 1 WHERE channel_id = $1";

impl Tx {
    /// Gives somebody a role in a channel.
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

    /// Lets one channel follow another, and counts it: `false` when it did already.
    pub async fn follow(
        &mut self,
        channel: &ChannelId,
        follower: &ChannelId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let new = self.execute(INSERT_FOLLOWER, params![channel, follower, now]).await? > 0;
        if new {
            self.execute(COUNT_FOLLOWER, params![channel]).await?;
        }
        Ok(new)
    }
}

//! The deletion of channels. A channel is marked as deleted at once. Its rows are deleted in batches, so that
//! no statement delays others.
//!
//! Rows that others need stay, under a random alias.

use domain::{ChannelId, MessageId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::queries::credential_changes::Dependency;
use crate::{StoreError, Tx, params};

/// Rows of one kind that a batch deletes or changes.
pub const DELETION_ROWS_MAX: i64 = 500;
/// Messages or donations that a batch reads.
pub const DELETION_READS_MAX: i64 = 2_000;
/// Follows and subscriptions in other channels' lists that a batch ends. Each of them locks its channel.
const RELATIONS_MAX: i64 = 20;

/// The name of a channel that is being deleted.
const DELETED_NAME: &str = "(deleted)";

const MARK: &str = "
    UPDATE channels SET deleted_at = $2, barred_at = COALESCE(barred_at, $2), channel_name = $3,
        channel_image_url = NULL, verified_mark = FALSE, real_name_verified = FALSE
    WHERE channel_id = $1 AND deleted_at IS NULL";

const DELETE_PERSON: &str = "DELETE FROM people WHERE channel_id = $1";

const INSERT_DELETION: &str = "
    INSERT INTO channel_deletions (channel_id, alias, messages_until, created_at) VALUES ($1, $2, $3, $4)";

const DELETIONS: &str = "
    SELECT channel_id FROM channel_deletions ORDER BY created_at, channel_id LIMIT $1";

/// Locks the deletion of a channel against other nodes.
const LOCK_DELETION: &str = sql!(
    "UPDATE channel_deletions SET alias = alias WHERE channel_id = $1 RETURNING ",
    ChannelDeletion::COLUMNS
);

/// Rows that are deleted with the channel. `$1` is the channel, `$2` the most rows.
const DELETE_ROWS: [&str; 14] = [
    "DELETE FROM followers WHERE channel_id = $1 AND follower_channel_id IN (
         SELECT follower_channel_id FROM followers WHERE channel_id = $1 LIMIT $2)",
    "DELETE FROM subscribers WHERE channel_id = $1 AND subscriber_channel_id IN (
         SELECT subscriber_channel_id FROM subscribers WHERE channel_id = $1 LIMIT $2)",
    "DELETE FROM list_blocks WHERE channel_id = $1 AND (list, level, first_rank, first_id) IN (
         SELECT list, level, first_rank, first_id FROM list_blocks WHERE channel_id = $1 LIMIT $2)",
    "DELETE FROM restricted_channels WHERE channel_id = $1 AND restricted_channel_id IN (
         SELECT restricted_channel_id FROM restricted_channels WHERE channel_id = $1 LIMIT $2)",
    "DELETE FROM restricted_channels WHERE restricted_channel_id = $1 AND channel_id IN (
         SELECT channel_id FROM restricted_channels WHERE restricted_channel_id = $1 LIMIT $2)",
    "DELETE FROM managers WHERE channel_id = $1 AND manager_channel_id IN (
         SELECT manager_channel_id FROM managers WHERE channel_id = $1 LIMIT $2)",
    "DELETE FROM managers WHERE manager_channel_id = $1 AND channel_id IN (
         SELECT channel_id FROM managers WHERE manager_channel_id = $1 LIMIT $2)",
    "DELETE FROM drops_campaign_channels WHERE channel_id = $1 AND campaign_id IN (
         SELECT campaign_id FROM drops_campaign_channels WHERE channel_id = $1 LIMIT $2)",
    "DELETE FROM watched_minutes WHERE channel_id = $1 AND campaign_id IN (
         SELECT campaign_id FROM watched_minutes WHERE channel_id = $1 LIMIT $2)",
    "DELETE FROM organization_members WHERE channel_id = $1 AND organization_id IN (
         SELECT organization_id FROM organization_members WHERE channel_id = $1 LIMIT $2)",
    "DELETE FROM review_requests WHERE request_id IN (
         SELECT request_id FROM review_requests WHERE requested_by = $1 LIMIT $2)",
    "DELETE FROM consents WHERE channel_id = $1 AND client_id IN (
         SELECT client_id FROM consents WHERE channel_id = $1 LIMIT $2)",
    "DELETE FROM browser_sessions WHERE token_hash IN (
         SELECT token_hash FROM browser_sessions WHERE channel_id = $1 LIMIT $2)",
    // A session stays until its node has closed the socket or was declared dead.
    "DELETE FROM sessions WHERE session_key IN (
         SELECT session_key FROM sessions WHERE channel_id = $1
         AND ((disconnected_at IS NOT NULL AND closing_node IS NULL)
             OR node_id NOT IN (SELECT node_id FROM nodes))
         LIMIT $2)",
];

const FOLLOWED: &str = "
    SELECT channel_id FROM followers WHERE follower_channel_id = $1 ORDER BY channel_id LIMIT $2";

const SUBSCRIBED_TO: &str = "
    SELECT channel_id FROM subscribers WHERE subscriber_channel_id = $1 ORDER BY channel_id LIMIT $2";

const HAS_CLAIMS: &str = "SELECT 1 FROM reward_claims WHERE channel_id = $1 LIMIT 1";

/// The channel of the claims that stay. It is never shown and never deleted.
const INSERT_ALIAS: &str = "
    INSERT INTO channels
        (channel_id, channel_name, verified_mark, real_name_verified, created_at, barred_at, deleted_at)
    VALUES ($1, $2, FALSE, FALSE, $3, $3, $3) ON CONFLICT DO NOTHING";

const RENAME_CLAIMS: &str = "
    UPDATE reward_claims SET channel_id = $2 WHERE claim_id IN (
        SELECT claim_id FROM reward_claims WHERE channel_id = $1 LIMIT $3)";

const MESSAGES_END: &str = "
    SELECT MAX(message_id) FROM (
        SELECT message_id FROM chat_messages WHERE message_id > $1 AND message_id < $2
        ORDER BY message_id LIMIT $3) b";

const DELETE_MESSAGES: &str = "
    DELETE FROM chat_messages WHERE message_id > $1 AND message_id <= $2 AND channel_id = $3";

const RENAME_SENDER: &str = "
    UPDATE chat_messages SET sender_channel_id = $4
    WHERE message_id > $1 AND message_id <= $2 AND sender_channel_id = $3";

const MESSAGES_DONE: &str = "UPDATE channel_deletions SET messages_after = $2 WHERE channel_id = $1";

const DONATIONS_END: &str = "
    SELECT MAX(donation_id) FROM (
        SELECT donation_id FROM donations WHERE donation_id > $1 AND donation_id < $2
        ORDER BY donation_id LIMIT $3) b";

const RENAME_DONATIONS: &str = "
    UPDATE donations SET
        channel_id = CASE WHEN channel_id = $3 THEN $4 ELSE channel_id END,
        donator_channel_id = CASE WHEN donator_channel_id = $3 THEN NULL ELSE donator_channel_id END
    WHERE donation_id > $1 AND donation_id <= $2 AND (channel_id = $3 OR donator_channel_id = $3)";

const DONATIONS_DONE: &str = "UPDATE channel_deletions SET donations_after = $2 WHERE channel_id = $1";

const HAS_SESSIONS: &str = "SELECT 1 FROM sessions WHERE channel_id = $1 LIMIT 1";

const DELETE_CHANNEL: &str = "DELETE FROM channels WHERE channel_id = $1 AND deleted_at IS NOT NULL";

const DELETE_DELETION: &str = "DELETE FROM channel_deletions WHERE channel_id = $1";

/// The progress of the deletion of a channel.
struct ChannelDeletion {
    channel_id: ChannelId,
    alias: ChannelId,
    created_at: Timestamp,
    messages_after: String,
    messages_until: String,
    donations_after: String,
}

columns!(ChannelDeletion {
    channel_id: "channel_id",
    alias: "alias",
    created_at: "created_at",
    messages_after: "messages_after",
    messages_until: "messages_until",
    donations_after: "donations_after",
});

/// The result of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionStep {
    /// More rows may be left.
    More,
    /// The rest cannot be deleted yet.
    Waits,
    /// Nothing is left.
    Done,
}

impl Tx {
    /// Marks a channel as deleted, which hides it, bars its person and frees the login: `false` if there is
    /// none. The ids of its messages are below `until`.
    pub async fn mark_channel_deleted(
        &mut self,
        channel: &ChannelId,
        alias: &ChannelId,
        until: &MessageId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Channel(channel));
        if self.execute(MARK, params![channel, now, DELETED_NAME]).await? == 0 {
            return Ok(false);
        }
        self.execute(DELETE_PERSON, params![channel]).await?;
        self.execute(INSERT_DELETION, params![channel, alias, until, now]).await?;
        Ok(true)
    }

    /// The oldest `limit` channels whose deletion is not finished.
    pub async fn channels_being_deleted(&mut self, limit: i64) -> Result<Vec<ChannelId>, StoreError> {
        self.fetch_all(DELETIONS, params![limit]).await
    }

    /// Deletes one batch of the rows of a channel that is being deleted, and at the end the channel. Its
    /// messages stay until the channel was marked at `writers_finished` or before. From then on no call
    /// writes messages in the channel's name.
    pub async fn delete_channel_rows(
        &mut self,
        channel: &ChannelId,
        writers_finished: Timestamp,
    ) -> Result<DeletionStep, StoreError> {
        let deletion = self.fetch_optional::<ChannelDeletion>(LOCK_DELETION, params![channel]).await?;
        let Some(deletion) = deletion else { return Ok(DeletionStep::Done) };
        self.credentials_changed(Dependency::Channel(channel));
        if !self.begin_purge_of_owned(channel, deletion.created_at).await?.is_empty() {
            return Ok(DeletionStep::More);
        }
        for sql in DELETE_ROWS {
            if self.execute(sql, params![channel, DELETION_ROWS_MAX]).await? > 0 {
                return Ok(DeletionStep::More);
            }
        }
        if self.end_relations(channel).await? || self.rename_claims(&deletion).await? {
            return Ok(DeletionStep::More);
        }
        if deletion.created_at > writers_finished {
            return Ok(DeletionStep::Waits);
        }
        self.rename_messages(&deletion).await
    }

    /// Ends some of its follows and subscriptions, in the order of the channels: `false` if none is left.
    async fn end_relations(&mut self, channel: &ChannelId) -> Result<bool, StoreError> {
        let followed: Vec<ChannelId> = self.fetch_all(FOLLOWED, params![channel, RELATIONS_MAX]).await?;
        for other in &followed {
            self.unfollow(other, channel).await?;
        }
        if !followed.is_empty() {
            return Ok(true);
        }
        let subscribed: Vec<ChannelId> =
            self.fetch_all(SUBSCRIBED_TO, params![channel, RELATIONS_MAX]).await?;
        for other in &subscribed {
            self.delete_subscriber(other, channel).await?;
        }
        Ok(!subscribed.is_empty())
    }

    async fn rename_claims(&mut self, deletion: &ChannelDeletion) -> Result<bool, StoreError> {
        let ChannelDeletion { channel_id, alias, created_at, .. } = deletion;
        if self.query_opt(HAS_CLAIMS, params![channel_id]).await?.is_none() {
            return Ok(false);
        }
        self.execute(INSERT_ALIAS, params![alias, DELETED_NAME, *created_at]).await?;
        self.execute(RENAME_CLAIMS, params![channel_id, alias, DELETION_ROWS_MAX]).await?;
        Ok(true)
    }

    /// Processes one batch of messages and donations. Messages in the channel's own chat are deleted. The
    /// others stay under the alias.
    async fn rename_messages(&mut self, deletion: &ChannelDeletion) -> Result<DeletionStep, StoreError> {
        let ChannelDeletion { channel_id, alias, messages_after, messages_until, donations_after, .. } =
            deletion;
        let bounds = params![messages_after, messages_until, DELETION_READS_MAX];
        if let Some(end) = self.fetch_one::<Option<String>>(MESSAGES_END, bounds).await? {
            self.execute(DELETE_MESSAGES, params![messages_after, &end, channel_id]).await?;
            self.execute(RENAME_SENDER, params![messages_after, &end, channel_id, alias]).await?;
            self.execute(MESSAGES_DONE, params![channel_id, &end]).await?;
            return Ok(DeletionStep::More);
        }
        let bounds = params![donations_after, messages_until, DELETION_READS_MAX];
        if let Some(end) = self.fetch_one::<Option<String>>(DONATIONS_END, bounds).await? {
            self.execute(RENAME_DONATIONS, params![donations_after, &end, channel_id, alias]).await?;
            self.execute(DONATIONS_DONE, params![channel_id, &end]).await?;
            return Ok(DeletionStep::More);
        }
        if self.query_opt(HAS_SESSIONS, params![channel_id]).await?.is_some() {
            return Ok(DeletionStep::Waits);
        }
        self.execute(DELETE_CHANNEL, params![channel_id]).await?;
        self.execute(DELETE_DELETION, params![channel_id]).await?;
        Ok(DeletionStep::Done)
    }
}

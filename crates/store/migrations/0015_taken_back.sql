-- Channels that are barred or deleted; browsers signed out; what a store was made by.

-- barred_at: since when its person may not sign in. A channel that is being deleted is barred too. alias: what stands in its
-- place in what stays for others. messages_after, donations_after: how far those were looked through.
ALTER TABLE channels ADD COLUMN barred_at BIGINT;
ALTER TABLE channels ADD COLUMN deleted_at BIGINT;
CREATE INDEX channels_barred ON channels (channel_id) WHERE barred_at IS NOT NULL;
CREATE INDEX channels_name ON channels (channel_name, channel_id);

CREATE TABLE channel_deletions (
    channel_id      TEXT PRIMARY KEY,
    alias           TEXT NOT NULL,
    messages_after  TEXT NOT NULL DEFAULT '',
    messages_until  TEXT NOT NULL,
    donations_after TEXT NOT NULL DEFAULT '',
    created_at      BIGINT NOT NULL
);

-- What hangs on a channel is found from the channel, on either side.
CREATE INDEX browser_sessions_of_channel ON browser_sessions (channel_id);
CREATE INDEX consents_of_channel ON consents (channel_id, client_id);
CREATE INDEX managers_of_manager ON managers (manager_channel_id, channel_id);
CREATE INDEX followers_of_follower ON followers (follower_channel_id, channel_id);
CREATE INDEX subscribers_of_subscriber ON subscribers (subscriber_channel_id, channel_id);
CREATE INDEX restricted_channels_of_restricted ON restricted_channels (restricted_channel_id, channel_id);
CREATE INDEX drops_campaign_channels_of_channel ON drops_campaign_channels (channel_id);
CREATE INDEX watched_minutes_of_channel ON watched_minutes (channel_id);

-- One row: whether `dev` or `serve` made the store.
CREATE TABLE store_origin (
    origin_id BIGINT PRIMARY KEY,
    made_by   TEXT NOT NULL
);

-- Watching for drops: when a campaign runs, which channels take part, what its viewers have watched.

-- A date that is not there is open. every_channel: whether all take part, or those of drops_campaign_channels.
ALTER TABLE drops_campaigns ADD COLUMN starts_at BIGINT;
ALTER TABLE drops_campaigns ADD COLUMN ends_at BIGINT;
ALTER TABLE drops_campaigns ADD COLUMN every_channel BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE drops_rewards ADD COLUMN watch_minutes BIGINT NOT NULL DEFAULT 0;

-- A report of watching begins at the category of the live.
CREATE INDEX drops_campaigns_of_category ON drops_campaigns (category_id);

CREATE TABLE drops_campaign_channels (
    campaign_id TEXT NOT NULL REFERENCES drops_campaigns (campaign_id),
    channel_id  TEXT NOT NULL REFERENCES channels (channel_id),
    PRIMARY KEY (campaign_id, channel_id)
);

-- channel_id: the viewer's.
CREATE TABLE watched_minutes (
    campaign_id TEXT NOT NULL REFERENCES drops_campaigns (campaign_id),
    channel_id  TEXT NOT NULL REFERENCES channels (channel_id),
    minutes     BIGINT NOT NULL,
    PRIMARY KEY (campaign_id, channel_id)
);

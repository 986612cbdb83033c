-- What may have been lost on the way between nodes: enough to find the sessions that have to be closed for it.

-- Events that their publisher gave up. Rows live for an hour.
CREATE TABLE lost_events (
    lost_at    BIGINT NOT NULL,
    channel_id TEXT NOT NULL,
    node_id    TEXT NOT NULL,
    PRIMARY KEY (lost_at, channel_id, node_id)
);

-- When sessions were last told of a paid subscription. Chat messages and donations have ids that grow with time; this
-- table has not. Rows from before nobody asks about.
ALTER TABLE subscribers ADD COLUMN told_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX subscribers_told ON subscribers (told_at) WHERE told_at > 0;

-- Categories, lives, broadcast settings, stream keys.

-- Numbers the writes of categories. Updated first, so that the numbers are committed in their order: who has read the
-- rows up to a number has missed none below it.
CREATE TABLE category_clock (
    clock_id BIGINT PRIMARY KEY,
    version  BIGINT NOT NULL
);
INSERT INTO category_clock (clock_id, version) VALUES (1, 0);
ALTER TABLE categories ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
CREATE INDEX categories_version ON categories (version, category_id);

-- Numbers the changes of the live list, in the same way, and the lives.
CREATE TABLE live_clock (
    clock_id     BIGINT PRIMARY KEY,
    version      BIGINT NOT NULL,
    last_live_id BIGINT NOT NULL
);
INSERT INTO live_clock (clock_id, version, last_live_id)
    SELECT 1, 0, COALESCE(MAX(live_id), 0) FROM lives;

-- counted_since: the change that gave the live its present viewer count. tags: separated by a space, which no tag holds.
ALTER TABLE lives ADD COLUMN counted_since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE lives ADD COLUMN tags TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX lives_id ON lives (live_id);
CREATE INDEX lives_by_viewers ON lives (concurrent_user_count DESC, live_id);

-- Which viewer count a live had from one change (inclusive) to another (exclusive), so that a walk through the list goes
-- by the order that it began with. viewer_rank is minus the count: ascending, it is the order of the list. The present
-- count's span ends at the largest number and has no closed_at.
CREATE TABLE live_spans (
    live_id       BIGINT NOT NULL REFERENCES lives (live_id) ON DELETE CASCADE,
    viewer_rank   BIGINT NOT NULL,
    since_version BIGINT NOT NULL,
    until_version BIGINT NOT NULL,
    closed_at     BIGINT,
    PRIMARY KEY (live_id, since_version)
);
CREATE INDEX live_spans_order ON live_spans (viewer_rank, live_id, since_version, until_version);
CREATE INDEX live_spans_closed ON live_spans (closed_at) WHERE closed_at IS NOT NULL;
INSERT INTO live_spans (live_id, viewer_rank, since_version, until_version)
    SELECT live_id, -concurrent_user_count, 0, 9223372036854775807 FROM lives;

-- A channel's row is also the lock of what its live shows: whoever writes either updates it first.
CREATE TABLE broadcast_settings (
    channel_id         TEXT PRIMARY KEY REFERENCES channels (channel_id) ON DELETE CASCADE,
    default_live_title TEXT NOT NULL,
    category_id        TEXT REFERENCES categories (category_id),
    tags               TEXT NOT NULL
);

-- sealed_key: the key, sealed with the service's.
CREATE TABLE stream_keys (
    channel_id TEXT PRIMARY KEY REFERENCES channels (channel_id) ON DELETE CASCADE,
    sealed_key TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Lists of channels: followers, subscribers, roles.

-- The order of a list, as a number that grows along it: newest first and longest first are negative numbers. So a place in
-- a list is one comparison, (rank, id) >= (…), that both engines answer from an index.
ALTER TABLE followers ADD COLUMN newest_rank BIGINT NOT NULL DEFAULT 0;
UPDATE followers SET newest_rank = -created_at;
CREATE INDEX followers_newest ON followers (channel_id, newest_rank, follower_channel_id);

ALTER TABLE subscribers ADD COLUMN newest_rank BIGINT NOT NULL DEFAULT 0;
ALTER TABLE subscribers ADD COLUMN longest_rank BIGINT NOT NULL DEFAULT 0;
UPDATE subscribers SET newest_rank = -created_at, longest_rank = -month;
CREATE INDEX subscribers_newest ON subscribers (channel_id, newest_rank, subscriber_channel_id);
CREATE INDEX subscribers_longest ON subscribers (channel_id, longest_rank, subscriber_channel_id);

CREATE INDEX managers_appointed ON managers (channel_id, created_at, manager_channel_id);

-- How many rows of a list stand between one place and the next, so that a page deep in a list is found by adding up and
-- not by walking. Level 1 are blocks of rows, level 2 blocks of those, level 3 blocks of those again. A block reaches from
-- its first place to that of the next block of its level; the first one of a list begins before everything.
CREATE TABLE list_blocks (
    channel_id TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    list       TEXT NOT NULL,
    level      BIGINT NOT NULL,
    first_rank BIGINT NOT NULL,
    first_id   TEXT NOT NULL,
    items      BIGINT NOT NULL,
    PRIMARY KEY (channel_id, list, level, first_rank, first_id)
);

-- The rows that are there already, in half full blocks.
INSERT INTO list_blocks (channel_id, list, level, first_rank, first_id, items)
SELECT channel_id, list, level,
       CASE WHEN place = 0 THEN -9223372036854775807 ELSE rank END,
       CASE WHEN place = 0 THEN '' ELSE id END,
       CASE WHEN total - place < size THEN total - place ELSE size END
FROM (
    SELECT channel_id, list, rank, id,
           ROW_NUMBER() OVER (PARTITION BY channel_id, list ORDER BY rank, id) - 1 AS place,
           COUNT(*) OVER (PARTITION BY channel_id, list) AS total
    FROM (
        SELECT channel_id, 'FOLLOWERS' AS list, newest_rank AS rank, follower_channel_id AS id FROM followers
        UNION ALL
        SELECT channel_id, 'SUBSCRIBERS_NEWEST', newest_rank, subscriber_channel_id FROM subscribers
        UNION ALL
        SELECT channel_id, 'SUBSCRIBERS_LONGEST', longest_rank, subscriber_channel_id FROM subscribers
    ) members
) ranked
JOIN (SELECT 1 AS level, 64 AS size UNION ALL SELECT 2, 2048 UNION ALL SELECT 3, 65536) sizes ON place % size = 0;

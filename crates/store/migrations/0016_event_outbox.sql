-- Batches of events, each written in the transaction of its events and deleted when their publication was confirmed. A row
-- that stays is one whose events may not have been heard. Only PostgreSQL has rows here.
CREATE TABLE event_outbox (
    -- Grows with time.
    batch_id      TEXT NOT NULL PRIMARY KEY,
    -- The node that publishes it.
    node_id       TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    -- The ids of its channels, separated by a space.
    channels      TEXT NOT NULL,
    -- When its channels were recorded as lost; NULL while somebody still has to settle it.
    taken_over_at BIGINT
);

-- The batch of the request that had the key first.
ALTER TABLE idempotency_keys ADD COLUMN batch_id TEXT;

-- Chat messages and donations in partitions by time on PostgreSQL: an id begins with its time. Deleting a day is then
-- dropping a table. A partition before all others and one behind them take what no other takes, so no insert fails.
-- The rows that are there stay where they are, as the first partition, whose end is behind the newest of them.

-- on PostgreSQL
ALTER TABLE chat_messages RENAME TO chat_messages__past;
ALTER INDEX chat_messages_pkey RENAME TO chat_messages__past_pkey;
CREATE TABLE chat_messages (LIKE chat_messages__past, PRIMARY KEY (message_id)) PARTITION BY RANGE (message_id);
ALTER TABLE donations RENAME TO donations__past;
ALTER INDEX donations_pkey RENAME TO donations__past_pkey;
CREATE TABLE donations (LIKE donations__past, PRIMARY KEY (donation_id)) PARTITION BY RANGE (donation_id);

DO $$
DECLARE
    parent TEXT;
    id TEXT;
    past_end TEXT;
BEGIN
    FOR parent, id IN VALUES ('chat_messages', 'message_id'), ('donations', 'donation_id') LOOP
        EXECUTE format('SELECT COALESCE(MAX(%I), '''') || ''0'' FROM %I', id, parent || '__past') INTO past_end;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)',
            parent, parent || '__past', past_end);
        IF parent = 'chat_messages' THEN
            -- Nine digits of an id are a time of 4,096 ms: the messages of a chat in that time, by sender. An index entry
            -- is written near the end of the index. ONLY: the rows that are there are not indexed, because only
            -- recent messages are looked for.
            CREATE INDEX chat_messages_of_minute
                ON ONLY chat_messages (substr(message_id, 1, 9), channel_id, sender_channel_id);
        END IF;
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (MAXVALUE)',
            parent || '__next', parent, past_end);
    END LOOP;
END $$;

-- on SQLite
CREATE INDEX chat_messages_of_minute ON chat_messages (substr(message_id, 1, 9), channel_id, sender_channel_id);

-- Session lists by page number, without a walk over the pages before. A list is the sessions of an application itself, or
-- of one of its users.

-- ordinal: numbers the sessions of a list as they connect, without gaps. oldest_connected: the lowest ordinal in the list
-- that was connected then. No session of before is known to have a higher one than 0.
ALTER TABLE sessions ADD COLUMN ordinal BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN oldest_connected BIGINT NOT NULL DEFAULT 0;
UPDATE sessions SET ordinal = numbered.ordinal
FROM (
    SELECT session_key,
           ROW_NUMBER() OVER (PARTITION BY client_id, COALESCE(channel_id, '') ORDER BY session_key) AS ordinal
    FROM sessions
) numbered
WHERE numbered.session_key = sessions.session_key;
CREATE INDEX sessions_of_list ON sessions (client_id, COALESCE(channel_id, ''), ordinal);

-- Connecting writes one page of each index that is not in the order of time, and of those over all sessions, connected or
-- not, hardly one is still in memory. So there is one by application where there were two.

DROP INDEX sessions_of_user;
DROP INDEX sessions_of_client;

-- 0 for the sessions of the application itself, 1 for those of its users: each of them newest first, and both together in
-- two steps. A user's are found by sessions_of_channel.
CREATE INDEX sessions_of_application
    ON sessions (client_id, (CASE WHEN channel_id IS NULL THEN 0 ELSE 1 END), session_key);

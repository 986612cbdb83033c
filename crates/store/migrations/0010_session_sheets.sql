-- Sessions as the operator looks at them.

-- Newest first is the order of the keys, which begin with their time: all sessions are in order by themselves.
CREATE INDEX sessions_of_client ON sessions (client_id, session_key);
CREATE INDEX sessions_of_channel ON sessions (channel_id, session_key) WHERE channel_id IS NOT NULL;
CREATE INDEX sessions_still_connected ON sessions (session_key, client_id) WHERE disconnected_at IS NULL;

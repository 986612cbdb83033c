-- What a person sees of the browsers that are signed in. session_id names one in its person's list and is no credential.
-- The other columns are of the last recorded use: a use is recorded once an hour. 0 and empty before the first.
ALTER TABLE browser_sessions ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
ALTER TABLE browser_sessions ADD COLUMN last_used_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE browser_sessions ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
ALTER TABLE browser_sessions ADD COLUMN address TEXT NOT NULL DEFAULT '';
UPDATE browser_sessions SET session_id = SUBSTR(token_hash, 1, 16);
DROP INDEX browser_sessions_of_channel;
CREATE INDEX browser_sessions_of_channel ON browser_sessions (channel_id, expires_at, session_id);

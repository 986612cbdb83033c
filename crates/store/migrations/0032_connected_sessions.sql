-- The connected sessions of an application. Most of its sessions have ended, so the list does not walk over those.
CREATE INDEX sessions_connected_of_application ON sessions (client_id, session_key) WHERE disconnected_at IS NULL;

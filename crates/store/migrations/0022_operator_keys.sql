-- Keys of the platform API beside the configured one.

-- key_id names a key to the operator, and begins with its time. role: what the key allows. last_characters: what the
-- operator recognizes the key by.
CREATE TABLE operator_keys (
    key_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    key_hash TEXT NOT NULL UNIQUE,
    last_characters TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT
);

-- Credentials that can be taken back.

-- secret_id names a secret to the operator; one from before is named by a part of its hash. last_characters: what the
-- operator recognizes it by, null where only the hash is left. expires_at: from then on it proves nothing.
ALTER TABLE application_secrets ADD COLUMN secret_id TEXT NOT NULL DEFAULT '';
ALTER TABLE application_secrets ADD COLUMN last_characters TEXT;
ALTER TABLE application_secrets ADD COLUMN last_used_at BIGINT;
ALTER TABLE application_secrets ADD COLUMN expires_at BIGINT;
UPDATE application_secrets SET secret_id = substr(secret_hash, 1, 24);
CREATE UNIQUE INDEX application_secrets_id ON application_secrets (secret_id);
CREATE INDEX application_secrets_expiry ON application_secrets (expires_at) WHERE expires_at IS NOT NULL;

-- The secret that an address was issued for, and a session opened with. Null where a user's token was.
ALTER TABLE session_urls ADD COLUMN secret_id TEXT;
ALTER TABLE sessions ADD COLUMN secret_id TEXT;

-- disabled_at: since when the operator has it switched off.
ALTER TABLE applications ADD COLUMN disabled_at BIGINT;
ALTER TABLE organizations ADD COLUMN disabled_at BIGINT;
ALTER TABLE drops_campaigns ADD COLUMN disabled_at BIGINT;

-- Tokens that were revoked, of either kind: so that a refusal can say so. A row stays as long as the token's own row would
-- have stayed, so both tables together never hold more than the tokens that were issued.
CREATE TABLE ended_tokens (
    token_hash TEXT PRIMARY KEY,
    client_id  TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX ended_tokens_expiry ON ended_tokens (expires_at);

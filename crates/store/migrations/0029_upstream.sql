-- Sign-ins at the operator's OpenID Connect providers.

-- A sign-in whose browser is at the provider, or whose person is asked for the name of a new account. sealed: what the
-- node needs that finishes it.
CREATE TABLE upstream_flows (
    state_hash   TEXT PRIMARY KEY,
    browser_hash TEXT NOT NULL,
    provider     TEXT NOT NULL,
    sealed       TEXT NOT NULL,
    expires_at   BIGINT NOT NULL
);
CREATE INDEX upstream_flows_expiry ON upstream_flows (expires_at);

-- People at a provider, and their channels here. provider: its name when they were linked, for the page of the account.
CREATE TABLE upstream_identities (
    issuer       TEXT NOT NULL,
    subject      TEXT NOT NULL,
    provider     TEXT NOT NULL,
    channel_id   TEXT NOT NULL REFERENCES people (channel_id) ON DELETE CASCADE,
    shown_as     TEXT,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE UNIQUE INDEX upstream_identities_of_channel ON upstream_identities (channel_id, provider);

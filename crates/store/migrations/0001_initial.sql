-- The world behind the open API, for SQLite and PostgreSQL alike.
-- Columns are TEXT, BIGINT (counts, UTC milliseconds) and BOOLEAN. Ids that we make grow with time, so that their
-- indexes are written at the end. Secrets stand here as hashes only.

CREATE TABLE channels (
    channel_id         TEXT PRIMARY KEY,
    channel_name       TEXT NOT NULL,
    channel_image_url  TEXT,
    verified_mark      BOOLEAN NOT NULL,
    real_name_verified BOOLEAN NOT NULL,
    follower_count     BIGINT NOT NULL DEFAULT 0,
    created_at         BIGINT NOT NULL
);

-- Who can sign in. Every channel has one owner; only some of them have a login here.
CREATE TABLE people (
    channel_id    TEXT PRIMARY KEY REFERENCES channels (channel_id) ON DELETE CASCADE,
    login         TEXT NOT NULL,
    password_hash TEXT NOT NULL
);
CREATE UNIQUE INDEX people_login ON people (login);

CREATE TABLE managers (
    channel_id         TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    manager_channel_id TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    user_role          TEXT NOT NULL,
    created_at         BIGINT NOT NULL,
    PRIMARY KEY (channel_id, manager_channel_id)
);

CREATE TABLE followers (
    channel_id          TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    follower_channel_id TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    created_at          BIGINT NOT NULL,
    PRIMARY KEY (channel_id, follower_channel_id)
);

CREATE TABLE subscribers (
    channel_id            TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    subscriber_channel_id TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    tier_no               BIGINT NOT NULL,
    tier_name             TEXT NOT NULL,
    month                 BIGINT NOT NULL,
    created_at            BIGINT NOT NULL,
    PRIMARY KEY (channel_id, subscriber_channel_id)
);

CREATE TABLE categories (
    category_id      TEXT PRIMARY KEY,
    category_type    TEXT NOT NULL,
    category_value   TEXT NOT NULL,
    poster_image_url TEXT
);

CREATE TABLE lives (
    channel_id            TEXT PRIMARY KEY REFERENCES channels (channel_id) ON DELETE CASCADE,
    live_id               BIGINT NOT NULL,
    live_title            TEXT NOT NULL,
    thumbnail_image_url   TEXT,
    concurrent_user_count BIGINT NOT NULL,
    adult                 BOOLEAN NOT NULL,
    category_id           TEXT REFERENCES categories (category_id),
    opened_at             BIGINT NOT NULL
);

CREATE TABLE organizations (
    organization_id   TEXT PRIMARY KEY,
    organization_name TEXT NOT NULL,
    verified          BOOLEAN NOT NULL
);

-- scopes: a bit for each scope, in the order of the specification.
CREATE TABLE applications (
    client_id       TEXT PRIMARY KEY,
    name            TEXT NOT NULL,
    organization_id TEXT REFERENCES organizations (organization_id),
    scopes          BIGINT NOT NULL,
    profile         TEXT,
    created_at      BIGINT NOT NULL
);

CREATE TABLE application_redirect_uris (
    client_id    TEXT NOT NULL REFERENCES applications (client_id) ON DELETE CASCADE,
    redirect_uri TEXT NOT NULL,
    PRIMARY KEY (client_id, redirect_uri)
);

CREATE TABLE application_secrets (
    secret_hash TEXT PRIMARY KEY,
    client_id   TEXT NOT NULL REFERENCES applications (client_id) ON DELETE CASCADE,
    created_at  BIGINT NOT NULL
);
CREATE INDEX application_secrets_client ON application_secrets (client_id);

-- A browser that is signed in on the consent pages.
CREATE TABLE browser_sessions (
    token_hash TEXT PRIMARY KEY,
    channel_id TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    expires_at BIGINT NOT NULL
);
CREATE INDEX browser_sessions_expiry ON browser_sessions (expires_at);

-- What a user lets an application do. Every write that concerns the tokens or subscriptions of a client and a user
-- updates this row first (version), so that they come one after the other on both engines.
CREATE TABLE consents (
    client_id  TEXT NOT NULL REFERENCES applications (client_id) ON DELETE CASCADE,
    channel_id TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    scopes     BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (client_id, channel_id)
);

-- family: the tokens that one code bought, through every refresh.
CREATE TABLE authorization_codes (
    code_hash    TEXT PRIMARY KEY,
    family       TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    channel_id   TEXT NOT NULL,
    state_hash   TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    expires_at   BIGINT NOT NULL,
    used_at      BIGINT,
    FOREIGN KEY (client_id, channel_id) REFERENCES consents (client_id, channel_id) ON DELETE CASCADE
);
CREATE INDEX authorization_codes_consent ON authorization_codes (client_id, channel_id);
CREATE INDEX authorization_codes_expiry ON authorization_codes (expires_at);

CREATE TABLE access_tokens (
    token_hash TEXT PRIMARY KEY,
    family     TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (client_id, channel_id) REFERENCES consents (client_id, channel_id) ON DELETE CASCADE
);
CREATE INDEX access_tokens_consent ON access_tokens (client_id, channel_id, family);
CREATE INDEX access_tokens_expiry ON access_tokens (expires_at);

CREATE TABLE refresh_tokens (
    token_hash TEXT PRIMARY KEY,
    family     TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT,
    FOREIGN KEY (client_id, channel_id) REFERENCES consents (client_id, channel_id) ON DELETE CASCADE
);
CREATE INDEX refresh_tokens_consent ON refresh_tokens (client_id, channel_id, family);
CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at);

-- Nodes that hold sockets. A node that has not said so for a while is dead.
CREATE TABLE nodes (
    node_id TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
);

-- An address that opens one session, once. channel_id is null for a session made with client authentication.
CREATE TABLE session_urls (
    token_hash  TEXT PRIMARY KEY,
    client_id   TEXT NOT NULL REFERENCES applications (client_id) ON DELETE CASCADE,
    channel_id  TEXT REFERENCES channels (channel_id) ON DELETE CASCADE,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX session_urls_expiry ON session_urls (expires_at);

-- One row for each name under which sessions are counted together; updated first, so that the count cannot race.
CREATE TABLE session_owners (
    counted_as TEXT PRIMARY KEY,
    version    BIGINT NOT NULL
);

-- version numbers the changes of the session's subscriptions.
CREATE TABLE sessions (
    session_key     TEXT PRIMARY KEY,
    counted_as      TEXT NOT NULL,
    client_id       TEXT NOT NULL REFERENCES applications (client_id) ON DELETE CASCADE,
    channel_id      TEXT REFERENCES channels (channel_id) ON DELETE CASCADE,
    node_id         TEXT NOT NULL,
    version         BIGINT NOT NULL,
    connected_at    BIGINT NOT NULL,
    disconnected_at BIGINT,
    close_reason    TEXT
);
CREATE INDEX sessions_connected ON sessions (counted_as) WHERE disconnected_at IS NULL;
CREATE INDEX sessions_of_node ON sessions (node_id) WHERE disconnected_at IS NULL;
CREATE INDEX sessions_of_user ON sessions (client_id, channel_id, connected_at, session_key);
CREATE INDEX sessions_ended ON sessions (disconnected_at) WHERE disconnected_at IS NOT NULL;

-- A session's subscriptions, kept as they were when it ended for the session lists.
CREATE TABLE session_subscriptions (
    session_key TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
    event_type  TEXT NOT NULL,
    channel_id  TEXT NOT NULL,
    client_id   TEXT NOT NULL,
    family      TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (session_key, channel_id, event_type)
);
CREATE INDEX session_subscriptions_consent ON session_subscriptions (client_id, channel_id);

-- What became of a session's subscriptions, one numbered row a change: each becomes one SYSTEM message.
CREATE TABLE session_changes (
    session_key TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
    version     BIGINT NOT NULL,
    kind        TEXT NOT NULL,
    event_type  TEXT NOT NULL,
    channel_id  TEXT NOT NULL,
    PRIMARY KEY (session_key, version)
);

-- Written at every chat message: its only index grows with time.
CREATE TABLE chat_messages (
    message_id        TEXT PRIMARY KEY,
    channel_id        TEXT NOT NULL,
    sender_channel_id TEXT NOT NULL,
    content           TEXT NOT NULL,
    emojis            TEXT NOT NULL,
    message_time      BIGINT NOT NULL
);

CREATE TABLE donations (
    donation_id        TEXT PRIMARY KEY,
    channel_id         TEXT NOT NULL,
    donator_channel_id TEXT,
    donation_type      TEXT NOT NULL,
    pay_amount         TEXT NOT NULL,
    donation_text      TEXT NOT NULL,
    emojis             TEXT NOT NULL,
    created_at         BIGINT NOT NULL
);

-- The answer that a repeated Idempotency-Key gets again.
CREATE TABLE idempotency_keys (
    operation       TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_hash    TEXT NOT NULL,
    answer          TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (operation, idempotency_key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

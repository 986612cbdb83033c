-- The accounts of people: addresses, links of password resets, the second step of a sign-in, and messages to the mail hook.

-- In small letters. Several accounts may have one address: a unique address would confirm that an account exists.
ALTER TABLE people ADD COLUMN email TEXT;
CREATE INDEX people_email ON people (email) WHERE email IS NOT NULL;

CREATE TABLE password_resets (
    token_hash TEXT PRIMARY KEY,
    channel_id TEXT NOT NULL REFERENCES people (channel_id) ON DELETE CASCADE,
    expires_at BIGINT NOT NULL
);
CREATE INDEX password_resets_of_channel ON password_resets (channel_id);
CREATE INDEX password_resets_expiry ON password_resets (expires_at);

-- A sign-in whose password was right and whose code is missing.
CREATE TABLE pending_sign_ins (
    token_hash TEXT PRIMARY KEY,
    channel_id TEXT NOT NULL REFERENCES people (channel_id) ON DELETE CASCADE,
    expires_at BIGINT NOT NULL
);
CREATE INDEX pending_sign_ins_of_channel ON pending_sign_ins (channel_id);
CREATE INDEX pending_sign_ins_expiry ON pending_sign_ins (expires_at);

-- confirmed_at: NULL until the person has entered a first code. last_step: the latest used step of codes. failures: wrong
-- codes since failing_since.
CREATE TABLE two_factors (
    channel_id    TEXT PRIMARY KEY REFERENCES people (channel_id) ON DELETE CASCADE,
    sealed_secret TEXT NOT NULL,
    confirmed_at  BIGINT,
    last_step     BIGINT NOT NULL DEFAULT 0,
    failures      BIGINT NOT NULL DEFAULT 0,
    failing_since BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE recovery_codes (
    channel_id TEXT NOT NULL REFERENCES two_factors (channel_id) ON DELETE CASCADE,
    code_hash  TEXT NOT NULL,
    PRIMARY KEY (channel_id, code_hash)
);

-- Messages to the mail hook. channel_id is NULL for a message of no account, which is never sent: it makes a request for an
-- unknown account take as long as one for a known account.
CREATE TABLE mail_outbox (
    mail_id    TEXT PRIMARY KEY,
    channel_id TEXT REFERENCES people (channel_id) ON DELETE CASCADE,
    sealed     TEXT NOT NULL,
    attempts   BIGINT NOT NULL DEFAULT 0,
    due_at     BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX mail_outbox_of_channel ON mail_outbox (channel_id);
CREATE INDEX mail_outbox_due ON mail_outbox (due_at);
CREATE INDEX mail_outbox_expiry ON mail_outbox (expires_at);

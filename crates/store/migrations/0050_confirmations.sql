-- confirmed_at: when the person at the browser last proved after the sign-in to own the account.
ALTER TABLE browser_sessions ADD COLUMN confirmed_at BIGINT NOT NULL DEFAULT 0;

-- email_verified_at: since when it is known that messages to the address reach the person: a link that was sent there was
-- used, or a provider said so. NULL: unproven.
ALTER TABLE people ADD COLUMN email_verified_at BIGINT;
UPDATE people SET email_verified_at = (
    SELECT MIN(u.created_at) FROM upstream_identities u
    WHERE u.channel_id = people.channel_id AND LOWER(u.shown_as) = people.email);

-- email: the address that the link was sent to. NULL for a link that the operator issued.
ALTER TABLE password_resets ADD COLUMN email TEXT;

-- Messages since began_at to an address (by its hash), or of an account.
CREATE TABLE mail_counts (
    subject  TEXT PRIMARY KEY,
    began_at BIGINT NOT NULL,
    sent     BIGINT NOT NULL
);
CREATE INDEX mail_counts_began ON mail_counts (began_at);

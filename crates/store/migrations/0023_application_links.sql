-- What an application says about itself on the pages: its home page, its terms, its privacy policy, and a name of its
-- logo's bytes.
ALTER TABLE applications ADD COLUMN homepage_url TEXT;
ALTER TABLE applications ADD COLUMN terms_url TEXT;
ALTER TABLE applications ADD COLUMN privacy_url TEXT;
ALTER TABLE applications ADD COLUMN logo_version TEXT;

-- Apart, because applications are read with every new credential.
CREATE TABLE application_logos (
    client_id  TEXT PRIMARY KEY REFERENCES applications (client_id) ON DELETE CASCADE,
    media_type TEXT NOT NULL,
    base64     TEXT NOT NULL
);

-- When the application last received tokens.
ALTER TABLE consents ADD COLUMN last_used_at BIGINT;

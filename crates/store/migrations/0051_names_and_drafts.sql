-- Operators search organizations by name.
CREATE INDEX organizations_name ON organizations (organization_name, organization_id);

-- What a person typed into a form whose sign-in had ended, until the form is shown again: the last one of each person.
-- action: the path of the form. page: the page that it is on. fields: a JSON list of names and values, without secrets.
CREATE TABLE form_drafts (
    channel_id TEXT PRIMARY KEY REFERENCES channels (channel_id) ON DELETE CASCADE,
    action     TEXT NOT NULL,
    page       TEXT NOT NULL,
    fields     TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX form_drafts_expiry ON form_drafts (expires_at);

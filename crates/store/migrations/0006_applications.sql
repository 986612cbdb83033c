-- The life of applications; changes of credentials.

-- quota: whether quotas hold for it. last_used_at: when a scope of it was last used, as far as it was written down.
-- deleted_at: since when it is deleted for want of use; it can be restored until purging says that its rows are going.
ALTER TABLE applications ADD COLUMN quota BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE applications ADD COLUMN last_used_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE applications ADD COLUMN deleted_at BIGINT;
ALTER TABLE applications ADD COLUMN purging BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE applications SET last_used_at = created_at;
CREATE INDEX applications_used ON applications (last_used_at) WHERE deleted_at IS NULL;
CREATE INDEX applications_deleted ON applications (deleted_at) WHERE deleted_at IS NOT NULL;

-- Each warning that was given for want of use, once in an idle time.
CREATE TABLE application_notices (
    client_id  TEXT NOT NULL REFERENCES applications (client_id) ON DELETE CASCADE,
    kind       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (client_id, kind)
);

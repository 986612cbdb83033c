-- The people who may use the operator pages, each with a role as an operator key has it.
CREATE TABLE operators (
    channel_id TEXT PRIMARY KEY REFERENCES people (channel_id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- The lists of the operator pages.
CREATE INDEX applications_name ON applications (name, client_id);
CREATE INDEX applications_disabled ON applications (client_id) WHERE disabled_at IS NOT NULL;
CREATE INDEX applications_restorable ON applications (client_id) WHERE deleted_at IS NOT NULL AND purging = FALSE;
CREATE INDEX webhooks_in_trouble ON webhooks (client_id) WHERE failing_since IS NOT NULL OR enabled = FALSE;

-- version: of the program that the node runs.
ALTER TABLE nodes ADD COLUMN version TEXT NOT NULL DEFAULT '';

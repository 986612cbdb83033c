-- Who owns applications, the members of organizations, and the requests that the operator decides.

-- owner_channel_id: the person who owns the application. NULL where an organization or the operator does.
ALTER TABLE applications ADD COLUMN owner_channel_id TEXT REFERENCES channels (channel_id) ON DELETE SET NULL;
CREATE INDEX applications_of_owner ON applications (owner_channel_id, client_id) WHERE owner_channel_id IS NOT NULL;
DROP INDEX applications_of_organization;
CREATE INDEX applications_of_organization ON applications (organization_id, client_id);

-- disabled_at says since when one of the two has it disabled. Each enables only what it disabled.
ALTER TABLE applications ADD COLUMN disabled_by_operator BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE applications ADD COLUMN disabled_by_owner BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE applications SET disabled_by_operator = TRUE WHERE disabled_at IS NOT NULL;

-- Whether deleted_at is the decision of the owner. A late record of a use does not restore it then.
ALTER TABLE applications ADD COLUMN deleted_by_owner BOOLEAN NOT NULL DEFAULT FALSE;

-- role: admin, developer or viewer.
CREATE TABLE organization_members (
    organization_id TEXT NOT NULL REFERENCES organizations (organization_id) ON DELETE CASCADE,
    channel_id      TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    role            TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (organization_id, channel_id)
);
CREATE INDEX organization_members_of_channel ON organization_members (channel_id, organization_id);

-- request_id begins with its time. kind: organization (its verification), drops (that scope for an application) or scopes
-- (further ones). state: pending, approved, refused or withdrawn. One request of a kind is pending for a subject.
CREATE TABLE review_requests (
    request_id      TEXT PRIMARY KEY,
    kind            TEXT NOT NULL,
    organization_id TEXT REFERENCES organizations (organization_id) ON DELETE CASCADE,
    client_id       TEXT REFERENCES applications (client_id) ON DELETE CASCADE,
    scopes          BIGINT NOT NULL,
    requested_by    TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    message         TEXT NOT NULL,
    state           TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    decided_by      TEXT,
    decided_at      BIGINT,
    note            TEXT
);
CREATE INDEX review_requests_by_state ON review_requests (state, request_id);
CREATE INDEX review_requests_of_organization ON review_requests (organization_id, request_id)
    WHERE organization_id IS NOT NULL;
CREATE INDEX review_requests_of_application ON review_requests (client_id, request_id) WHERE client_id IS NOT NULL;
CREATE INDEX review_requests_of_person ON review_requests (requested_by);
CREATE UNIQUE INDEX review_requests_pending_organization ON review_requests (organization_id)
    WHERE state = 'pending' AND organization_id IS NOT NULL;
CREATE UNIQUE INDEX review_requests_pending_application ON review_requests (client_id, kind)
    WHERE state = 'pending' AND client_id IS NOT NULL;

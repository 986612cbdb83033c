-- Invitations into organizations. They name a login, whether or not it exists: the list of invitations does not tell who
-- has an account.
CREATE TABLE organization_invitations (
    organization_id TEXT NOT NULL REFERENCES organizations (organization_id) ON DELETE CASCADE,
    login           TEXT NOT NULL,
    role            TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (organization_id, login)
);
CREATE INDEX organization_invitations_of_login ON organization_invitations (login);

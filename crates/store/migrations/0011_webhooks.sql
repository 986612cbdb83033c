-- Webhooks: where publishers are told of claims, and the messages on their way there.

-- One an application. client_id is null once the webhook or the application was deleted: what hangs on it is then cleared
-- away load by load. url is null where a developer's listener fetches the messages. failing_since: the first failed
-- attempt behind the last one that did not fail.
CREATE TABLE webhooks (
    webhook_id      TEXT PRIMARY KEY,
    client_id       TEXT REFERENCES applications (client_id) ON DELETE SET NULL,
    url             TEXT,
    enabled         BOOLEAN NOT NULL,
    disabled_reason TEXT,
    disabled_at     BIGINT,
    failing_since   BIGINT,
    created_at      BIGINT NOT NULL,
    changed_at      BIGINT NOT NULL
);
CREATE UNIQUE INDEX webhooks_of_application ON webhooks (client_id);
CREATE INDEX webhooks_deleted ON webhooks (changed_at) WHERE client_id IS NULL;

-- A claim looks for the applications of its organization.
CREATE INDEX applications_of_organization ON applications (organization_id);

-- The youngest one whose time has come signs (signs_from). forget_at: when one that does not sign any more goes.
CREATE TABLE webhook_secrets (
    secret_id     TEXT PRIMARY KEY,
    webhook_id    TEXT NOT NULL REFERENCES webhooks (webhook_id) ON DELETE CASCADE,
    sealed_secret TEXT NOT NULL,
    signs_from    BIGINT NOT NULL,
    forget_at     BIGINT,
    created_at    BIGINT NOT NULL
);
CREATE INDEX webhook_secrets_of_webhook ON webhook_secrets (webhook_id, signs_from);
CREATE INDEX webhook_secrets_end ON webhook_secrets (forget_at) WHERE forget_at IS NOT NULL;

-- What the owner of a webhook is told of it.
CREATE TABLE webhook_notices (
    webhook_id TEXT NOT NULL REFERENCES webhooks (webhook_id) ON DELETE CASCADE,
    kind       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (webhook_id, created_at, kind)
);
CREATE INDEX webhook_notices_age ON webhook_notices (created_at);

-- The outbox: written in the transaction of the claim. message_id grows with time. due_at: when a waiting message is to be
-- taken; whoever takes it pushes that to the end of the lease. attempts numbers the takings, so that a result counts only
-- while its taking is the last one. failures: failed attempts since the message was last to be sent anew. changed_at: since
-- when it is in its state.
CREATE TABLE webhook_deliveries (
    webhook_id TEXT NOT NULL REFERENCES webhooks (webhook_id) ON DELETE CASCADE,
    message_id TEXT NOT NULL,
    claim_id   TEXT NOT NULL,
    data       TEXT NOT NULL,
    state      TEXT NOT NULL,
    due_at     BIGINT NOT NULL,
    in_flight  BOOLEAN NOT NULL DEFAULT FALSE,
    attempts   BIGINT NOT NULL DEFAULT 0,
    failures   BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (webhook_id, message_id)
);
-- One webhook after the other, each in the order of its messages: what waits for one costs the others nothing.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, message_id) WHERE state = 'WAITING';
CREATE INDEX webhook_deliveries_in_state ON webhook_deliveries (webhook_id, state, message_id);
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (changed_at);

-- What came of each attempt: a status, or the name of a failure.
CREATE TABLE webhook_attempts (
    webhook_id  TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    number      BIGINT NOT NULL,
    began_at    BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    status      BIGINT,
    failure     TEXT,
    excerpt     TEXT NOT NULL,
    PRIMARY KEY (webhook_id, message_id, number),
    FOREIGN KEY (webhook_id, message_id) REFERENCES webhook_deliveries (webhook_id, message_id) ON DELETE CASCADE
);

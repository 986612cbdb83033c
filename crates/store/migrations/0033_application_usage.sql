-- The requests of applications by UTC day, for the developer center.

-- day: the midnight at which it begins. kind: the key of a scope, or client, user or token.
CREATE TABLE application_usage (
    client_id TEXT NOT NULL REFERENCES applications (client_id) ON DELETE CASCADE,
    day       BIGINT NOT NULL,
    kind      TEXT NOT NULL,
    requests  BIGINT NOT NULL,
    refused   BIGINT NOT NULL,
    PRIMARY KEY (client_id, day, kind)
);
CREATE INDEX application_usage_days ON application_usage (day);

-- What an operator sees and steers: the part of the quotas that an application has, its load, the last backup.

-- quota_percent: the part of each quota that it has, while quotas hold for it.
ALTER TABLE applications ADD COLUMN quota_percent BIGINT NOT NULL DEFAULT 100
    CHECK (quota_percent BETWEEN 1 AND 100);

-- The load of applications by minute, for an hour. minute: its beginning. Rows of deleted applications end with
-- their hour.
CREATE TABLE application_load (
    minute    BIGINT NOT NULL,
    client_id TEXT NOT NULL,
    requests  BIGINT NOT NULL,
    refused   BIGINT NOT NULL,
    events    BIGINT NOT NULL,
    PRIMARY KEY (minute, client_id)
);

-- When the last backup began that was completed. One row at the most. SQLite keeps it beside the data file.
CREATE TABLE last_backup (
    only_row BOOLEAN PRIMARY KEY CHECK (only_row = TRUE),
    taken_at BIGINT NOT NULL
);

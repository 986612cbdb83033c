-- How often the answers to "whose credential is this" may have changed, by the slot that they fall into. Whoever keeps
-- such answers reads the whole table now and then: it never grows beyond its slots, and needs no clock.
CREATE TABLE credential_changes (
    slot BIGINT PRIMARY KEY,
    version BIGINT NOT NULL
);

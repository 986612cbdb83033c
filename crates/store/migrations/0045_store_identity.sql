-- One row. The id of the store is made here once; backups and archives repeat it. The test of the key is a value that is
-- sealed with the service key, so that another key is noticed: NULL until the first start with a key. The former one is
-- what it was before the last change of the key.
CREATE TABLE store_identity (
    identity_id     BIGINT PRIMARY KEY,
    store_id        TEXT NOT NULL,
    key_test        TEXT,
    former_key_test TEXT
);
-- on SQLite
INSERT INTO store_identity (identity_id, store_id) VALUES (1, lower(hex(randomblob(16))));
-- on PostgreSQL
INSERT INTO store_identity (identity_id, store_id) VALUES (1, replace(CAST(gen_random_uuid() AS TEXT), '-', ''));

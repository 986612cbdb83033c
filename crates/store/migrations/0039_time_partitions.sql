-- Sessions, messages to webhooks, changes of claims and the requests of applications in partitions by time on PostgreSQL,
-- like chat messages. Subscriptions and attempts are in partitions of the same bounds as what they belong to. The rows
-- that are there stay where they are, as the first partition. Each table keeps its columns, keys and indexes.

-- on PostgreSQL
-- A partition that a foreign key names cannot be dropped without a search through all rows that name it. So triggers do
-- what these keys did. A partition that is dropped runs no trigger.
ALTER TABLE session_subscriptions DROP CONSTRAINT session_subscriptions_session_key_fkey;
ALTER TABLE session_changes DROP CONSTRAINT session_changes_session_key_fkey;
ALTER TABLE webhook_attempts DROP CONSTRAINT webhook_attempts_webhook_id_message_id_fkey;

DO $$
DECLARE
    parent TEXT;
    key TEXT;
    newest TEXT;
    past TEXT;
    past_end TEXT;
    name TEXT;
    definition TEXT;
    constraints TEXT[];
    indexes TEXT[];
BEGIN
    FOR parent, key, newest IN VALUES
        ('sessions', 'session_key', 'SELECT COALESCE(MAX(session_key), '''') || ''0'' FROM sessions'),
        ('session_subscriptions', 'session_key', NULL),
        ('webhook_deliveries', 'message_id',
            'SELECT COALESCE(MAX(message_id), '''') || ''0'' FROM webhook_deliveries'),
        ('webhook_attempts', 'message_id', NULL),
        ('claim_changes', 'changed_at', 'SELECT COALESCE(MAX(changed_at), 0) + 1 FROM claim_changes'),
        ('application_usage', 'day', 'SELECT COALESCE(MAX(day), 0) + 1 FROM application_usage')
    LOOP
        past := parent || '__past';
        IF newest IS NOT NULL THEN
            EXECUTE newest INTO past_end;
        END IF;
        SELECT COALESCE(array_agg(format('ADD CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)) ORDER BY contype DESC), '{}')
        INTO constraints
        FROM pg_constraint WHERE conrelid = to_regclass(parent) AND contype IN ('p', 'f');
        SELECT COALESCE(array_agg(pg_get_indexdef(indexrelid)), '{}') INTO indexes
        FROM pg_index WHERE indrelid = to_regclass(parent) AND NOT indisprimary;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', parent, past);
        FOR name IN SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
            WHERE i.indrelid = to_regclass(past)
        LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', name, name || '__past');
        END LOOP;
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS) PARTITION BY RANGE (%I)', parent, past, key);
        FOREACH definition IN ARRAY constraints LOOP
            EXECUTE format('ALTER TABLE %I %s', parent, definition);
        END LOOP;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)', parent, past, past_end);
        -- Each takes over the index of the partition.
        FOREACH definition IN ARRAY indexes LOOP
            EXECUTE definition;
        END LOOP;
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (MAXVALUE)',
            parent || '__next', parent, past_end);
    END LOOP;
END $$;

CREATE FUNCTION delete_rows_of_session() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM session_subscriptions WHERE session_key = OLD.session_key;
    DELETE FROM session_changes WHERE session_key = OLD.session_key;
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_deleted AFTER DELETE ON sessions
    FOR EACH ROW EXECUTE FUNCTION delete_rows_of_session();

CREATE FUNCTION require_session() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM sessions WHERE session_key = NEW.session_key FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no such session' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER session_subscriptions_inserted AFTER INSERT ON session_subscriptions
    FOR EACH ROW EXECUTE FUNCTION require_session();
CREATE TRIGGER session_changes_inserted AFTER INSERT ON session_changes
    FOR EACH ROW EXECUTE FUNCTION require_session();

CREATE FUNCTION delete_attempts_of_delivery() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM webhook_attempts WHERE webhook_id = OLD.webhook_id AND message_id = OLD.message_id;
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_deliveries_deleted AFTER DELETE ON webhook_deliveries
    FOR EACH ROW EXECUTE FUNCTION delete_attempts_of_delivery();

CREATE FUNCTION require_delivery() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM webhook_deliveries
    WHERE webhook_id = NEW.webhook_id AND message_id = NEW.message_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no such message' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_attempts_inserted AFTER INSERT ON webhook_attempts
    FOR EACH ROW EXECUTE FUNCTION require_delivery();

//! Damage that the engines do not allow.

use crate::Target;
use crate::postgres::connector::connect_alone;

/// Runs statements beside a store, without its foreign keys and triggers. They are there again afterwards,
/// and PostgreSQL does not look at the rows that are there. Before its version 18 it cannot do so for the
/// keys of tables with partitions, which stay without.
///
/// # Panics
/// When a statement fails.
pub async fn run_unchecked(target: &Target, sql: &str) {
    match target {
        Target::Sqlite { path } => {
            let connection = rusqlite::Connection::open(path).expect("the file opens");
            connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).expect("it runs");
        }
        Target::Postgres { url } => {
            let (client, task) = connect_alone(url).await.expect("the server answers");
            client.batch_execute(&without_keys(sql)).await.expect("it runs");
            task.abort();
        }
    }
}

fn without_keys(sql: &str) -> String {
    format!(
        "DO $do$
        DECLARE
            key RECORD;
            one REGCLASS;
            again TEXT;
            tables REGCLASS[] := (SELECT array_agg(CAST(oid AS regclass)) FROM pg_class
                WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind IN ('r', 'p'));
            keys TEXT[] := '{{}}';
        BEGIN
            FOR key IN SELECT conname, CAST(conrelid AS regclass) AS of, pg_get_constraintdef(oid) AS definition
                FROM pg_constraint
                WHERE contype = 'f' AND conparentid = 0 AND connamespace = CAST(current_schema() AS regnamespace)
            LOOP
                keys := keys
                    || format('ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID', key.of, key.conname, key.definition);
                EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', key.of, key.conname);
            END LOOP;
            FOREACH one IN ARRAY tables LOOP
                EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', one);
            END LOOP;
            EXECUTE $sql${sql}$sql$;
            FOREACH one IN ARRAY tables LOOP
                IF EXISTS (SELECT 1 FROM pg_class WHERE oid = one) THEN
                    EXECUTE format('ALTER TABLE %s ENABLE TRIGGER USER', one);
                END IF;
            END LOOP;
            FOREACH again IN ARRAY keys LOOP
                BEGIN
                    EXECUTE again;
                EXCEPTION WHEN feature_not_supported OR wrong_object_type OR undefined_table THEN
                    NULL;
                END;
            END LOOP;
        END $do$"
    )
}

//! The plans of statements, for tests.

/// The steps of SQLite's plan of a statement, with the whole schema.
pub(super) fn sqlite_plan(sql: &str) -> Vec<String> {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    crate::sqlite::add_functions(&database).unwrap();
    for migration in crate::migrate::MIGRATIONS {
        let text = migration.text_for(crate::migrate::MigratedEngine::Sqlite);
        database.execute_batch(&text).unwrap();
    }
    let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let nothing = std::iter::repeat_n(None::<i64>, statement.parameter_count());
    let steps = statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get("detail")).unwrap();
    steps.map(Result::unwrap).collect()
}

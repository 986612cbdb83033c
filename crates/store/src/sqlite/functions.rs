//! Functions of PostgreSQL that SQLite does not have.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::FromSqlError;

/// Adds them to a connection.
pub(crate) fn add_functions(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("translate", 3, flags, translate)
}

/// `translate(text, from, to)`: the text with each character of `from` replaced by the one at its place in
/// `to`. The two are parameters, so their map is made once for a statement.
fn translate(context: &Context<'_>) -> rusqlite::Result<Option<String>> {
    let text = |at: usize| context.get_raw(at).as_str_or_null();
    let wrong = |error: FromSqlError| rusqlite::Error::UserFunctionError(error.into());
    let (Some(original), Some(to)) = (text(0).map_err(wrong)?, text(2).map_err(wrong)?) else {
        return Ok(None);
    };
    let map: Arc<HashMap<char, char>> = context.get_or_create_aux(1, |from| {
        let from = from.as_str_or_null()?.unwrap_or_default();
        Ok::<_, FromSqlError>(from.chars().zip(to.chars()).collect())
    })?;
    Ok(Some(original.chars().map(|character| *map.get(&character).unwrap_or(&character)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_replaced_as_by_postgresql() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        add_functions(&connection).unwrap();
        let translated = |text: Option<&str>| {
            let row = |row: &rusqlite::Row<'_>| row.get::<_, Option<String>>(0);
            connection.query_row("SELECT translate(?1, 'ÉＡ', 'éa')", [text], row).unwrap()
        };
        assert_eq!(translated(Some("ÉcＡe")).as_deref(), Some("écae"));
        assert_eq!(translated(None), None);
    }
}

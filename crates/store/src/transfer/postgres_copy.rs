//! A schema of PostgreSQL that rows are copied into. A table of the schema says how far the copy is, so that
//! a copy that was interrupted goes on, and no node starts on a half-filled schema.

use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::catalog::{ColumnKind, TableShape};
use super::postgres_source::{Connected, failed};
use super::{Chunk, Chunks};
use crate::migrate::MIGRATIONS;
use crate::postgres::connector::{ANALYZE_FILLED_TABLES, TRANSFER_PROGRESS, check_own, migrate_on};
use crate::{DatabaseUrl, Row, StoreError, Value};

/// How far the copy of a table is. `source` is the same in every row.
const CREATE_PROGRESS: &str = "CREATE TABLE transfer_progress (
    table_name TEXT PRIMARY KEY, source TEXT NOT NULL, last_key TEXT NOT NULL, is_done BOOLEAN NOT NULL)";

const RECORD_PROGRESS: &str = "INSERT INTO transfer_progress (table_name, source, last_key, is_done)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (table_name) DO UPDATE SET last_key = excluded.last_key, is_done = excluded.is_done";

/// The name of the row that only names the source.
const WHOLE: &str = "";

/// What becomes of the rows of a copy that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// They stay, and the copy goes on after them.
    Never,
    /// They are copied again.
    Always,
}

/// What becomes of a copy that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyBegin {
    /// Of the same source.
    pub restart: Restart,
    /// Whether one of another source is replaced. Otherwise it is refused.
    pub other: bool,
}

impl CopyBegin {
    /// The same copy goes on, and another one is refused.
    pub const GO_ON: Self = Self { restart: Restart::Never, other: false };
}

/// A schema that is being filled.
pub(super) struct PostgresCopy {
    connected: Connected,
    source: String,
}

/// How far the copy of a table is.
pub(super) enum TableState {
    /// No row was copied.
    Fresh,
    /// The rows up to this key were copied.
    After(Vec<Value<'static>>),
    /// All rows were copied.
    Done,
}

impl PostgresCopy {
    /// Prepares an empty schema, or goes on with the copy of `source` that was interrupted. No node has
    /// started on the rows of a copy that is not complete.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the schema has a store, or a part of another one.
    pub async fn begin(url: &DatabaseUrl, source: &str, begin: CopyBegin) -> Result<Self, StoreError> {
        let connected = Connected::open(url).await?;
        let copy = Self { connected, source: source.to_owned() };
        let mut restart = begin.restart;
        if copy.connected.has_table(TRANSFER_PROGRESS).await? {
            match copy.other_source().await? {
                None => {}
                Some(_) if begin.other => restart = Restart::Always,
                Some(found) => {
                    return Err(StoreError::Open(format!(
                        "it holds a part of another store ({found}): finish that copy, replace it with --other-store, \
                         or empty the schema"
                    )));
                }
            }
        } else if copy.connected.history().await?.is_empty() {
            check_own(copy.client()).await?;
            copy.client().batch_execute(CREATE_PROGRESS).await.map_err(failed)?;
            copy.record(WHOLE, "", false).await?;
        } else {
            // A store of an earlier release has no id.
            let id = copy.connected.texts("SELECT store_id FROM store_identity").await.unwrap_or_default();
            let id = id.first().map(|id| format!(" ({id})")).unwrap_or_default();
            return Err(StoreError::Open(format!(
                "its schema has a store already{id}: give the copy an empty database, or an empty schema in the \
                 search_path"
            )));
        }
        migrate_on(copy.client(), MIGRATIONS).await?;
        if restart == Restart::Always {
            let sql = "DELETE FROM transfer_progress";
            copy.client().batch_execute(sql).await.map_err(failed)?;
            copy.record(WHOLE, "", false).await?;
        }
        Ok(copy)
    }

    fn client(&self) -> &Client {
        &self.connected.client
    }

    /// The source of the copy that was interrupted, if it is another one.
    async fn other_source(&self) -> Result<Option<String>, StoreError> {
        let sql = "SELECT source FROM transfer_progress WHERE table_name = ''";
        let row = self.client().query_opt(sql, &[]).await.map_err(failed)?;
        let Some(row) = row else { return self.record(WHOLE, "", false).await.map(|()| None) };
        let found: String = row.try_get(0).map_err(failed)?;
        Ok((found != self.source).then_some(found))
    }

    async fn record(&self, table: &str, last_key: &str, is_done: bool) -> Result<(), StoreError> {
        let values: [&(dyn ToSql + Sync); 4] = [&table, &self.source, &last_key, &is_done];
        self.client().execute(RECORD_PROGRESS, &values).await.map(drop).map_err(failed)
    }

    /// How far the copy of a table is.
    pub async fn state(&self, table: &TableShape) -> Result<TableState, StoreError> {
        let sql = "SELECT last_key, is_done FROM transfer_progress WHERE table_name = $1";
        let Some(row) = self.client().query_opt(sql, &[&table.name]).await.map_err(failed)? else {
            return Ok(TableState::Fresh);
        };
        let (key, is_done): (String, bool) =
            (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        match is_done {
            true => Ok(TableState::Done),
            false => Ok(TableState::After(parse_key(table, &key)?)),
        }
    }

    /// Deletes the rows of a table whose copy begins: those that migrations have inserted, and those of a
    /// copy that begins anew.
    pub async fn clear(&self, table: &TableShape) -> Result<(), StoreError> {
        self.client().batch_execute(&format!("TRUNCATE {} CASCADE", table.name)).await.map_err(failed)
    }

    /// Copies the chunks of a table, one transaction for each, and records how far the copy is with it. A
    /// table without a key is one transaction.
    pub async fn copy_table(
        &self,
        table: &TableShape,
        chunks: &mut Chunks,
        on_rows: &mut (dyn FnMut(usize) + Send),
    ) -> Result<(), StoreError> {
        let is_whole = table.key.is_empty();
        if is_whole {
            self.begin_transaction().await?;
        }
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk?;
            if !is_whole {
                self.begin_transaction().await?;
            }
            self.copy_in(table, &chunk).await?;
            if let (false, Some(last)) = (is_whole, chunk.last()) {
                self.record(&table.name, &key_text(&table.key_of(last)), false).await?;
                self.commit().await?;
            }
            on_rows(chunk.len());
        }
        self.record(&table.name, "", true).await?;
        if is_whole {
            self.commit().await?;
        }
        Ok(())
    }

    async fn begin_transaction(&self) -> Result<(), StoreError> {
        self.client().batch_execute("BEGIN").await.map_err(failed)
    }

    async fn commit(&self) -> Result<(), StoreError> {
        self.client().batch_execute("COMMIT").await.map_err(failed)
    }

    async fn copy_in(&self, table: &TableShape, chunk: &Chunk) -> Result<(), StoreError> {
        let sink = self.client().copy_in::<_, Bytes>(&table.copy_in()).await.map_err(failed)?;
        let mut sink = std::pin::pin!(sink);
        sink.send(encode(chunk)).await.map_err(failed)?;
        sink.finish().await.map(drop).map_err(failed)
    }

    /// Analyzes the tables, and removes the table that says how far the copy is. Nodes can start then.
    pub async fn finish(&self) -> Result<(), StoreError> {
        self.client().batch_execute(ANALYZE_FILLED_TABLES).await.map_err(failed)?;
        self.client().batch_execute("DROP TABLE transfer_progress").await.map_err(failed)
    }
}

/// Rows in the text format of COPY.
fn encode(rows: &[Row]) -> Bytes {
    let mut text = String::with_capacity(rows.len() * 128);
    for row in rows {
        for (index, value) in row.values().iter().enumerate() {
            if index > 0 {
                text.push('\t');
            }
            encode_value(value, &mut text);
        }
        text.push('\n');
    }
    Bytes::from(text)
}

fn encode_value(value: &Value<'_>, text: &mut String) {
    match value {
        Value::Null => text.push_str("\\N"),
        Value::Int(value) => text.push_str(&value.to_string()),
        Value::Bool(value) => text.push(if *value { 't' } else { 'f' }),
        Value::Text(value) => {
            for character in value.chars() {
                match character {
                    '\\' => text.push_str("\\\\"),
                    '\t' => text.push_str("\\t"),
                    '\n' => text.push_str("\\n"),
                    '\r' => text.push_str("\\r"),
                    other => text.push(other),
                }
            }
        }
        // No column is an array.
        Value::Ints(_) | Value::Bools(_) | Value::Texts(_) => {}
    }
}

/// The values of a key, each with the number of its bytes before it.
fn key_text(key: &[Value<'_>]) -> String {
    let mut text = String::new();
    for value in key {
        let value = match value {
            Value::Text(text) => text.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Bool(value) => value.to_string(),
            // No key has an array.
            Value::Null | Value::Ints(_) | Value::Bools(_) | Value::Texts(_) => String::new(),
        };
        text.push_str(&format!("{}:{value}", value.len()));
    }
    text
}

fn parse_key(table: &TableShape, text: &str) -> Result<Vec<Value<'static>>, StoreError> {
    let unreadable =
        || StoreError::Open(format!("the progress of {} cannot be read: start anew", table.name));
    let mut rest = text;
    let mut key = Vec::with_capacity(table.key.len());
    for index in &table.key {
        let (length, tail) = rest.split_once(':').ok_or_else(unreadable)?;
        let length = length.parse().map_err(|_| unreadable())?;
        let (part, tail) = tail.split_at_checked(length).ok_or_else(unreadable)?;
        key.push(match table.columns[*index].kind {
            ColumnKind::Text => Value::Text(part.to_owned().into()),
            ColumnKind::Integer => Value::Int(part.parse().map_err(|_| unreadable())?),
            ColumnKind::Boolean => Value::Bool(part.parse().map_err(|_| unreadable())?),
        });
        rest = tail;
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Catalog;
    use super::*;

    #[test]
    fn values_are_escaped_for_copy() {
        let row = Row::new(vec!["a\tb\\c\nd\re".into(), Value::Null, true.into(), (-7).into(), "\\N".into()]);
        assert_eq!(encode(&[row]).as_ref(), b"a\\tb\\\\c\\nd\\re\t\\N\tt\t-7\t\\\\N\n");
    }

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let catalog = Catalog::of(MIGRATIONS).unwrap();
        let table = catalog.tables().iter().find(|table| table.name == "lost_events").unwrap();
        let key = vec![7.into(), "a:b\u{1f}".into(), "".into()];
        assert_eq!(parse_key(table, &key_text(&key)).unwrap(), key);
        for text in ["", "1:7", "x:7", "9:7", "1:72:é"] {
            assert!(parse_key(table, text).is_err(), "{text}");
        }
    }
}

//! The rows of a PostgreSQL database, on a connection of its own.

use std::pin::pin;

use futures_util::TryStreamExt;
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};

use super::catalog::{ColumnKind, ColumnShape, TableShape};
use super::{CHUNK_ROWS, ChunkSender};
use crate::migrate::Applied;
use crate::postgres::connection::failure;
use crate::postgres::connector;
use crate::{DatabaseUrl, Row, StoreError, Value};

/// A connection without time-outs, which ends with this value.
pub(super) struct Connected {
    pub client: Client,
    task: JoinHandle<()>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn failed(error: Error) -> StoreError {
    failure(&error, "")
}

impl Connected {
    pub async fn open(url: &DatabaseUrl) -> Result<Self, StoreError> {
        let (client, task) = connector::connect_alone(url).await?;
        Ok(Self { client, task })
    }

    /// Begins a transaction in which every read sees the same data.
    pub async fn begin_snapshot(&self) -> Result<(), StoreError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SAVEPOINT reading";
        self.client.batch_execute(begin).await.map_err(failed)
    }

    /// Lets the transaction go on after a statement that failed.
    pub async fn go_on(&self) -> Result<(), StoreError> {
        self.client.batch_execute("ROLLBACK TO SAVEPOINT reading").await.map_err(failed)
    }

    /// The applied migrations, none for a schema without their table.
    pub async fn history(&self) -> Result<Vec<Applied>, StoreError> {
        connector::history(&self.client).await.map_err(failed)
    }

    pub async fn has_table(&self, name: &str) -> Result<bool, StoreError> {
        connector::has_table(&self.client, name).await.map_err(failed)
    }

    /// The texts of the only column of a statement.
    pub async fn texts(&self, sql: &str) -> Result<Vec<String>, StoreError> {
        let read = self.client.query(sql, &[]).await;
        let texts = read.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect::<Result<_, Error>>());
        if texts.is_err() {
            // Of a connection that is lost the error of the statement says more.
            let _ = self.go_on().await;
        }
        texts.map_err(failed)
    }

    /// Sends the rows of a table in chunks, and stops when the receiver is gone.
    pub async fn send_rows(
        &self,
        table: &TableShape,
        sql: &str,
        params: &[Value<'static>],
        to: &ChunkSender,
    ) {
        if let Err(error) = self.send_rows_or_fail(table, sql, params, to).await {
            // A receiver that is gone needs no error.
            let _ = to.send(Err(table.unread(error))).await;
        }
    }

    async fn send_rows_or_fail(
        &self,
        table: &TableShape,
        sql: &str,
        params: &[Value<'static>],
        to: &ChunkSender,
    ) -> Result<(), StoreError> {
        let params: Vec<Box<dyn ToSql + Sync + Send>> = params.iter().map(parameter).collect();
        let mut rows = pin!(self.client.query_raw(sql, params).await.map_err(failed)?);
        let mut chunk = Vec::with_capacity(CHUNK_ROWS);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            chunk.push(read(&row, table)?);
            if chunk.len() == CHUNK_ROWS {
                let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK_ROWS));
                if to.send(Ok(full)).await.is_err() {
                    return Ok(());
                }
            }
        }
        if !chunk.is_empty() {
            let _ = to.send(Ok(chunk)).await;
        }
        Ok(())
    }
}

fn parameter(value: &Value<'static>) -> Box<dyn ToSql + Sync + Send> {
    match value {
        // No key has an array.
        Value::Null | Value::Ints(_) | Value::Bools(_) | Value::Texts(_) => Box::new(None::<String>),
        Value::Int(value) => Box::new(*value),
        Value::Bool(value) => Box::new(*value),
        Value::Text(text) => Box::new(text.to_string()),
    }
}

fn read(row: &tokio_postgres::Row, table: &TableShape) -> Result<Row, StoreError> {
    let mut values = Vec::with_capacity(table.columns.len());
    for (index, ColumnShape { kind, .. }) in table.columns.iter().enumerate() {
        let value = match kind {
            ColumnKind::Text => row.try_get::<_, Option<String>>(index).map(Value::from),
            ColumnKind::Integer => row.try_get::<_, Option<i64>>(index).map(Value::from),
            ColumnKind::Boolean => row.try_get::<_, Option<bool>>(index).map(Value::from),
        };
        values.push(value.map_err(|_| StoreError::Decode {
            column: index,
            wanted: kind.name(),
            found: row.columns()[index].type_().name().to_owned(),
        })?);
    }
    Ok(Row::new(values))
}

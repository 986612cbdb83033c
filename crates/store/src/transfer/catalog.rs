//! The tables of the schema: their columns, their keys, and the order in which rows can be inserted.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use crate::migrate::{MigratedEngine, Migration};
use crate::sqlite::connection::running;
use crate::{Row, StoreError, Value};

/// The tables of the program's schema, each after the tables that its foreign keys name. Both engines have
/// these tables. The table of the applied migrations is left out, and that of the last backup, which is about
/// the store and not in it.
#[derive(Debug, Clone)]
pub struct Catalog {
    tables: Vec<TableShape>,
}

/// The columns and the key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableShape {
    pub name: String,
    pub columns: Vec<ColumnShape>,
    /// The positions of the columns of the primary key. Empty if the table has none.
    pub key: Vec<usize>,
    /// The tables that its foreign keys name.
    parents: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnShape {
    pub name: String,
    pub kind: ColumnKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Text,
    Integer,
    Boolean,
}

pub(super) const TABLES: &str = "SELECT name FROM sqlite_master
    WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
      AND name NOT IN ('schema_migrations', 'last_backup')
    ORDER BY name";

const COLUMNS: &str = "SELECT name, type, pk FROM pragma_table_info(?1) ORDER BY cid";

const PARENTS: &str = "SELECT DISTINCT \"table\" FROM pragma_foreign_key_list(?1)";

impl Catalog {
    /// The tables after these migrations, read from an empty database in memory.
    pub(crate) fn of(migrations: &[Migration]) -> Result<Self, StoreError> {
        let failed = |error| running(error, "");
        let schema = Connection::open_in_memory().map_err(failed)?;
        for migration in migrations {
            let text = migration.text_for(MigratedEngine::Sqlite);
            schema.execute_batch(&text).map_err(|error| crate::migrate::failed(migration, &error))?;
        }
        let mut shapes = BTreeMap::new();
        let names: Vec<String> = read_all(&schema, TABLES, []).map_err(failed)?;
        for name in names {
            let shape = read_shape(&schema, &name)?;
            shapes.insert(name, shape);
        }
        Ok(Self { tables: parents_first(shapes)? })
    }

    pub(super) fn tables(&self) -> &[TableShape] {
        &self.tables
    }

    /// A table by its name.
    pub(super) fn table(&self, name: &str) -> Result<&TableShape, StoreError> {
        let table = self.tables.iter().find(|table| table.name == name);
        table.ok_or(StoreError::Misuse("the schema has no such table"))
    }
}

fn read_all<P: rusqlite::Params>(schema: &Connection, sql: &str, params: P) -> rusqlite::Result<Vec<String>> {
    schema.prepare(sql)?.query_map(params, |row| row.get(0))?.collect()
}

fn read_shape(schema: &Connection, name: &str) -> Result<TableShape, StoreError> {
    let read = || -> rusqlite::Result<Vec<(String, String, i64)>> {
        let mut statement = schema.prepare(COLUMNS)?;
        statement.query_map([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
    };
    let read = read().map_err(|error| running(error, COLUMNS))?;
    let mut columns = Vec::with_capacity(read.len());
    let mut key = BTreeMap::new();
    for (index, (column, kind, position)) in read.into_iter().enumerate() {
        if position > 0 {
            key.insert(position, index);
        }
        columns.push(ColumnShape { name: column, kind: ColumnKind::parse(name, &kind)? });
    }
    let parents = read_all(schema, PARENTS, [name]).map_err(|error| running(error, PARENTS))?;
    let parents = parents.into_iter().filter(|parent| parent != name).collect();
    Ok(TableShape { name: name.to_owned(), columns, key: key.into_values().collect(), parents })
}

/// Each table after the tables that its foreign keys name.
fn parents_first(mut shapes: BTreeMap<String, TableShape>) -> Result<Vec<TableShape>, StoreError> {
    let mut ordered = Vec::with_capacity(shapes.len());
    while !shapes.is_empty() {
        let is_free = |shape: &&TableShape| shape.parents.iter().all(|parent| !shapes.contains_key(parent));
        let free: Vec<String> = shapes.values().filter(is_free).map(|shape| shape.name.clone()).collect();
        if free.is_empty() {
            return Err(StoreError::Misuse("the foreign keys of the schema form a circle"));
        }
        ordered.extend(free.iter().filter_map(|name| shapes.remove(name)));
    }
    Ok(ordered)
}

impl ColumnKind {
    fn parse(table: &str, declared: &str) -> Result<Self, StoreError> {
        match declared {
            "TEXT" => Ok(Self::Text),
            "BIGINT" => Ok(Self::Integer),
            "BOOLEAN" => Ok(Self::Boolean),
            other => Err(StoreError::Open(format!("{table} has a column of the type {other}"))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "bigint",
            Self::Boolean => "boolean",
        }
    }
}

impl TableShape {
    fn column_list(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        names.join(", ")
    }

    fn key_list(&self) -> String {
        let names: Vec<&str> = self.key.iter().map(|index| self.columns[*index].name.as_str()).collect();
        names.join(", ")
    }

    /// The position of a column; the number of columns if there is none of this name.
    pub fn position(&self, name: &str) -> usize {
        self.columns.iter().position(|column| column.name == name).unwrap_or(self.columns.len())
    }

    /// The error of a read of this table, with its name. What passes by itself stays as it is.
    pub fn unread(&self, error: StoreError) -> StoreError {
        let table = &self.name;
        match error {
            StoreError::Decode { column, wanted, found } => {
                let column = self.columns.get(column).map_or("?", |column| &column.name);
                StoreError::Corrupt(format!("{table}.{column}: wanted {wanted}, found {found}"))
            }
            StoreError::Corrupt(problem) | StoreError::Open(problem) => {
                StoreError::Corrupt(format!("{table}: {problem}"))
            }
            error @ StoreError::Statement { .. } => StoreError::Corrupt(format!("{table}: {error}")),
            other => other,
        }
    }

    /// Selects all rows, in no order.
    pub fn select_all(&self) -> String {
        format!("SELECT {} FROM {}", self.column_list(), self.name)
    }

    /// Selects the rows in the order of the key, after a key if `is_continued`: its values are `$1..$n`.
    pub fn select_in_order(&self, is_continued: bool) -> String {
        let (columns, table, key) = (self.column_list(), &self.name, self.key_list());
        let after = if is_continued {
            let places: Vec<String> = (1..=self.key.len()).map(|place| format!("${place}")).collect();
            format!(" WHERE ({key}) > ({})", places.join(", "))
        } else {
            String::new()
        };
        format!("SELECT {columns} FROM {table}{after} ORDER BY {key}")
    }

    pub fn insert(&self) -> String {
        let places: Vec<String> = (1..=self.columns.len()).map(|place| format!("?{place}")).collect();
        format!("INSERT INTO {} ({}) VALUES ({})", self.name, self.column_list(), places.join(", "))
    }

    pub fn copy_in(&self) -> String {
        format!("COPY {} ({}) FROM STDIN", self.name, self.column_list())
    }

    /// The values of the key of a row.
    pub fn key_of(&self, row: &Row) -> Vec<Value<'static>> {
        self.key.iter().map(|index| row.values()[*index].clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::MIGRATIONS;

    #[test]
    fn parents_come_before_children_and_every_table_is_there() {
        let catalog = Catalog::of(MIGRATIONS).unwrap();
        let position = |name: &str| catalog.tables().iter().position(|table| table.name == name).unwrap();
        assert!(position("channels") < position("people"));
        assert!(position("people") < position("two_factors"));
        assert!(position("two_factors") < position("recovery_codes"));
        assert!(position("webhook_deliveries") < position("webhook_attempts"));
        let count = |words: &str| -> usize {
            let texts = MIGRATIONS.iter().map(|migration| migration.text_for(MigratedEngine::Sqlite));
            texts.map(|text| text.matches(words).count()).sum()
        };
        let (created, dropped) = (count("CREATE TABLE "), count("DROP TABLE "));
        // The time of the last backup stays where it is.
        assert_eq!(catalog.tables().len(), created - dropped - 1);
    }

    #[test]
    fn keys_are_in_the_order_of_the_primary_key() {
        let catalog = Catalog::of(MIGRATIONS).unwrap();
        let table = catalog.tables().iter().find(|table| table.name == "consents").unwrap();
        assert_eq!(table.key_list(), "client_id, channel_id");
        let after = table.select_in_order(true);
        assert!(after.ends_with("WHERE (client_id, channel_id) > ($1, $2) ORDER BY client_id, channel_id"));
    }
}

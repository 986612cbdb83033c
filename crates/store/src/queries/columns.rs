//! The columns of a row, declared once: [`columns!`] makes the list of a SELECT or RETURNING, and reads a row
//! in the same order. A row without a struct is read as a tuple.

use crate::{FromValue, Row, StoreError, Tx, Value};

/// Declares the columns of a struct: each field with its SQL. `COLUMNS` is the list for a statement.
///
/// ```text
/// columns!(Delivery { message_id: "d.message_id", tags: "d.tags" => stored_tags; attempts: Vec::new() });
/// const DELIVERY: &str = sql!("SELECT ", Delivery::COLUMNS, " FROM deliveries d WHERE d.message_id = $1");
/// ```
///
/// - `=>` names a function that makes the field of the value. Of several columns it gets a tuple.
/// - The columns of another struct are its `COLUMNS`.
/// - After `;` stand the fields that have no column, with their values.
/// - `outer_join` declares a struct that can be read as an `Option` too: `None` if the first column is NULL.
///   Each of its fields is one column.
macro_rules! columns {
    (outer_join $row:ident { $($field:ident: $sql:literal),+ $(,)? }) => {
        columns!($row { $($field: $sql),+ });

        impl<'r> $crate::queries::columns::FromColumns<'r> for Option<$row> {
            fn from_columns(
                columns: &mut $crate::queries::columns::Columns<'r>,
            ) -> Result<Self, $crate::StoreError> {
                let count = [$(stringify!($field)),+].len();
                if columns.skip_null(count) { Ok(None) } else { columns.take().map(Some) }
            }
        }
    };
    ($row:ident {
        $first:ident: $first_sql:expr $(=> $first_from:expr)?
        $(, $field:ident: $sql:expr $(=> $from:expr)?)* $(,)?
        $(; $($other:ident: $value:expr),+ $(,)?)?
    }) => {
        impl $crate::queries::columns::Select for $row {
            const COLUMNS: &'static str = sql!($first_sql $(, ", ", $sql)*);
        }

        impl<'r> $crate::queries::columns::FromColumns<'r> for $row {
            fn from_columns(
                columns: &mut $crate::queries::columns::Columns<'r>,
            ) -> Result<Self, $crate::StoreError> {
                Ok(Self {
                    $first: $($first_from)?(columns.take()?),
                    $($field: $($from)?(columns.take()?),)*
                    $($($other: $value),+)?
                })
            }
        }
    };
}
pub(super) use columns;

/// One SQL text of constant parts.
pub(super) use constcat::concat as sql;

/// A struct whose columns are declared.
pub(super) trait Select {
    /// The columns, separated by commas.
    const COLUMNS: &'static str;
}

/// A type that is read from one column, or from several that follow each other.
pub(super) trait FromColumns<'r>: Sized {
    fn from_columns(columns: &mut Columns<'r>) -> Result<Self, StoreError>;
}

/// The columns of a row, from the next one on.
pub(super) struct Columns<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> Columns<'r> {
    /// Reads the next value, or struct.
    pub(super) fn take<T: FromColumns<'r>>(&mut self) -> Result<T, StoreError> {
        T::from_columns(self)
    }

    /// Skips `count` columns if the next one is NULL: `false` if it is not.
    pub(super) fn skip_null(&mut self, count: usize) -> bool {
        let is_null = matches!(self.row.values().get(self.next), Some(Value::Null));
        if is_null {
            self.next += count;
        }
        is_null
    }
}

impl<'r, T: FromValue<'r>> FromColumns<'r> for T {
    fn from_columns(columns: &mut Columns<'r>) -> Result<Self, StoreError> {
        let value = columns.row.get(columns.next)?;
        columns.next += 1;
        Ok(value)
    }
}

macro_rules! tuples {
    ($(($($item:ident),+))+) => {$(
        impl<'r, $($item: FromColumns<'r>),+> FromColumns<'r> for ($($item,)+) {
            fn from_columns(columns: &mut Columns<'r>) -> Result<Self, StoreError> {
                Ok(($(columns.take::<$item>()?,)+))
            }
        }
    )+};
}
tuples!((A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E));

fn read<'r, T: FromColumns<'r>>(row: &'r Row) -> Result<T, StoreError> {
    let mut columns = Columns { row, next: 0 };
    let value = columns.take()?;
    if columns.next < row.values().len() {
        return Err(StoreError::Misuse("a row has more columns than are read"));
    }
    Ok(value)
}

impl Tx {
    /// Runs a statement and reads its rows.
    pub(super) async fn fetch_all<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<Vec<T>, StoreError>
    where
        T: for<'r> FromColumns<'r>,
    {
        self.query(sql, params).await?.iter().map(read).collect()
    }

    /// Runs a statement as the last one of its transaction, commits, and reads the rows.
    pub(super) async fn fetch_with_commit<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<Vec<T>, StoreError>
    where
        T: for<'r> FromColumns<'r>,
    {
        self.query_with_commit(sql, params).await?.iter().map(read).collect()
    }

    /// Runs a statement that gives one row or none, and reads it.
    pub(super) async fn fetch_optional<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<Option<T>, StoreError>
    where
        T: for<'r> FromColumns<'r>,
    {
        self.query_opt(sql, params).await?.as_ref().map(read).transpose()
    }

    /// Runs a statement that gives exactly one row, and reads it.
    pub(super) async fn fetch_one<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<T, StoreError>
    where
        T: for<'r> FromColumns<'r>,
    {
        read(&self.query_one(sql, params).await?)
    }
}

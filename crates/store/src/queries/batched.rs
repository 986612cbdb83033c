//! One statement for a batch of rows. Most of the cost of a short statement is to begin and to end it, and on
//! PostgreSQL the round trip.
//!
//! On SQLite the rows are a list of parameters, and each length of the list has its text. On PostgreSQL each
//! column is an array, so one text takes every length.

use std::array;

use crate::queries::columns::FromColumns;
use crate::{StoreError, Tx, Value};

/// The most rows of one statement on SQLite. A longer list saves hardly anything more a row.
const LIST_MAX: usize = 16;
/// The most rows of one statement on PostgreSQL.
const ARRAY_MAX: usize = 512;

/// The type of a column.
#[derive(Clone, Copy)]
pub(super) enum ColumnType {
    /// TEXT NOT NULL.
    Text,
    /// BIGINT.
    BigInt,
}

/// A statement over rows of `N` parameters. A text is prepared when it is first used.
pub(super) struct BatchedStatement<const N: usize> {
    columns: [ColumnType; N],
    /// With 1 to [`LIST_MAX`] rows.
    of_lists: [String; LIST_MAX],
    of_arrays: String,
}

impl<const N: usize> BatchedStatement<N> {
    /// `statement` makes the text from a query that gives the rows: `VALUES …` or `SELECT …`.
    pub fn new(columns: [ColumnType; N], statement: impl Fn(&str) -> String) -> Self {
        let list = |before| statement(&list_of(before + 1, false, N));
        Self { columns, of_lists: array::from_fn(list), of_arrays: statement(&arrays_of(&columns, false)) }
    }

    /// Like [`new`](Self::new). The first column of the query is the place of the row, from 0.
    pub fn placed(columns: [ColumnType; N], statement: impl Fn(&str) -> String) -> Self {
        let list = |before| statement(&list_of(before + 1, true, N));
        Self { columns, of_lists: array::from_fn(list), of_arrays: statement(&arrays_of(&columns, true)) }
    }

    /// The text for a batch, and its parameters.
    fn with<'a>(
        &'static self,
        batch: Vec<[Value<'a>; N]>,
        takes_arrays: bool,
    ) -> Result<(&'static str, Vec<Value<'a>>), StoreError> {
        if !takes_arrays {
            let text = &self.of_lists[batch.len() - 1];
            return Ok((text, batch.into_iter().flatten().collect()));
        }
        let empty = |column: ColumnType| match column {
            ColumnType::Text => Value::Texts(Vec::with_capacity(batch.len())),
            ColumnType::BigInt => Value::Ints(Vec::with_capacity(batch.len())),
        };
        let mut arrays: Vec<Value<'a>> = self.columns.map(empty).into();
        for value in batch.into_iter().flat_map(|row| row.into_iter().enumerate()) {
            match (&mut arrays[value.0], value.1) {
                (Value::Texts(texts), Value::Text(text)) => texts.push(text),
                (Value::Ints(values), Value::Int(value)) => values.push(Some(value)),
                (Value::Ints(values), Value::Null) => values.push(None),
                _ => return Err(StoreError::Misuse("a row of a batch has a value of another type")),
            }
        }
        Ok((&self.of_arrays, arrays))
    }
}

impl Tx {
    fn batch_max(&self) -> usize {
        if self.takes_arrays() { ARRAY_MAX } else { LIST_MAX }
    }

    /// Runs a statement for rows.
    pub(super) async fn execute_batched<const N: usize>(
        &mut self,
        statement: &'static BatchedStatement<N>,
        rows: Vec<[Value<'_>; N]>,
    ) -> Result<(), StoreError> {
        let mut rows = rows.into_iter();
        loop {
            let batch: Vec<_> = rows.by_ref().take(self.batch_max()).collect();
            if batch.is_empty() {
                return Ok(());
            }
            let (sql, params) = statement.with(batch, self.takes_arrays())?;
            self.execute(sql, &params).await?;
        }
    }

    /// Runs a statement for rows, and reads what it gives.
    pub(super) async fn fetch_all_batched<const N: usize, T>(
        &mut self,
        statement: &'static BatchedStatement<N>,
        rows: Vec<[Value<'_>; N]>,
    ) -> Result<Vec<T>, StoreError>
    where
        T: for<'r> FromColumns<'r>,
    {
        let (mut rows, mut found) = (rows.into_iter(), Vec::new());
        loop {
            let batch: Vec<_> = rows.by_ref().take(self.batch_max()).collect();
            if batch.is_empty() {
                return Ok(found);
            }
            let (sql, params) = statement.with(batch, self.takes_arrays())?;
            found.extend(self.fetch_all::<T>(sql, &params).await?);
        }
    }

    /// Runs a [placed](BatchedStatement::placed) statement that gives one row or none for each row, after its
    /// place.
    pub(super) async fn fetch_batched<const N: usize, T>(
        &mut self,
        statement: &'static BatchedStatement<N>,
        rows: Vec<[Value<'_>; N]>,
    ) -> Result<Vec<Option<T>>, StoreError>
    where
        T: for<'r> FromColumns<'r>,
    {
        let (mut rows, mut found) = (rows.into_iter(), Vec::new());
        loop {
            let batch: Vec<_> = rows.by_ref().take(self.batch_max()).collect();
            if batch.is_empty() {
                return Ok(found);
            }
            let first = found.len();
            found.resize_with(first + batch.len(), || None);
            let (sql, params) = statement.with(batch, self.takes_arrays())?;
            for (place, item) in self.fetch_all::<(i64, T)>(sql, &params).await? {
                let place = usize::try_from(place).unwrap_or(usize::MAX);
                let of_place = found[first..].get_mut(place);
                *of_place.ok_or(StoreError::Misuse("a row's place is not in its list"))? = Some(item);
            }
        }
    }
}

/// `VALUES` with rows of parameters, each after its place if the rows have places.
fn list_of(count: usize, placed: bool, parameters: usize) -> String {
    let row = |row: usize| {
        let place = placed.then(|| row.to_string());
        let values = (1..=parameters).map(|parameter| format!("${}", row * parameters + parameter));
        format!("({})", place.into_iter().chain(values).collect::<Vec<_>>().join(", "))
    };
    format!("VALUES {}", (0..count).map(row).collect::<Vec<_>>().join(", "))
}

/// A query over one array for each column.
fn arrays_of(columns: &[ColumnType], placed: bool) -> String {
    let numbered =
        |name: &str| (1..=columns.len()).map(|n| format!("{name}{n}")).collect::<Vec<_>>().join(", ");
    let array = |(before, column): (usize, &ColumnType)| {
        let name = match column {
            ColumnType::Text => "TEXT",
            ColumnType::BigInt => "BIGINT",
        };
        format!("CAST(${} AS {name}[])", before + 1)
    };
    let arrays = columns.iter().enumerate().map(array).collect::<Vec<_>>().join(", ");
    let names = numbered("column");
    if placed {
        return format!(
            "SELECT place - 1, {names} FROM unnest({arrays}) WITH ORDINALITY AS rows ({names}, place)"
        );
    }
    format!("SELECT {names} FROM unnest({arrays}) AS rows ({names})")
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static VALUES: LazyLock<BatchedStatement<2>> =
        LazyLock::new(|| BatchedStatement::new([ColumnType::Text, ColumnType::BigInt], str::to_owned));

    #[test]
    fn parameters_are_numbered_through_all_rows() {
        assert_eq!(list_of(2, false, 3), "VALUES ($1, $2, $3), ($4, $5, $6)");
        assert_eq!(list_of(3, true, 1), "VALUES (0, $1), (1, $2), (2, $3)");
        assert_eq!(
            arrays_of(&[ColumnType::Text, ColumnType::BigInt], true),
            "SELECT place - 1, column1, column2 \
             FROM unnest(CAST($1 AS TEXT[]), CAST($2 AS BIGINT[])) WITH ORDINALITY AS rows (column1, column2, place)"
        );
    }

    #[test]
    fn a_batch_is_a_list_of_rows_or_an_array_for_each_column() {
        let rows = || vec![["a".into(), 1.into()], ["b".into(), Value::Null]];
        let (sql, params) = VALUES.with(rows(), false).unwrap();
        assert_eq!(sql, "VALUES ($1, $2), ($3, $4)");
        assert_eq!(params, ["a".into(), 1.into(), "b".into(), Value::Null]);
        let (sql, params) = VALUES.with(rows(), true).unwrap();
        assert_eq!(sql.matches("unnest").count(), 1);
        assert_eq!(params, [Value::Texts(vec!["a".into(), "b".into()]), Value::Ints(vec![Some(1), None])]);
        let wrong = VALUES.with(vec![[1.into(), 1.into()]], true);
        assert!(matches!(wrong, Err(StoreError::Misuse(_))));
    }
}

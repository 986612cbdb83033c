//! Sums over the rows of a table that do not depend on their order or on the engine.

use sha2::{Digest, Sha256};

use crate::{Row, Value};

/// The number of rows of a table, and a checksum over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSum {
    /// The table.
    pub table: String,
    /// Its rows.
    pub rows: u64,
    /// 128 bits in lower-case hex: the sum of a hash of each row, without its carry. Two tables with the same
    /// rows have the same checksum, in whatever order and on whatever engine.
    pub checksum: String,
}

/// Adds rows up.
#[derive(Debug, Default)]
pub(super) struct Adder {
    rows: u64,
    sum: u128,
}

impl Adder {
    pub fn add(&mut self, row: &Row) {
        let mut hash = Sha256::new();
        for value in row.values() {
            match value {
                Value::Null => hash.update([0]),
                Value::Int(value) => {
                    hash.update([1]);
                    hash.update(value.to_le_bytes());
                }
                Value::Bool(value) => hash.update([2, u8::from(*value)]),
                Value::Text(text) => {
                    hash.update([3]);
                    hash.update((text.len() as u64).to_le_bytes());
                    hash.update(text.as_bytes());
                }
                // No column is an array.
                Value::Ints(_) | Value::Bools(_) | Value::Texts(_) => {}
            }
        }
        let digest = hash.finalize();
        let half: [u8; 16] = std::array::from_fn(|index| digest[index]);
        self.sum = self.sum.wrapping_add(u128::from_le_bytes(half));
        self.rows += 1;
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn finish(self, table: &str) -> TableSum {
        TableSum { table: table.to_owned(), rows: self.rows, checksum: format!("{:032x}", self.sum) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(rows: &[Row]) -> TableSum {
        let mut adder = Adder::default();
        rows.iter().for_each(|row| adder.add(row));
        adder.finish("t")
    }

    fn row(values: Vec<Value<'static>>) -> Row {
        Row::new(values)
    }

    #[test]
    fn order_does_not_matter_and_every_value_does() {
        let (one, two) = (row(vec![1.into(), "a".into()]), row(vec![2.into(), Value::Null]));
        assert_eq!(sum(&[one.clone(), two.clone()]), sum(&[two.clone(), one.clone()]));
        assert_ne!(sum(&[one.clone(), two.clone()]), sum(&[one.clone(), one.clone()]));
        assert_ne!(sum(&[row(vec!["ab".into(), "c".into()])]), sum(&[row(vec!["a".into(), "bc".into()])]));
        assert_ne!(sum(&[row(vec![0.into()])]), sum(&[row(vec![false.into()])]));
        assert_ne!(sum(&[one.clone(), one.clone()]), sum(&[one]));
    }
}

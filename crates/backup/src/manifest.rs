//! `manifest.json`: what a backup holds.

use std::path::Path;

use domain::StoreId;
use serde::{Deserialize, Serialize};
use store::transfer::TableSum;

use crate::BackupError;

/// The name of the file.
pub(crate) const MANIFEST_FILE: &str = "manifest.json";

/// The format that this program writes. Programs refuse formats that they do not know.
const FORMAT: u32 = 1;

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The format of the backup.
    pub format: u32,
    /// The version of the program that took the backup.
    pub version: String,
    /// The engine of the store: `sqlite` or `postgresql`.
    pub engine: String,
    /// The store; `None` in backups of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_id: Option<StoreId>,
    /// A value that is sealed with the service key of the store; `None` without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_test: Option<String>,
    /// The number of the latest migration of the schema.
    pub schema_version: i64,
    /// When the backup began (RFC 3339). It holds everything that was acknowledged before.
    pub taken_at: String,
    /// The size of `stagedoor.db`, in bytes.
    pub bytes: u64,
    /// The SHA-256 of `stagedoor.db`, in lower-case hex.
    pub sha256: String,
    /// The tables.
    pub tables: Vec<TableEntry>,
}

/// A table of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// Its name.
    pub table: String,
    /// Its rows.
    pub rows: u64,
    /// The checksum over its rows, the same on both engines.
    pub checksum: String,
}

impl From<TableSum> for TableEntry {
    fn from(sum: TableSum) -> Self {
        Self { table: sum.table, rows: sum.rows, checksum: sum.checksum }
    }
}

impl Manifest {
    /// The current format.
    pub(crate) const fn format() -> u32 {
        FORMAT
    }

    /// The rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    pub(crate) fn read(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(MANIFEST_FILE);
        let text = std::fs::read(&path).map_err(|error| BackupError::file("cannot read", &path, &error))?;
        Self::of(&text, &path.display().to_string())
    }

    /// The manifest of a file or an object.
    pub(crate) fn of(text: &[u8], name: &str) -> Result<Self, BackupError> {
        let manifest: Self = serde_json::from_slice(text)
            .map_err(|error| BackupError::Damaged(format!("{name} is not a manifest: {error}")))?;
        if manifest.format > FORMAT {
            return Err(BackupError::Refused(format!(
                "{name} has format {}, and this program knows {FORMAT}: use the program of version {} or newer",
                manifest.format, manifest.version
            )));
        }
        Ok(manifest)
    }
}

/// Compares the rows of a manifest with those of a file, and gives their number.
///
/// # Errors
/// [`BackupError::Damaged`] names the first table that differs.
pub(crate) fn compare_rows(manifest: &Manifest, found: &[(String, u64)]) -> Result<u64, BackupError> {
    for TableEntry { table, rows, .. } in &manifest.tables {
        match found.iter().find(|(name, _)| name == table) {
            Some((_, found)) if found == rows => {}
            Some((_, found)) => {
                return Err(BackupError::Damaged(format!(
                    "the table {table} has {found} rows, and its manifest says {rows}"
                )));
            }
            None => return Err(BackupError::Damaged(format!("the table {table} is missing"))),
        }
    }
    Ok(found.iter().map(|(_, rows)| rows).sum())
}

/// Compares checksums by table.
///
/// # Errors
/// [`BackupError::Damaged`] names the first table that differs.
pub(crate) fn compare(expected: &[TableEntry], found: &[TableEntry]) -> Result<(), BackupError> {
    for table in expected {
        let Some(other) = found.iter().find(|other| other.table == table.table) else {
            return Err(BackupError::Damaged(format!("the table {} is missing", table.table)));
        };
        if other.rows != table.rows {
            return Err(BackupError::Damaged(format!(
                "the table {} has {} rows instead of {}",
                table.table, other.rows, table.rows
            )));
        }
        if other.checksum != table.checksum {
            return Err(BackupError::Damaged(format!(
                "the rows of {} differ, although there are {} on both sides",
                table.table, table.rows
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(table: &str, rows: u64, checksum: &str) -> TableEntry {
        TableEntry { table: table.to_owned(), rows, checksum: checksum.to_owned() }
    }

    #[test]
    fn the_first_difference_is_named() {
        let expected = [entry("a", 1, "x"), entry("b", 2, "y")];
        compare(&expected, &expected).unwrap();
        for (found, word) in [
            (vec![entry("a", 1, "x")], "b is missing"),
            (vec![entry("a", 1, "x"), entry("b", 3, "y")], "b has 3 rows instead of 2"),
            (vec![entry("a", 1, "z"), entry("b", 2, "y")], "the rows of a differ"),
        ] {
            let error = compare(&expected, &found).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}

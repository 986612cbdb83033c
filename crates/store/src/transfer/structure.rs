//! Statements that look for damage below the rows: pages, indexes, and rows that name rows which are not
//! there. The database keeps these by itself, unless its disk or another program broke them.

use crate::queries::invariants::NAMED_MAX;

/// The problems of pages and indexes of a SQLite file, or one line: `ok`.
pub(super) const SQLITE_PAGES: &str = "PRAGMA integrity_check(21)";

/// The foreign keys of a SQLite file, a line for each column: table, key, parent, column, column there.
pub(super) const SQLITE_REFERENCES: &str = r#"
    SELECT m.name || ' ' || f.id || ' ' || f."table" || ' ' || f."from" || ' ' || COALESCE(f."to", f."from")
    FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'
    ORDER BY m.name, f.id, f.seq"#;

/// The same of a PostgreSQL schema. The keys of partitions are those of their tables.
pub(super) const POSTGRES_REFERENCES: &str = "
    SELECT t.relname || ' ' || c.oid || ' ' || p.relname || ' ' || a.attname || ' ' || b.attname
    FROM pg_constraint c
    JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class p ON p.oid = c.confrelid
    CROSS JOIN LATERAL unnest(c.conkey, c.confkey) WITH ORDINALITY AS k (own, parents, place)
    JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.own
    JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = k.parents
    WHERE c.contype = 'f' AND c.conparentid = 0 AND t.relnamespace = CAST(current_schema() AS regnamespace)
    ORDER BY t.relname, c.oid, k.place";

/// The statement that names the rows whose parent is not there, made of lines of references; `None` if there
/// is none.
pub(super) fn orphans_sql(references: &[String]) -> Option<String> {
    let lines = references.iter().filter_map(|line| {
        let mut words = line.split(' ');
        Some([words.next()?, words.next()?, words.next()?, words.next()?, words.next()?])
    });
    let lines: Vec<[&str; 5]> = lines.collect();
    let keys = lines.chunk_by(|one, next| one[..3] == next[..3]).filter_map(|columns| {
        let [table, _, parent, ..] = columns.first()?;
        let names: Vec<_> = columns.iter().map(|[.., own, _]| *own).collect();
        let own: Vec<_> = columns.iter().map(|[.., own, _]| format!("CAST(c.{own} AS TEXT)")).collect();
        let there: Vec<_> = columns.iter().map(|[.., own, _]| format!("c.{own} IS NOT NULL")).collect();
        let same: Vec<_> = columns.iter().map(|[.., own, parents]| format!("p.{parents} = c.{own}")).collect();
        Some(format!(
            "SELECT '{table}.{} = ' || {} || ': no such row in {parent}' FROM {table} c WHERE {} AND NOT EXISTS (SELECT 1 \
             FROM {parent} p WHERE {})",
            names.join(" and "),
            own.join(" || ' ' || "),
            there.join(" AND "),
            same.join(" AND ")
        ))
    });
    let keys: Vec<_> = keys.collect();
    (!keys.is_empty())
        .then(|| format!("SELECT * FROM ({}) orphans LIMIT {}", keys.join(" UNION ALL "), NAMED_MAX + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_two_columns_is_compared_as_a_whole() {
        let lines = ["a 0 p x y", "a 1 q u v", "a 1 q w z"].map(str::to_owned);
        let sql = orphans_sql(&lines).unwrap();
        assert!(
            sql.contains("FROM a c WHERE c.x IS NOT NULL AND NOT EXISTS (SELECT 1 FROM p p WHERE p.y = c.x)"),
            "{sql}"
        );
        assert!(sql.contains("(SELECT 1 FROM q p WHERE p.v = c.u AND p.z = c.w)"), "{sql}");
        assert_eq!(orphans_sql(&[]), None);
    }
}

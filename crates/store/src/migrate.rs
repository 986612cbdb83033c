//! The migrations of the schema: numbered SQL files, applied once and in order, each in a transaction of its
//! own.
//!
//! A text is for both engines. Where they differ, a line `-- on SQLite` or `-- on PostgreSQL` begins a part
//! for one of them, up to the next such line or `-- on both`.

use sha2::{Digest, Sha256};

use crate::StoreError;

/// A migration. A released one never changes: its checksum is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Larger than the one before.
    pub version: i64,
    /// Its name.
    pub name: &'static str,
    /// Its statements, with the parts for one engine.
    pub sql: &'static str,
}

/// The engine of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MigratedEngine {
    Sqlite,
    Postgres,
}

impl Migration {
    /// SHA-256 of the text, in lower-case hex.
    pub(crate) fn checksum(&self) -> String {
        Sha256::digest(self.sql.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The statements for an engine.
    pub(crate) fn text_for(&self, engine: MigratedEngine) -> String {
        let mut part = None;
        let mut text = String::with_capacity(self.sql.len());
        for line in self.sql.split_inclusive('\n') {
            match line.trim_end() {
                "-- on SQLite" => part = Some(MigratedEngine::Sqlite),
                "-- on PostgreSQL" => part = Some(MigratedEngine::Postgres),
                "-- on both" => part = None,
                _ if part.is_none_or(|part| part == engine) => text.push_str(line),
                _ => {}
            }
        }
        text
    }
}

/// Every file of `migrations/`, oldest first.
pub const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "initial", sql: include_str!("../migrations/0001_initial.sql") },
    Migration { version: 2, name: "lists", sql: include_str!("../migrations/0002_lists.sql") },
    Migration { version: 3, name: "lives", sql: include_str!("../migrations/0003_lives.sql") },
    Migration { version: 4, name: "chat", sql: include_str!("../migrations/0004_chat.sql") },
    Migration { version: 5, name: "drops", sql: include_str!("../migrations/0005_drops.sql") },
    Migration { version: 6, name: "applications", sql: include_str!("../migrations/0006_applications.sql") },
    Migration {
        version: 7,
        name: "credential_changes",
        sql: include_str!("../migrations/0007_credential_changes.sql"),
    },
    Migration { version: 8, name: "bus", sql: include_str!("../migrations/0008_bus.sql") },
    Migration { version: 9, name: "nodes", sql: include_str!("../migrations/0009_nodes.sql") },
    Migration {
        version: 10,
        name: "session_sheets",
        sql: include_str!("../migrations/0010_session_sheets.sql"),
    },
    Migration { version: 11, name: "webhooks", sql: include_str!("../migrations/0011_webhooks.sql") },
    Migration { version: 12, name: "watching", sql: include_str!("../migrations/0012_watching.sql") },
    Migration {
        version: 13,
        name: "session_lists",
        sql: include_str!("../migrations/0013_session_lists.sql"),
    },
    Migration { version: 14, name: "credentials", sql: include_str!("../migrations/0014_credentials.sql") },
    Migration { version: 15, name: "taken_back", sql: include_str!("../migrations/0015_taken_back.sql") },
    Migration { version: 16, name: "event_outbox", sql: include_str!("../migrations/0016_event_outbox.sql") },
    Migration { version: 18, name: "ended_tokens", sql: include_str!("../migrations/0018_ended_tokens.sql") },
    Migration { version: 19, name: "accounts", sql: include_str!("../migrations/0019_accounts.sql") },
    Migration {
        version: 22,
        name: "operator_keys",
        sql: include_str!("../migrations/0022_operator_keys.sql"),
    },
    Migration {
        version: 23,
        name: "application_links",
        sql: include_str!("../migrations/0023_application_links.sql"),
    },
    Migration {
        version: 24,
        name: "application_owners",
        sql: include_str!("../migrations/0024_application_owners.sql"),
    },
    Migration {
        version: 25,
        name: "organization_invitations",
        sql: include_str!("../migrations/0025_organization_invitations.sql"),
    },
    Migration {
        version: 26,
        name: "browser_sessions",
        sql: include_str!("../migrations/0026_browser_sessions.sql"),
    },
    Migration { version: 27, name: "audit_log", sql: include_str!("../migrations/0027_audit_log.sql") },
    Migration { version: 28, name: "operators", sql: include_str!("../migrations/0028_operators.sql") },
    Migration { version: 29, name: "upstream", sql: include_str!("../migrations/0029_upstream.sql") },
    Migration {
        version: 30,
        name: "webhook_tests",
        sql: include_str!("../migrations/0030_webhook_tests.sql"),
    },
    Migration {
        version: 32,
        name: "connected_sessions",
        sql: include_str!("../migrations/0032_connected_sessions.sql"),
    },
    Migration {
        version: 33,
        name: "application_usage",
        sql: include_str!("../migrations/0033_application_usage.sql"),
    },
    Migration {
        version: 34,
        name: "application_offers",
        sql: include_str!("../migrations/0034_application_offers.sql"),
    },
    Migration {
        version: 35,
        name: "audit_log_actions",
        sql: include_str!("../migrations/0035_audit_log_actions.sql"),
    },
    Migration { version: 36, name: "retention", sql: include_str!("../migrations/0036_retention.sql") },
    Migration { version: 37, name: "partitions", sql: include_str!("../migrations/0037_partitions.sql") },
    Migration {
        version: 38,
        name: "session_ordinals",
        sql: include_str!("../migrations/0038_session_ordinals.sql"),
    },
    Migration {
        version: 39,
        name: "time_partitions",
        sql: include_str!("../migrations/0039_time_partitions.sql"),
    },
    Migration { version: 43, name: "live_clocks", sql: include_str!("../migrations/0043_live_clocks.sql") },
    Migration {
        version: 44,
        name: "storage_parameters",
        sql: include_str!("../migrations/0044_storage_parameters.sql"),
    },
    Migration {
        version: 45,
        name: "store_identity",
        sql: include_str!("../migrations/0045_store_identity.sql"),
    },
    Migration { version: 47, name: "operation", sql: include_str!("../migrations/0047_operation.sql") },
    Migration { version: 48, name: "made_by", sql: include_str!("../migrations/0048_made_by.sql") },
    Migration {
        version: 49,
        name: "taken_names_and_tokens",
        sql: include_str!("../migrations/0049_taken_names_and_tokens.sql"),
    },
    Migration {
        version: 50,
        name: "confirmations",
        sql: include_str!("../migrations/0050_confirmations.sql"),
    },
    Migration {
        version: 51,
        name: "names_and_drafts",
        sql: include_str!("../migrations/0051_names_and_drafts.sql"),
    },
];

/// The table of the applied migrations.
pub(crate) const HISTORY: &str = "schema_migrations";

/// The applied migrations. `applied_at` (epoch ms) is by the engine's clock, for operators alone.
pub(crate) const CREATE_HISTORY: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)";

/// Reads the applied migrations, oldest first: version, checksum.
pub(crate) const READ_HISTORY: &str = "SELECT version, checksum FROM schema_migrations ORDER BY version";

/// An applied migration.
pub(crate) struct Applied {
    pub version: i64,
    pub checksum: String,
}

/// The migrations of `known` that the database needs. Its applied migrations must be the first ones of
/// `known`.
pub(crate) fn pending(
    known: &'static [Migration],
    applied: &[Applied],
) -> Result<&'static [Migration], StoreError> {
    // Numbers may be missing, for example after two branches.
    let mut pairs = known.iter().zip(known.iter().skip(1));
    if let Some((_, later)) = pairs.find(|(earlier, later)| earlier.version >= later.version) {
        return Err(StoreError::Open(format!(
            "migration {} ({}) is out of order",
            later.version, later.name
        )));
    }
    for (index, row) in applied.iter().enumerate() {
        let Some(migration) = known.get(index) else {
            return Err(StoreError::Open(format!(
                "its schema is at version {}, newer than this program's {}: run the newer program",
                applied.last().map_or(row.version, |last| last.version),
                known.last().map_or(0, |last| last.version),
            )));
        };
        if row.version != migration.version || row.checksum != migration.checksum() {
            return Err(StoreError::Open(format!(
                "its schema version {} is not this program's migration {} ({}): the migration was changed after it \
                 was applied",
                row.version, migration.version, migration.name,
            )));
        }
    }
    Ok(&known[applied.len()..])
}

/// The error of a failed migration.
pub(crate) fn failed(migration: &Migration, why: &dyn std::fmt::Display) -> StoreError {
    StoreError::Open(format!("migration {} ({}) failed: {why}", migration.version, migration.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[Migration] = &[
        Migration { version: 1, name: "one", sql: "CREATE TABLE a (id BIGINT)" },
        Migration { version: 2, name: "two", sql: "CREATE TABLE b (id BIGINT)" },
    ];

    fn history(migrations: &[Migration]) -> Vec<Applied> {
        migrations.iter().map(|m| Applied { version: m.version, checksum: m.checksum() }).collect()
    }

    #[test]
    fn only_what_is_missing_is_pending() {
        assert_eq!(pending(TWO, &history(&TWO[..0])).unwrap(), TWO);
        assert_eq!(pending(TWO, &history(&TWO[..1])).unwrap(), &TWO[1..]);
        assert_eq!(pending(TWO, &history(TWO)).unwrap(), &[]);
    }

    #[test]
    fn a_newer_database_and_a_changed_migration_are_refused() {
        let newer = pending(&TWO[..1], &history(TWO)).unwrap_err().to_string();
        assert!(newer.contains("newer than this program's 1"), "{newer}");
        let mut edited = history(TWO);
        edited[1].checksum.replace_range(..1, "x");
        let changed = pending(TWO, &edited).unwrap_err().to_string();
        assert!(changed.contains("migration 2 (two)"), "{changed}");
        const TWICE: &[Migration] = &[TWO[0], TWO[1], TWO[1]];
        let twice = pending(TWICE, &[]).unwrap_err().to_string();
        assert!(twice.contains("migration 2 (two) is out of order"), "{twice}");
    }

    #[test]
    fn a_part_is_for_one_engine() {
        let sql = "both;\n-- on SQLite\nsqlite;\n-- on PostgreSQL\npostgres;\n-- on both\nend;";
        let migration = Migration { version: 1, name: "parts", sql };
        assert_eq!(migration.text_for(MigratedEngine::Sqlite), "both;\nsqlite;\nend;");
        assert_eq!(migration.text_for(MigratedEngine::Postgres), "both;\npostgres;\nend;");
    }

    #[test]
    fn the_list_is_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let list: Vec<String> =
            MIGRATIONS.iter().map(|m| format!("{:04}_{}.sql", m.version, m.name)).collect();
        assert_eq!(files, list);
    }

    #[test]
    fn no_migration_leaves_what_both_engines_share() {
        // Deferred constraints would fail a whole batch for one request; the types are only the three we
        // read.
        const FOREIGN: [&str; 14] = [
            "AUTOINCREMENT",
            "BIGSERIAL",
            "BLOB",
            "BYTEA",
            "DEFERRABLE",
            "DEFERRED",
            "INT",
            "INTEGER",
            "JSONB",
            "NUMERIC",
            "REAL",
            "SERIAL",
            "TIMESTAMP",
            "TIMESTAMPTZ",
        ];
        for migration in MIGRATIONS {
            for line in migration.sql.lines() {
                let code = line.split("--").next().unwrap_or_default().to_uppercase();
                let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
                let found = words.find(|word| FOREIGN.contains(word));
                assert_eq!(found, None, "in migration {}: {line}", migration.name);
            }
        }
    }
}

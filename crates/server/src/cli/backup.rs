//! `stagedoor backup`, `stagedoor restore` and `stagedoor migrate`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use backup::{Backup, BackupError, Manifest, Move};
use clap::{Args, ValueEnum};
use commands::CommandFailure;
use serde_json::{Value, json};
use service::Clock;
use store::StoreError;
use store::transfer::Restart;

use super::progress::ProgressLines;
use super::store_options::StoreOptions;

/// The end of the help of `stagedoor backup`.
pub(super) const BACKUP_HELP: &str = "\
A backup is a folder with all rows as a SQLite file, whatever the store's engine, and a manifest with checksums. It
gets its name when it was compared with the store, table by table, and synced. The service runs meanwhile.

Examples:
  stagedoor backup --data /var/lib/stagedoor --to /backup --keep 24
  STAGEDOOR_DATABASE_URL_FILE=/etc/stagedoor/keys/database-url stagedoor backup --to /backup
  stagedoor backup --list --to /backup

The keys are not in a backup: without the service key its stream keys and webhook secrets cannot be opened.

Exit codes: 0 taken, 1 the store or the copy failed, 2 wrong use, 3 the database was not reached.";

/// The end of the help of `stagedoor restore`.
pub(super) const RESTORE_HELP: &str = "\
Examples:
  stagedoor restore /backup --drill                                the latest backup of a folder
  stagedoor restore /backup/stagedoor-20261126T010000.000Z --data /var/lib/stagedoor
  STAGEDOOR_DATABASE_URL_FILE=database-url stagedoor restore /backup

A restore to PostgreSQL that was interrupted goes on when it is called again; until it is complete, no node starts on
the schema.

Exit codes: 0 restored or proved, 1 the backup is damaged or the place is not empty, 2 wrong use, 3 the database was
not reached.";

/// The end of the help of `stagedoor migrate`.
pub(super) const MIGRATE_HELP: &str = "\
Stop all nodes before. Every table is counted and compared on both sides. A move to PostgreSQL that was interrupted
goes on when it is called again; until it is complete, no node starts on the schema.

Examples:
  stagedoor migrate --from sqlite --data /var/lib/stagedoor --to postgres --database-url postgres://u:p@host/stagedoor
  stagedoor migrate --from postgres --to sqlite --data /var/lib/stagedoor-new

Exit codes: 0 moved, 1 the rows differ or the place is not empty, 2 wrong use, 3 the database was not reached.";

/// `stagedoor backup`
#[derive(Debug, Args)]
pub struct BackupOptions {
    /// The store.
    #[command(flatten)]
    store: StoreOptions,

    /// The folder of the backups. It is made if it is missing.
    #[arg(long, value_name = "DIR", env = "STAGEDOOR_BACKUPS")]
    to: PathBuf,

    /// Deletes the oldest backups of the folder until this many are left, the new one among them.
    #[arg(long, value_name = "N")]
    keep: Option<NonZeroU32>,

    /// Takes no backup, and lists those of the folder, oldest first.
    #[arg(long, conflicts_with = "keep")]
    list: bool,

    /// Prints one JSON object, and no progress.
    #[arg(long)]
    json: bool,
}

/// `stagedoor restore`
#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// The backup, or a folder of backups, whose latest one is restored.
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,

    /// The place.
    #[command(flatten)]
    store: StoreOptions,

    /// Proves the backup, and leaves nothing: restores it into a temporary folder, checks its pages, indexes,
    /// foreign keys and checksums, and starts this version's schema on it.
    #[arg(long)]
    drill: bool,

    /// Where a drill makes its temporary folder. It needs room for the data file twice.
    #[arg(long, value_name = "DIR", requires = "drill")]
    work: Option<PathBuf>,

    /// Prints one JSON object, and no progress.
    #[arg(long)]
    json: bool,
}

/// An engine of `stagedoor migrate`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineOption {
    /// The file in the folder of --data.
    Sqlite,
    /// The database of --database-url.
    Postgres,
}

/// `stagedoor migrate`
#[derive(Debug, Args)]
pub struct MigrateOptions {
    /// Where the rows are.
    #[arg(long, value_name = "ENGINE", value_enum)]
    from: EngineOption,

    /// Where the rows go: an empty schema, or a folder without a data file.
    #[arg(long, value_name = "ENGINE", value_enum)]
    to: EngineOption,

    /// Both places.
    #[command(flatten)]
    store: StoreOptions,

    /// Copies the rows of an interrupted move again, instead of going on after them.
    #[arg(long)]
    restart: bool,

    /// Prints one JSON object, and no progress.
    #[arg(long)]
    json: bool,
}

/// Takes or lists backups.
///
/// # Errors
/// [`CommandFailure`] with the exit code.
pub async fn run_backup(options: &BackupOptions) -> Result<(), CommandFailure> {
    if options.list {
        let backups = backup::list(&options.to).map_err(failure)?;
        match options.json {
            true => println!("{}", json!({ "backups": backups.iter().map(as_json).collect::<Vec<_>>() })),
            false if backups.is_empty() => println!("{} has no backup.", options.to.display()),
            false => backups.iter().for_each(|backup| println!("{}", as_line(backup))),
        }
        return Ok(());
    }
    let target = options.store.target().map_err(CommandFailure::Usage)?;
    let mut progress = ProgressLines::new(options.json);
    let now = (Clock::system().now(), env!("CARGO_PKG_VERSION"));
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    let taken = backup::take(&target, &options.to, options.keep, now, &mut report).await;
    drop(progress);
    let taken = taken.map_err(failure)?;
    if options.json {
        let mut value = as_json(&taken.backup);
        value["deleted"] = json!(taken.deleted);
        println!("{value}");
        return Ok(());
    }
    println!("{}", as_line(&taken.backup));
    if taken.deleted > 0 {
        println!("Deleted {} older backups.", taken.deleted);
    }
    Ok(())
}

/// Restores a backup, or proves it.
///
/// # Errors
/// [`CommandFailure`] with the exit code.
pub async fn run_restore(options: &RestoreOptions) -> Result<(), CommandFailure> {
    let found = backup::find(&options.backup).map_err(failure)?;
    let mut progress = ProgressLines::new(options.json);
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    if options.drill {
        let drill = backup::drill(&found, options.work.as_deref(), &mut report).await;
        drop(progress);
        let drill = drill.map_err(failure)?;
        match options.json {
            true => println!(
                "{}",
                json!({ "backup": found.folder, "ok": true, "rows": drill.rows, "takenAt": found.manifest.taken_at,
                    "schemaVersion": drill.schema_version, "migratedTo": drill.migrated_to })
            ),
            false => {
                println!("{}", as_line(&found));
                println!("The backup is good: a service of this version can start on it.");
            }
        }
        return Ok(());
    }
    let target = options.store.target().map_err(CommandFailure::Usage)?;
    let restored = backup::restore(&found, &target, &mut report).await;
    drop(progress);
    let restored = restored.map_err(failure)?;
    match options.json {
        true => {
            println!("{}", json!({ "backup": found.folder, "rows": restored.rows, "bytes": restored.bytes }))
        }
        false => println!("Restored {} rows from {}.", restored.rows, found.folder.display()),
    }
    Ok(())
}

/// Moves the store to the other engine.
///
/// # Errors
/// [`CommandFailure`] with the exit code.
pub async fn run_migrate(options: &MigrateOptions) -> Result<(), CommandFailure> {
    let work = options.work().map_err(CommandFailure::Usage)?;
    let mut progress = ProgressLines::new(options.json);
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    let moved = backup::move_store(&work, Clock::system().now(), &mut report).await;
    drop(progress);
    let moved = moved.map_err(failure)?;
    let rows: u64 = moved.tables.iter().map(|table| table.rows).sum();
    match options.json {
        true => println!("{}", json!({ "rows": rows, "tables": moved.tables })),
        false => {
            let filled = moved.tables.iter().filter(|table| table.rows > 0);
            filled.for_each(|table| println!("{:>12} {}", table.rows, table.table));
            println!("Moved {rows} rows. Every table was compared on both sides.");
        }
    }
    Ok(())
}

impl MigrateOptions {
    fn work(&self) -> Result<Move, String> {
        let url = self.store.database()?;
        let url = url.ok_or("--database-url is missing: it names the PostgreSQL database of the move")?;
        let file = self.store.file();
        match (self.from, self.to) {
            (EngineOption::Sqlite, EngineOption::Postgres) => {
                let restart = if self.restart { Restart::Always } else { Restart::Never };
                Ok(Move::ToPostgres { from: file, to: url, restart })
            }
            (EngineOption::Postgres, EngineOption::Sqlite) => Ok(Move::ToSqlite { from: url, to: file }),
            _ => Err("--from and --to must be different engines; stagedoor backup and stagedoor restore copy a store to \
                      the same engine"
                .to_owned()),
        }
    }
}

fn as_json(backup: &Backup) -> Value {
    let Manifest { version, engine, schema_version, taken_at, bytes, sha256, .. } = &backup.manifest;
    json!({ "backup": backup.folder, "version": version, "engine": engine, "schemaVersion": schema_version,
        "takenAt": taken_at, "bytes": bytes, "sha256": sha256, "rows": backup.manifest.rows() })
}

fn as_line(backup: &Backup) -> String {
    let manifest = &backup.manifest;
    format!(
        "{}  {} rows, {} MiB, from {} by version {}",
        backup.folder.display(),
        manifest.rows(),
        manifest.bytes.div_ceil(1 << 20),
        manifest.engine,
        manifest.version
    )
}

/// The exit code of a failure: a database that is not reached is no wrong backup.
pub(super) fn failure(error: BackupError) -> CommandFailure {
    let text = error.to_string();
    match error {
        BackupError::Store { error: StoreError::Unavailable(_), .. } => CommandFailure::Unreachable(text),
        _ => CommandFailure::Failed(text),
    }
}

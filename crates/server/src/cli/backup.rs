//! `stagedoor backup`, `stagedoor restore` and `stagedoor migrate`.

use std::num::NonZeroU32;

use backup::archive::{Wanted, list_archive};
use backup::{
    BackupError, BrokenBackup, KeepRules, Listing, Manifest, Move, OnReport, OtherStore, TakeOptions, Taken,
};
use clap::{Args, ValueEnum};
use commands::CommandFailure;
use domain::{StoreId, Timestamp};
use serde_json::{Value, json};
use service::Clock;
use store::transfer::{CopyBegin, Restart};
use store::{StoreError, Target};

use super::archive_restore;
use super::backup_place::{BackupPlace, FoundBackup, S3Options};
use super::progress::ProgressLines;
use super::service_key::ServiceKeyOptions;
use super::store_options::StoreOptions;

/// The end of the help of `stagedoor backup`.
pub(super) const BACKUP_HELP: &str = "\
A backup is a folder with all rows as a SQLite file, whatever the store's engine, and a manifest with checksums. It
gets its name when it was compared with the store, table by table, and synced. The service runs meanwhile.

Examples:
  stagedoor backup --data /var/lib/stagedoor --to /backup --keep 24 --keep-daily 7 --keep-weekly 4
  STAGEDOOR_DATABASE_URL_FILE=/etc/stagedoor/keys/database-url stagedoor backup --to /backup
  stagedoor backup --list --to /backup
  AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY_FILE=/etc/stagedoor/keys/s3 \\
    stagedoor backup --to s3://bucket/stagedoor --s3-endpoint https://minio.example.com:9000 --keep 24

A backup in an object store is read again after it was written, and compared.

A place that has backups of another store alone is refused, because an unmounted disk looks like a new, empty store. A
backup that cannot be used is named on stderr; it is neither restored nor deleted, and does not count.

The keys are not in a backup: without the service key its stream keys and webhook secrets cannot be opened.

Exit codes: 0 taken, 1 the store or the copy failed, 2 wrong use, 3 the database was not reached.";

/// The end of the help of `stagedoor restore`.
pub(super) const RESTORE_HELP: &str = "\
Examples:
  stagedoor restore /backup --drill                                the latest backup of a folder
  stagedoor restore /backup/stagedoor-20261126T010000.000Z --data /var/lib/stagedoor
  STAGEDOOR_DATABASE_URL_FILE=database-url stagedoor restore /backup

  stagedoor restore /archive --at latest --data /var/lib/stagedoor     from the archive of `serve --archive`
  stagedoor restore /archive --at 2026-11-26T10:00:00Z --data /var/lib/stagedoor
  stagedoor restore s3://bucket/stagedoor --at latest --drill

A restore to PostgreSQL that was interrupted goes on when it is called again; until it is complete, no node starts on
the schema. An archive is restored into a SQLite file, which `stagedoor migrate` can move.

Exit codes: 0 restored or proved, 1 the backup is damaged or the place is not empty, 2 wrong use, 3 the database was
not reached, 4 the time of --at is in a hole of the archive: the data reach the time before it, which is printed.";

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

    /// The folder of the backups, which is made if it is missing, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "PLACE", env = "STAGEDOOR_BACKUPS")]
    to: String,

    /// The object store.
    #[command(flatten)]
    s3: S3Options,

    /// Deletes older backups of this store, but the newest N, and what --keep-daily and --keep-weekly keep.
    /// Those of other stores stay.
    #[arg(long, value_name = "N")]
    keep: Option<NonZeroU32>,

    /// As --keep, and keeps the newest backup of each of the last N days (UTC) that have one.
    #[arg(long, value_name = "N")]
    keep_daily: Option<NonZeroU32>,

    /// As --keep, and keeps the newest backup of each of the last N weeks (UTC, from Monday) that have one.
    #[arg(long, value_name = "N")]
    keep_weekly: Option<NonZeroU32>,

    /// The place has backups of other stores, and this one is meant to be beside them.
    #[arg(long)]
    other_store: bool,

    /// Takes no backup, and lists those of the place, oldest first, and the times that its archive reaches.
    #[arg(long, conflicts_with_all = ["keep", "keep_daily", "keep_weekly", "other_store"])]
    list: bool,

    /// Prints one JSON object, and no progress.
    #[arg(long)]
    json: bool,
}

/// `stagedoor restore`
#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// The backup, or a place of backups, whose latest one is restored: a folder, or s3://BUCKET/PREFIX.
    #[arg(value_name = "BACKUP")]
    backup: String,

    /// The object store.
    #[command(flatten)]
    s3: S3Options,

    /// The place.
    #[command(flatten)]
    store: StoreOptions,

    /// The service key.
    #[command(flatten)]
    key: ServiceKeyOptions,

    /// The latest backup is meant, although the place has those of several stores. A part of another store,
    /// which an interrupted restore or move has left in the database, is replaced. A store that is complete
    /// is never replaced.
    #[arg(long)]
    other_store: bool,

    /// Restores the archive of the place as it was at a time, as in 2026-11-26T10:00:00Z, or at its latest
    /// one: with the last segment that has no later commit.
    #[arg(long, value_name = "TIME", value_parser = archive_time)]
    at: Option<ArchiveTime>,

    /// Restores what the archive has of this store, if it has more than one.
    #[arg(long, value_name = "ID", requires = "at")]
    store_id: Option<String>,

    /// Proves the backup, or the archive with --at, and leaves nothing: restores it into a temporary folder,
    /// checks its pages, indexes, foreign keys and checksums, and starts this version's schema on it.
    #[arg(long)]
    drill: bool,

    /// Prints one JSON object, and no progress.
    #[arg(long)]
    json: bool,
}

/// `--at`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveTime {
    /// The last time that the archive reaches.
    Latest,
    /// The last time that is not after this one.
    At(Timestamp),
}

impl ArchiveTime {
    /// The time; `None` for the last one.
    pub(super) const fn limit(self) -> Option<Timestamp> {
        match self {
            Self::Latest => None,
            Self::At(at) => Some(at),
        }
    }
}

fn archive_time(text: &str) -> Result<ArchiveTime, String> {
    if text == "latest" {
        return Ok(ArchiveTime::Latest);
    }
    let at = Timestamp::parse_rfc3339(text);
    at.map(ArchiveTime::At).ok_or_else(|| "give a time as in 2026-11-26T10:00:00Z, or latest".to_owned())
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

    /// Replaces a part of another store, which an interrupted move or restore has left in the database. A
    /// store that is complete is never replaced.
    #[arg(long)]
    other_store: bool,

    /// Prints one JSON object, and no progress.
    #[arg(long)]
    json: bool,
}

/// Takes or lists backups.
///
/// # Errors
/// [`CommandFailure`] with the exit code.
pub async fn run_backup(options: &BackupOptions) -> Result<(), CommandFailure> {
    let place = options.s3.place(&options.to).map_err(CommandFailure::Usage)?;
    if options.list {
        return list(&place, options).await;
    }
    let target = options.store.target().map_err(CommandFailure::Usage)?;
    let mut progress = ProgressLines::new(options.json);
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    let taken = take(&place, &target, options, &mut report).await;
    drop(progress);
    let Taken { address, manifest, deleted, broken } = taken.map_err(failure)?;
    warn_of_backups(&broken);
    record(&target, &manifest).await;
    if options.json {
        let mut value = as_json(&address, &manifest);
        value["deleted"] = json!(deleted);
        commands::out_line!("{value}");
        return Ok(());
    }
    commands::out_line!("{}", as_line(&address, &manifest));
    if deleted > 0 {
        commands::out_line!("Deleted {deleted} older backups.");
    }
    Ok(())
}

/// Records the time of a backup for the metrics of the service. The backup is good without it.
async fn record(target: &Target, manifest: &Manifest) {
    let (taken_at, store) = (Timestamp::parse_rfc3339(&manifest.taken_at), manifest.store_id.as_ref());
    let Some((taken_at, store)) = taken_at.zip(store) else { return };
    if let Err(error) = store::record_backup(target, store, taken_at).await {
        commands::err_line!(
            "stagedoor: the backup is complete, and its time is not in the metrics of the service: {error}"
        );
    }
}

async fn list(place: &BackupPlace, options: &BackupOptions) -> Result<(), CommandFailure> {
    let listed = match place {
        BackupPlace::Folder(folder) => backup::list(folder),
        BackupPlace::S3(place) => place.list().await,
    };
    let Listing { backups, broken } = listed.map_err(failure)?;
    warn_of_backups(&broken);
    let archive = list_archive(&place.clone().archive()).await.map_err(failure)?;
    archive.iter().for_each(|generation| warn_of(&generation.problems));
    if options.json {
        let backups: Vec<_> = backups.iter().map(|each| as_json(&each.address, &each.manifest)).collect();
        let broken = broken.iter().map(|each| json!({ "backup": each.address, "problem": each.problem }));
        let generations: Vec<_> = archive.iter().map(archive_restore::as_json).collect();
        let broken: Vec<_> = broken.collect();
        commands::out_line!(
            "{}",
            json!({ "backups": backups, "broken": broken, "generations": generations })
        );
    } else if backups.is_empty() && archive.is_empty() {
        commands::out_line!("{} has no backup.", options.to);
    } else {
        backups.iter().for_each(|each| commands::out_line!("{}", as_line(&each.address, &each.manifest)));
        archive.iter().for_each(|generation| commands::out_line!("{}", archive_restore::as_line(generation)));
    }
    Ok(())
}

/// Names the backups that cannot be used.
fn warn_of_backups(broken: &[BrokenBackup]) {
    for BrokenBackup { problem, .. } in broken {
        commands::err_line!("stagedoor: warning: a backup is skipped: {problem}");
    }
}

/// Names the parts of an archive that cannot be used.
fn warn_of(problems: &[String]) {
    for problem in problems {
        commands::err_line!("stagedoor: warning: a part of the archive is skipped: {problem}");
    }
}

async fn take(
    place: &BackupPlace,
    target: &Target,
    options: &BackupOptions,
    report: OnReport<'_>,
) -> Result<Taken, BackupError> {
    let now = (Clock::system().now(), env!("CARGO_PKG_VERSION"));
    let keep = KeepRules { last: options.keep, daily: options.keep_daily, weekly: options.keep_weekly };
    let how = TakeOptions { keep, other: other(options.other_store) };
    match place {
        BackupPlace::Folder(folder) => backup::take(target, folder, how, now, report).await,
        BackupPlace::S3(place) => {
            place.reach().await?;
            let folder = options.s3.temporary_folder()?;
            backup::take_to_s3(target, (place, folder.path()), how, now, report).await
        }
    }
}

/// What `--other-store` says.
fn other(is_meant: bool) -> OtherStore {
    if is_meant { OtherStore::Meant } else { OtherStore::Refused }
}

/// Restores a backup, or proves it.
///
/// # Errors
/// [`CommandFailure`] with the exit code.
pub async fn run_restore(options: &RestoreOptions) -> Result<(), CommandFailure> {
    let place = options.s3.place(&options.backup).map_err(CommandFailure::Usage)?;
    if let Some(at) = options.at {
        let archive = place.archive();
        let key = options.key.key().map_err(CommandFailure::Usage)?;
        let wanted = Wanted { at: at.limit(), store: options.store_id.clone().map(StoreId::stored), key };
        let restored = match options.drill {
            true => archive_restore::prove(&archive, &wanted, options.s3.work(), options.json).await,
            false => {
                if options.store.database().map_err(CommandFailure::Usage)?.is_some() {
                    return Err(CommandFailure::Usage(
                        "--at restores into a SQLite file: give --data instead of --database-url, and then move the \
                         file with stagedoor migrate"
                            .to_owned(),
                    ));
                }
                archive_restore::run(&archive, &wanted, &options.store.file(), options.json).await
            }
        };
        let restored = restored.map_err(failure)?;
        warn_of(&restored.problems);
        let hole = archive_restore::hole(&restored);
        return hole.map_or(Ok(()), |hole| Err(CommandFailure::Partly(hole)));
    }
    if options.drill {
        return prove(&place, options).await;
    }
    let target = options.store.target().map_err(CommandFailure::Usage)?;
    let mut progress = ProgressLines::new(options.json);
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    let found = find(&place, options, other(options.other_store), &mut report).await?;
    let restored = backup::restore(&found.backup, &target, other(options.other_store), &mut report).await;
    drop(progress);
    let restored = restored.map_err(failure)?;
    match options.json {
        true => {
            commands::out_line!(
                "{}",
                json!({ "backup": found.address, "rows": restored.rows, "bytes": restored.bytes })
            )
        }
        false => commands::out_line!("Restored {} rows from {}.", restored.rows, found.address),
    }
    Ok(())
}

/// The backup of the place, whose secrets open with the service key if one is given.
async fn find(
    place: &BackupPlace,
    options: &RestoreOptions,
    other: OtherStore,
    report: OnReport<'_>,
) -> Result<FoundBackup, CommandFailure> {
    let key = options.key.key().map_err(CommandFailure::Usage)?;
    let found = place.find(&options.s3, other, report).await.map_err(failure)?;
    warn_of_backups(&found.broken);
    if let Some(key) = key {
        let Manifest { store_id, key_test, .. } = &found.backup.manifest;
        backup::check_service_key(store_id.as_ref(), key_test.as_deref(), &key).map_err(failure)?;
    }
    Ok(found)
}

async fn prove(place: &BackupPlace, options: &RestoreOptions) -> Result<(), CommandFailure> {
    let mut progress = ProgressLines::new(options.json);
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    // A drill proves the latest one, of whatever store.
    let found = find(place, options, OtherStore::Meant, &mut report).await?;
    let drill = backup::drill(&found.backup, options.s3.work(), &mut report).await;
    drop(progress);
    let (drill, manifest) = (drill.map_err(failure)?, &found.backup.manifest);
    if options.json {
        commands::out_line!(
            "{}",
            json!({ "backup": found.address, "ok": true, "rows": drill.rows, "takenAt": manifest.taken_at,
                "schemaVersion": drill.schema_version, "migratedTo": drill.migrated_to })
        );
        return Ok(());
    }
    commands::out_line!("{}", as_line(&found.address, manifest));
    commands::out_line!("The backup is good: a service of this version can start on it.");
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
        true => commands::out_line!("{}", json!({ "rows": rows, "tables": moved.tables })),
        false => {
            let filled = moved.tables.iter().filter(|table| table.rows > 0);
            filled.for_each(|table| commands::out_line!("{:>12} {}", table.rows, table.table));
            commands::out_line!("Moved {rows} rows. Every table was compared on both sides.");
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
                let begin = CopyBegin { restart, other: self.other_store };
                Ok(Move::ToPostgres { from: file, to: url, begin })
            }
            (EngineOption::Postgres, EngineOption::Sqlite) => Ok(Move::ToSqlite { from: url, to: file }),
            _ => Err("--from and --to must be different engines; stagedoor backup and stagedoor restore copy a store to \
                      the same engine"
                .to_owned()),
        }
    }
}

fn as_json(address: &str, manifest: &Manifest) -> Value {
    let Manifest { version, engine, schema_version, taken_at, bytes, sha256, store_id, .. } = manifest;
    json!({ "backup": address, "storeId": store_id, "version": version, "engine": engine,
        "schemaVersion": schema_version, "takenAt": taken_at, "bytes": bytes, "sha256": sha256,
        "rows": manifest.rows() })
}

fn as_line(address: &str, manifest: &Manifest) -> String {
    let store = manifest.store_id.as_ref().map_or_else(String::new, |id| format!(", store {id}"));
    format!(
        "{address}  {} rows, {} MiB, from {} by version {}{store}",
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
        BackupError::Store { error: StoreError::Unavailable(_) | StoreError::Refused(_), .. } => {
            CommandFailure::Unreachable(text)
        }
        _ => CommandFailure::Failed(text),
    }
}

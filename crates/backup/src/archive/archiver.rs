//! Brings the segments of the spool to the archive, makes bases, and deletes what is old, beside the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use domain::Timestamp;
use store::log_archive::{GenerationState, LogArchive, Now, SpooledSegment, name_time};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::LOOK_EVERY;
use super::base::{blocking, make_base, state};
use super::catalog::{BASE_FILE, Base, FOLDER, Generation, generations, surplus};
use super::place::{ArchivePlace, OpenPlace};
use crate::{BackupError, DATA_FILE};

/// The longest pause after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The pause after a base that failed, in milliseconds.
const BASE_RETRY_MS: i64 = 60_000;
/// The shortest time between two lines of the log about failures, in milliseconds.
const LOG_EVERY_MS: i64 = 60_000;

/// Is called after each look at the spool: whether the archive has everything that it should have.
pub type OnOutcome = Arc<dyn Fn(bool) + Send + Sync>;

/// How an archive is kept.
#[derive(Clone)]
pub struct ArchiveSettings {
    /// Where it is.
    pub place: ArchivePlace,
    /// The time between two bases.
    pub base_every: Duration,
    /// How far back a time can be reached.
    pub keep: Duration,
    /// Maximum number of bytes in the spool. A generation begins when half of it is free.
    pub spool_bytes_max: u64,
    /// The version of this program.
    pub version: &'static str,
    /// Gives the time.
    pub now: Now,
    /// Gives random numbers, for the names of generations.
    pub random: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Is called after each look at the spool.
    pub on_outcome: OnOutcome,
}

/// What the archive has, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiverFigures {
    /// Everything that was committed before can be restored from the archive; `None` if nothing is known.
    pub archived_until: Option<Timestamp>,
    /// When the last base was complete; `None` if there is none, or it is not known yet.
    pub last_base: Option<Timestamp>,
    /// Bytes in the spool.
    pub spool_bytes: u64,
    /// Segments that were brought to the archive.
    pub segments: u64,
    /// Looks at the spool that failed.
    pub failures: u64,
    /// Generations that were begun.
    pub generations: u64,
}

/// The counters behind [`ArchiverFigures`]. A time of 0 is not known.
#[derive(Debug, Default)]
struct ArchiverCounters {
    archived_until: AtomicI64,
    last_base: AtomicI64,
    spool_bytes: AtomicU64,
    segments: AtomicU64,
    failures: AtomicU64,
    generations: AtomicU64,
}

/// Reads the figures of an archiver.
#[derive(Debug, Clone)]
pub struct FigureReader(Arc<ArchiverCounters>);

impl FigureReader {
    /// The figures of now.
    pub fn read(&self) -> ArchiverFigures {
        let counters = &self.0;
        let time = |value: &AtomicI64| match value.load(Ordering::Relaxed) {
            0 => None,
            ms => Some(Timestamp::from_millis(ms)),
        };
        ArchiverFigures {
            archived_until: time(&counters.archived_until),
            last_base: time(&counters.last_base),
            spool_bytes: counters.spool_bytes.load(Ordering::Relaxed),
            segments: counters.segments.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
            generations: counters.generations.load(Ordering::Relaxed),
        }
    }
}

/// A running archiver.
#[derive(Debug)]
pub struct Archiver {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
    counters: Arc<ArchiverCounters>,
}

impl Archiver {
    /// Starts to archive the log of a store.
    pub fn start(archive: Arc<LogArchive>, settings: ArchiveSettings) -> Self {
        let counters = Arc::<ArchiverCounters>::default();
        let (stop, stopped) = watch::channel(false);
        let worker = Worker {
            archive,
            settings,
            counters: counters.clone(),
            open: None,
            known: None,
            base: None,
            base_not_before: Timestamp::default(),
        };
        Self { task: tokio::spawn(worker.run(stopped)), stop, counters }
    }

    /// Reads the figures at any time.
    pub fn figures(&self) -> FigureReader {
        FigureReader(self.counters.clone())
    }

    /// Brings the rest of the spool to the archive, and ends. What is left after `within` stays in the spool
    /// for the next start.
    pub async fn stop(mut self, within: Duration) {
        let _ = self.stop.send(true);
        if tokio::time::timeout(within, &mut self.task).await.is_err() {
            self.task.abort();
            tracing::warn!("the archive did not get the last segments in time: they stay in the spool");
        }
    }
}

struct Worker {
    archive: Arc<LogArchive>,
    settings: ArchiveSettings,
    counters: Arc<ArchiverCounters>,
    /// The connection to the place, between two failures.
    open: Option<OpenPlace>,
    /// The generation whose bases are known, and when the last one was complete.
    known: Option<(String, Option<Timestamp>)>,
    /// A base that is being made.
    base: Option<JoinHandle<Result<Option<Base>, BackupError>>>,
    base_not_before: Timestamp,
}

impl Worker {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let (mut pause, mut next_line) = (LOOK_EVERY, Timestamp::default());
        loop {
            let looked = tokio::select! {
                looked = self.look() => looked,
                _ = stopped.changed() => break,
            };
            (self.settings.on_outcome)(looked.is_ok());
            let now = (self.settings.now)();
            match looked {
                Ok(()) => {
                    if pause > LOOK_EVERY {
                        tracing::info!("the archive is up to date again");
                    }
                    (pause, next_line) = (LOOK_EVERY, Timestamp::default());
                }
                Err(error) => {
                    self.open = None;
                    self.counters.failures.fetch_add(1, Ordering::Relaxed);
                    if now >= next_line {
                        next_line = now.plus_ms(LOG_EVERY_MS);
                        tracing::error!(%error, place = %self.settings.place, "the archive is not reached: the spool grows");
                    }
                    pause = (2 * pause).min(PAUSE_MAX);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stopped.changed() => break,
            }
        }
        if let Some(base) = self.base.take() {
            base.abort();
        }
        if let Err(error) = self.bring_segments().await {
            tracing::error!(%error, "the last segments stay in the spool");
        }
    }

    /// Brings what is in the spool to the archive, and does what else is due.
    async fn look(&mut self) -> Result<(), BackupError> {
        let before = state(&self.archive).await;
        self.bring_segments().await?;
        let Some(before) = before else { return self.begin().await };
        // Without a base nothing can be restored from the segments.
        let has_base = self
            .known
            .as_ref()
            .is_some_and(|(generation, last)| *generation == before.generation && last.is_some());
        if let Some(copied_until) = before.copied_until.filter(|_| has_base) {
            self.counters.archived_until.store(copied_until.as_millis(), Ordering::Relaxed);
        }
        self.finish_base().await?;
        self.begin_base(&before).await
    }

    async fn bring_segments(&mut self) -> Result<(), BackupError> {
        let archive = self.archive.clone();
        let (segments, bytes) = blocking(move || (archive.segments(), archive.spool_bytes())).await;
        self.counters.spool_bytes.store(bytes, Ordering::Relaxed);
        for segment in segments.map_err(|error| spool_failed(&error))? {
            let SpooledSegment { generation, name, path, bytes } = &segment;
            let key = format!("{FOLDER}/{generation}/segments/{name}");
            self.place()?.put_file(&key, path, *bytes).await?;
            let archive = self.archive.clone();
            let removed = blocking(move || (archive.remove(&segment), archive.spool_bytes())).await;
            removed.0.map_err(|error| spool_failed(&error))?;
            self.counters.spool_bytes.store(removed.1, Ordering::Relaxed);
            self.counters.segments.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Begins a generation, if the place answers and the spool has room.
    async fn begin(&mut self) -> Result<(), BackupError> {
        let random = (self.settings.random)();
        let name = format!("{}-{random:016x}", name_time((self.settings.now)()));
        self.place()?.check(&format!("{FOLDER}/{name}")).await?;
        let (archive, most) = (self.archive.clone(), self.settings.spool_bytes_max);
        if blocking(move || archive.spool_bytes()).await > most / 2 {
            return Ok(());
        }
        tracing::info!(generation = name, place = %self.settings.place, "the archive begins a generation");
        self.counters.generations.fetch_add(1, Ordering::Relaxed);
        let (archive, generation) = (self.archive.clone(), name.clone());
        let begun = blocking(move || {
            archive.begin(&generation);
            archive.state().is_some()
        });
        if !begun.await {
            return Err(BackupError::File("the generation could not begin".to_owned()));
        }
        self.known = Some((name, None));
        self.base_not_before = Timestamp::default();
        Ok(())
    }

    /// Takes note of a base that was made.
    async fn finish_base(&mut self) -> Result<(), BackupError> {
        if !self.base.as_ref().is_some_and(JoinHandle::is_finished) {
            return Ok(());
        }
        let Some(running) = self.base.take() else { return Ok(()) };
        let made = running.await.map_err(|error| BackupError::File(format!("the base failed: {error}")))?;
        let Some(base) = made? else { return Ok(()) };
        let completed = base.completed();
        tracing::info!(bytes = base.bytes, until = base.until, "the archive has a new base");
        self.counters.last_base.store(completed.as_millis(), Ordering::Relaxed);
        if let Some((_, last)) = &mut self.known {
            *last = Some(completed);
        }
        self.base_not_before = Timestamp::default();
        self.delete_old().await
    }

    /// Begins a base, if one is due.
    async fn begin_base(&mut self, state: &GenerationState) -> Result<(), BackupError> {
        let now = (self.settings.now)();
        if self.base.is_some() || now < self.base_not_before {
            return Ok(());
        }
        let last = match &self.known {
            Some((generation, last)) if *generation == state.generation => *last,
            _ => {
                let folder = format!("{FOLDER}/{}", state.generation);
                let known = read_catalog(self.place()?, &folder).await?;
                let bases = known.iter().flat_map(|each| &each.bases);
                let last = bases.map(|(_, base)| base.completed()).max();
                self.counters.last_base.store(last.map_or(0, Timestamp::as_millis), Ordering::Relaxed);
                self.known = Some((state.generation.clone(), last));
                last
            }
        };
        let every_ms = i64::try_from(self.settings.base_every.as_millis()).unwrap_or(i64::MAX);
        if last.is_some_and(|last| now < last.plus_ms(every_ms)) {
            return Ok(());
        }
        // The next attempt, if this one fails.
        self.base_not_before = now.plus_ms(BASE_RETRY_MS);
        let ArchiveSettings { place, now, version, .. } = self.settings.clone();
        self.base = Some(tokio::spawn(make_base(self.archive.clone(), place, now, version)));
        Ok(())
    }

    async fn delete_old(&mut self) -> Result<(), BackupError> {
        let keep_ms = i64::try_from(self.settings.keep.as_millis()).unwrap_or(i64::MAX);
        let oldest = (self.settings.now)().plus_ms(-keep_ms);
        let catalog = read_catalog(self.place()?, FOLDER).await?;
        let old = surplus(&catalog, oldest);
        if !old.bases.is_empty() {
            tracing::info!(
                bases = old.bases.len(),
                segments = old.segments.len(),
                "the archive deletes what is old"
            );
        }
        for (generation, base) in old.bases {
            let folder = format!("{FOLDER}/{generation}/bases/{base}");
            for file in [BASE_FILE.to_owned(), DATA_FILE.to_owned(), format!("{DATA_FILE}.partial")] {
                self.place()?.delete(&format!("{folder}/{file}")).await?;
            }
        }
        for (generation, segment) in old.segments {
            self.place()?.delete(&format!("{FOLDER}/{generation}/segments/{segment}")).await?;
        }
        Ok(())
    }

    fn place(&mut self) -> Result<&mut OpenPlace, BackupError> {
        match &mut self.open {
            Some(open) => Ok(open),
            closed => Ok(closed.insert(self.settings.place.open()?)),
        }
    }
}

/// The generations of an archive, or of a folder of it, with their bases.
pub(super) async fn read_catalog(
    place: &mut OpenPlace,
    folder: &str,
) -> Result<Vec<Generation>, BackupError> {
    let names = place.names(folder).await?;
    let (mut found, bases) = generations(&names);
    for (index, name) in bases {
        let Some(generation) = found.get_mut(index) else { continue };
        let file = format!("{FOLDER}/{}/bases/{name}/{BASE_FILE}", generation.name);
        let base = Base::of(&place.get(&file).await?, &file)?;
        generation.bases.push((name, base));
    }
    Ok(found)
}

fn spool_failed(error: &std::io::Error) -> BackupError {
    BackupError::File(format!("the spool failed: {error}"))
}

//! Brings the segments of the spool to the archive, makes bases, and deletes what is old, beside the service.

use std::fs::File;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use domain::{StoreId, Timestamp};
use store::log_archive::{
    GenerationState, LogArchive, MergedSegment, Now, SegmentHead, SegmentName, SpooledSegment, name_time,
    read_segment_head,
};
use tokio::sync::watch;
use tokio::task::{JoinHandle, block_in_place};

use super::LOOK_EVERY;
use super::base::{blocking, make_base, state};
use super::catalog::{
    Base, FOLDER, FORMAT, Generation, GenerationDescription, description_of, problems, read_catalog,
};
use super::deleting::{Keeping, delete_old};
use super::gathering::Gathering;
use super::holding::{PlaceNote, arrive, check_stores, noted_time};
use super::place::{ArchivePlace, OpenPlace};
use super::plan::{Chain, chain, plan};
use crate::BackupError;
use crate::s3::Source;

/// The longest pause after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// The pause between two listings of what a folder has of the generation, in milliseconds.
const FOLDER_LISTED_EVERY_MS: i64 = 20_000;
/// The same for an object store, which is paid for each.
const OBJECTS_LISTED_EVERY_MS: i64 = 600_000;
/// The pause between two notes of how far the archive is, in milliseconds.
const NOTE_EVERY_MS: i64 = 10_000;
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
    /// The store.
    pub store: StoreId,
    /// When it was made: so old is what cannot be restored from a place without a base.
    pub store_made_at: Timestamp,
    /// The place may hold the archive of another store, too.
    pub other_store: bool,
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
    /// Everything that was committed before can be restored from the archive.
    pub archived_until: Option<Timestamp>,
    /// When the last base that can be used was complete; `None` if there is none, or it is not known yet.
    pub last_base: Option<Timestamp>,
    /// Bytes in the spool.
    pub spool_bytes: u64,
    /// Segments that were brought to the archive; those that were merged into one count as one.
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
        let note = PlaceNote::of(&archive, &settings.place);
        let known = note.as_ref().and_then(|note| noted_time(note.archived_until));
        let until = known.unwrap_or(settings.store_made_at);
        counters.archived_until.store(until.as_millis(), Ordering::Relaxed);
        let (stop, stopped) = watch::channel(false);
        let worker = Worker {
            gathering: Gathering::new(archive.every()),
            archive,
            settings,
            counters: counters.clone(),
            open: None,
            known: None,
            base: None,
            base_not_before: Timestamp::default(),
            list_at: None,
            note,
            deleting: None,
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

/// Which segments of the spool are brought to the archive.
#[derive(Clone, Copy)]
enum Which {
    /// Those that wait for no others.
    Due,
    /// All.
    All,
}

/// How far the archive is, after segments were brought to it.
enum Reached {
    /// The spool is empty.
    All,
    /// In this generation everything that was committed before this time can be restored.
    Before { generation: String, complete_until: Timestamp },
    /// Nothing new.
    Nothing,
}

struct Worker {
    archive: Arc<LogArchive>,
    settings: ArchiveSettings,
    counters: Arc<ArchiverCounters>,
    /// Merges the segments.
    gathering: Gathering,
    /// The connection to the place, between two failures.
    open: Option<OpenPlace>,
    /// The generation whose bases are known, and when the last one was complete.
    known: Option<(String, Option<Timestamp>)>,
    /// A base that is being made.
    base: Option<JoinHandle<Result<Option<Base>, BackupError>>>,
    base_not_before: Timestamp,
    /// When the files of the generation are listed next; `None` at once.
    list_at: Option<Timestamp>,
    /// What is known of the place; `None` before the first generation there.
    note: Option<PlaceNote>,
    /// Old files are being deleted, beside the segments that are brought.
    deleting: Option<JoinHandle<()>>,
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
                    (self.open, self.list_at) = (None, None);
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
        if let Some(deleting) = self.deleting.take() {
            deleting.abort();
        }
        if let Err(error) = self.bring_segments(Which::All).await {
            tracing::error!(%error, "the last segments stay in the spool");
        }
    }

    /// Brings what is in the spool to the archive, and does what else is due.
    async fn look(&mut self) -> Result<(), BackupError> {
        let (before, archive) = (state(&self.archive).await, self.archive.clone());
        let spooled = blocking(move || archive.spool_bytes()).await;
        self.counters.spool_bytes.store(spooled, Ordering::Relaxed);
        // An object store is asked when there is something to bring.
        if let (Some(before), ArchivePlace::Folder(_)) = (&before, &self.settings.place) {
            self.hold(&before.generation.clone()).await?;
        }
        let reached = self.bring_segments(Which::Due).await?;
        let Some(before) = before else { return self.begin().await };
        self.finish_base().await?;
        self.list(&before).await?;
        if state(&self.archive).await.is_none_or(|now| now.generation != before.generation) {
            return self.begin().await;
        }
        // Without a base nothing can be restored from the segments.
        if self.last_base(&before).is_some() {
            self.note_reached(reached, &before)?;
        }
        self.begin_base(&before).await
    }

    /// When the last base of the generation was complete.
    fn last_base(&self, of: &GenerationState) -> Option<Timestamp> {
        self.known.as_ref().filter(|(generation, _)| *generation == of.generation).and_then(|(_, last)| *last)
    }

    /// Takes note of the time up to which everything can be restored.
    fn note_reached(&mut self, reached: Reached, before: &GenerationState) -> Result<(), BackupError> {
        let counter = &self.counters.archived_until;
        match (reached, before.copied_until) {
            (Reached::All, Some(copied_until)) => counter.store(copied_until.as_millis(), Ordering::Relaxed),
            (Reached::Before { generation, complete_until }, _) if generation == before.generation => {
                counter.fetch_max(complete_until.as_millis(), Ordering::Relaxed);
            }
            _ => {}
        }
        let until = counter.load(Ordering::Relaxed);
        let is_due = |note: &&mut PlaceNote| (until - note.archived_until).abs() >= NOTE_EVERY_MS;
        let Some(note) = self.note.as_mut().filter(is_due) else { return Ok(()) };
        note.archived_until = until;
        block_in_place(|| note.record(&self.archive))
    }

    /// Takes note of what can be restored from the place as it is.
    async fn recount(&mut self) -> Result<(), BackupError> {
        let catalog = read_catalog(self.place()?, FOLDER).await?;
        for problem in problems(&catalog) {
            tracing::warn!(problem, "a part of the archive is skipped");
        }
        let own = |each: &Generation| each.store_id.as_deref() == Some(self.settings.store.as_str());
        let own: Vec<_> = catalog.into_iter().filter(own).collect();
        let found = plan(&own, None).ok();
        let until = found.as_ref().map_or(self.settings.store_made_at, |plan| plan.complete_until());
        let last_base = found.map_or(0, |plan| plan.base.completed().as_millis());
        self.counters.archived_until.store(until.as_millis(), Ordering::Relaxed);
        self.counters.last_base.store(last_base, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the place is there, and has a generation.
    async fn is_held(&mut self, generation: &str) -> Result<bool, BackupError> {
        self.arrive()?;
        let is_held = self.place()?.has(&description_of(generation)).await?;
        if !is_held {
            // It may have gone meanwhile.
            self.arrive()?;
        }
        Ok(is_held)
    }

    /// Checks that the place is there, and gives whether it is on another disk than the data.
    fn arrive(&mut self) -> Result<bool, BackupError> {
        let device = block_in_place(|| self.archive.data_device()).map_err(|error| spool_failed(&error))?;
        let (place, note) = (self.settings.place.clone(), self.note.clone());
        let open = self.place()?;
        block_in_place(|| arrive(open, &place, note.as_ref(), device))
    }

    /// Gives a generation up if the place does not have it, and gives whether it has. Its segments are of no
    /// use without its base.
    async fn hold(&mut self, generation: &str) -> Result<bool, BackupError> {
        if self.is_held(generation).await? {
            return Ok(true);
        }
        self.lose(generation, format!("the place does not have the generation {generation}")).await?;
        let (archive, of) = (self.archive.clone(), generation.to_owned());
        let removed = blocking(move || {
            let mut segments = archive.segments()?.into_iter().filter(|segment| segment.generation == of);
            segments.try_for_each(|segment| archive.remove(&segment))
        });
        removed.await.map_err(|error| spool_failed(&error))?;
        Ok(false)
    }

    /// Ends a generation that cannot go on in the place. The next one begins with a base there.
    async fn lose(&mut self, generation: &str, why: String) -> Result<(), BackupError> {
        self.check_stores().await?;
        self.recount().await?;
        let (archive, of) = (self.archive.clone(), generation.to_owned());
        blocking(move || {
            if archive.state().is_some_and(|state| state.generation == of) {
                archive.end(&why);
            }
        })
        .await;
        if let Some(base) = self.base.take() {
            base.abort();
        }
        self.known = None;
        Ok(())
    }

    async fn check_stores(&mut self) -> Result<(), BackupError> {
        if self.settings.other_store {
            return Ok(());
        }
        let (place, store) = (self.settings.place.clone(), self.settings.store.clone());
        check_stores(self.place()?, &place, &store).await
    }

    /// Brings segments of the spool to the archive, merged into few objects.
    async fn bring_segments(&mut self, which: Which) -> Result<Reached, BackupError> {
        let archive = self.archive.clone();
        let segments = blocking(move || archive.segments()).await.map_err(|error| spool_failed(&error))?;
        let (mut rest, mut reached) = (segments.as_slice(), Reached::Nothing);
        while !rest.is_empty() {
            let count = match which {
                Which::Due => self.gathering.due(rest, (self.settings.now)()),
                Which::All => self.gathering.together(rest).0,
            };
            if count == 0 {
                return Ok(reached);
            }
            let (parts, later) = rest.split_at(count);
            if let Some(first) = parts.first()
                && !self.hold(&first.generation).await?
            {
                return Ok(Reached::Nothing);
            }
            if let Some(head) = self.bring(parts).await? {
                reached = Reached::Before { generation: head.generation, complete_until: head.from };
            }
            rest = later;
        }
        Ok(Reached::All)
    }

    /// Brings segments that follow each other to the archive as one, and gives what it says of itself.
    async fn bring(&mut self, parts: &[SpooledSegment]) -> Result<Option<SegmentHead>, BackupError> {
        let [first, .., _] = parts else { return self.bring_each(parts).await };
        let opening = parts.to_vec();
        match blocking(move || MergedSegment::open(&opening)).await {
            Ok(mut merged) => {
                let (head, bytes) = (merged.head().clone(), merged.size());
                let from = Source { content: &mut merged, path: &first.path, bytes };
                self.place()?.put_all(&key_of(&head.generation, head.name), from).await?;
                self.note_brought(parts)?;
                Ok(Some(head))
            }
            Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
                // The archive gets a damaged segment as it is, so that a restore names it.
                tracing::error!(%error, first = %first.name, "segments of the spool cannot be merged");
                self.bring_each(parts).await
            }
            Err(error) => Err(spool_failed(&error)),
        }
    }

    /// Brings segments to the archive as they are, and gives what the last one says of itself.
    async fn bring_each(&mut self, segments: &[SpooledSegment]) -> Result<Option<SegmentHead>, BackupError> {
        let mut last = None;
        for segment in segments {
            let SpooledSegment { generation, name, path, bytes } = segment;
            let opening = path.clone();
            let opened =
                blocking(move || Ok((File::open(&opening)?, read_segment_head(&opening).ok()))).await;
            let (mut file, head) = opened.map_err(|error| spool_failed(&error))?;
            let from = Source { content: &mut file, path, bytes: *bytes };
            self.place()?.put_all(&key_of(generation, *name), from).await?;
            self.note_brought(std::slice::from_ref(segment))?;
            last = head;
        }
        Ok(last)
    }

    /// Deletes segments of the spool that the archive has, before anything else can be awaited.
    fn note_brought(&mut self, parts: &[SpooledSegment]) -> Result<(), BackupError> {
        if let Some(last) = parts.last() {
            self.gathering.note(last);
        }
        let removed = block_in_place(|| parts.iter().try_for_each(|part| self.archive.remove(part)));
        removed.map_err(|error| spool_failed(&error))?;
        let spool_bytes = block_in_place(|| self.archive.spool_bytes());
        self.counters.spool_bytes.store(spool_bytes, Ordering::Relaxed);
        self.counters.segments.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Begins a generation, if the place answers and the spool has room.
    async fn begin(&mut self) -> Result<(), BackupError> {
        let other_disk = self.arrive()?;
        self.check_stores().await?;
        let (archive, most) = (self.archive.clone(), self.settings.spool_bytes_max);
        if blocking(move || archive.spool_bytes()).await > most / 2 {
            return Ok(());
        }
        self.recount().await?;
        let name = self.describe().await?;
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
        let archived_until = self.counters.archived_until.load(Ordering::Relaxed);
        let note = PlaceNote { place: self.settings.place.to_string(), other_disk, archived_until };
        block_in_place(|| note.record(&self.archive))?;
        self.note = Some(note);
        Ok(())
    }

    /// Writes the description of a new generation, before anything else of it, and gives its name.
    async fn describe(&mut self) -> Result<String, BackupError> {
        let (now, random) = ((self.settings.now)(), (self.settings.random)());
        let name = format!("{}-{random:016x}", name_time(now));
        let described = GenerationDescription {
            format: FORMAT,
            version: self.settings.version.to_owned(),
            store_id: self.settings.store.to_string(),
            began_at: now.rfc3339(),
        };
        let text = serde_json::to_vec_pretty(&described)
            .map_err(|error| BackupError::Damaged(format!("the generation cannot be described: {error}")))?;
        self.place()?.put(&description_of(&name), text).await?;
        Ok(name)
    }

    /// Lists what the place has of the generation, now and then. Without a base one is due. What is missing
    /// between the base and the last segment that was brought ends the generation.
    async fn list(&mut self, before: &GenerationState) -> Result<(), BackupError> {
        let now = (self.settings.now)();
        let is_known = self.known.as_ref().is_some_and(|(of, _)| *of == before.generation);
        if is_known && self.list_at.is_some_and(|at| now < at) {
            return Ok(());
        }
        let (archive, of) = (self.archive.clone(), before.generation.clone());
        let waiting = blocking(move || {
            let segments = archive.segments()?;
            let first = segments.into_iter().find(|segment| segment.generation == of);
            Ok::<_, std::io::Error>(first.map(|first| first.name.first))
        });
        let waiting = waiting.await.map_err(|error| spool_failed(&error))?;
        let brought = waiting.map_or(before.last, |first| (first - 1).min(before.last));
        let found = read_catalog(self.place()?, &format!("{FOLDER}/{}", before.generation)).await?;
        let found = found.into_iter().next().unwrap_or_default();
        let last = match chain(&found, before.redo_from, brought) {
            Chain::Whole(completed) => Some(completed),
            // A place without the description of a generation takes no base of it.
            Chain::NoBase if !self.hold(&before.generation).await? => return Ok(()),
            Chain::NoBase => None,
            Chain::Broken(number) => {
                let why = format!("the place does not have the segment {number} of the generation");
                return self.lose(&before.generation, why).await;
            }
        };
        let every = match self.settings.place {
            ArchivePlace::Folder(_) => FOLDER_LISTED_EVERY_MS,
            ArchivePlace::S3(_) => OBJECTS_LISTED_EVERY_MS,
        };
        self.list_at = Some(now.plus_ms(every));
        if last.is_none() {
            if self.last_base(before).is_some() {
                tracing::error!(place = %self.settings.place, "the archive has no base any more: a new one is made");
            }
            self.recount().await?;
        }
        self.counters.last_base.store(last.map_or(0, Timestamp::as_millis), Ordering::Relaxed);
        self.known = Some((before.generation.clone(), last));
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
        tracing::info!(bytes = base.bytes, until = base.until, "the archive has a new base");
        (self.base_not_before, self.list_at) = (Timestamp::default(), None);
        let ArchiveSettings { place, store, keep, now, .. } = self.settings.clone();
        let generation = self.known.as_ref().map(|(generation, _)| generation.clone()).unwrap_or_default();
        let keeping = Keeping { place, store, generation, keep, now };
        if let Some(before) = self.deleting.replace(tokio::spawn(delete_old(keeping))) {
            before.abort();
        }
        Ok(())
    }

    /// Begins a base, if one is due.
    async fn begin_base(&mut self, state: &GenerationState) -> Result<(), BackupError> {
        let now = (self.settings.now)();
        if self.base.is_some() || now < self.base_not_before {
            return Ok(());
        }
        let last = self.last_base(state);
        let every_ms = i64::try_from(self.settings.base_every.as_millis()).unwrap_or(i64::MAX);
        if last.is_some_and(|last| now < last.plus_ms(every_ms)) {
            return Ok(());
        }
        // The next attempt, if this one fails.
        self.base_not_before = now.plus_ms(BASE_RETRY_MS);
        // This archiver, the only one of the place, uploads nothing at this moment.
        self.place()?.end_interrupted(&format!("{FOLDER}/")).await;
        let ArchiveSettings { place, store, now, version, .. } = self.settings.clone();
        self.base = Some(tokio::spawn(make_base(self.archive.clone(), place, store, now, version)));
        Ok(())
    }

    fn place(&mut self) -> Result<&mut OpenPlace, BackupError> {
        match &mut self.open {
            Some(open) => Ok(open),
            closed => Ok(closed.insert(self.settings.place.open()?)),
        }
    }
}

fn key_of(generation: &str, name: SegmentName) -> String {
    format!("{FOLDER}/{generation}/segments/{name}")
}

fn spool_failed(error: &std::io::Error) -> BackupError {
    BackupError::File(format!("the spool failed: {error}"))
}

//! The index behind the category search. All categories are in memory, in the order of their names, in
//! chunks. A change rebuilds one or two chunks, and a search never waits for a change.
//!
//! Searches share a [`Snapshot`] and hold no lock while they run. One task at a time updates the index
//! ([`CategoryIndex::reader`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::CategoryId;
use domain::live::Category;
use memchr::memmem::Finder;
use store::queries::categories::CategoryMark;
use unicode_normalization::UnicodeNormalization;

/// Maximum number of entries of one chunk. A chunk of this size is rebuilt in well under a millisecond.
const CHUNK_ENTRIES_MAX: usize = 512;
/// Maximum number of changes that are merged on the async task. More changes are merged on a blocking
/// thread.
const INLINE_MAX: usize = 64;
/// The byte before each name in a chunk's text. No name and no query contains this byte.
const SEPARATOR: u8 = 0;

/// Folds a text for comparison: composed and in lower case, so that neither case nor the composition of
/// Hangul or accents matters. Each character is folded by itself, so that a part of a text folds to a
/// part of the folded text.
fn fold(text: &str) -> String {
    let lower = |c: char| if c == 'ς' { 'σ' } else { c };
    // Lower case can give characters that compose again: J with a caron has no composed capital letter.
    text.nfc().flat_map(char::to_lowercase).map(lower).nfc().collect()
}

/// The newest snapshot, and the lock of the task that makes a newer one.
pub(crate) struct CategoryIndex {
    snapshot: Mutex<Arc<Snapshot>>,
    reading: tokio::sync::Mutex<Reading>,
}

/// The state of the task that updates the index.
struct Reading {
    mark: CategoryMark,
    /// The entries of the newest snapshot.
    entries: HashMap<CategoryId, Arc<CategoryEntry>>,
    /// The entries that were read since.
    pending: HashMap<CategoryId, Arc<CategoryEntry>>,
}

/// All categories as they were at one version of the store.
pub(crate) struct Snapshot {
    /// The version of the last included write. Before the first read it is smaller than any version.
    version: i64,
    chunks: Vec<Arc<Chunk>>,
}

/// A category with its folded name.
struct CategoryEntry {
    category: Arc<Category>,
    folded: String,
}

impl CategoryEntry {
    /// The sort key of entries: the name by code points, then the id.
    fn key(&self) -> (&str, &CategoryId) {
        (&self.category.category_value, &self.category.category_id)
    }
}

/// A run of neighbouring entries in the order of names.
struct Chunk {
    entries: Vec<Arc<CategoryEntry>>,
    /// Every folded name, with a separator before each.
    text: Vec<u8>,
    /// The start of each name in the text, and one more start for the end of the text.
    starts: Vec<usize>,
    /// The entries in the order of their folded names.
    by_fold: Vec<usize>,
}

impl CategoryIndex {
    /// Makes an empty index.
    pub(crate) fn new() -> Self {
        let empty = Snapshot { version: -1, chunks: Vec::new() };
        let mark = CategoryMark { version: -1, category_id: String::new() };
        Self {
            snapshot: Mutex::new(Arc::new(empty)),
            reading: tokio::sync::Mutex::new(Reading {
                mark,
                entries: HashMap::new(),
                pending: HashMap::new(),
            }),
        }
    }

    /// The newest snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the newest snapshot if it includes every write up to `version`.
    pub(crate) fn current_at(&self, version: i64) -> Option<Arc<Snapshot>> {
        Some(self.snapshot()).filter(|snapshot| snapshot.version >= version)
    }

    /// Waits for the lock that allows updates of the index.
    pub(crate) async fn reader(&self) -> Reader<'_> {
        Reader { index: self, reading: self.reading.lock().await }
    }
}

/// The holder of the lock that allows updates of the index.
pub(crate) struct Reader<'i> {
    index: &'i CategoryIndex,
    reading: tokio::sync::MutexGuard<'i, Reading>,
}

impl Reader<'_> {
    /// Whether the newest snapshot includes every write up to `version`.
    pub(crate) fn has(&self, version: i64) -> bool {
        self.index.current_at(version).is_some()
    }

    /// The last category that was read.
    pub(crate) fn mark(&self) -> &CategoryMark {
        &self.reading.mark
    }

    /// Adds the rows that were read after the mark.
    pub(crate) fn take(&mut self, rows: Vec<(Category, CategoryMark)>) {
        for (category, mark) in rows {
            let folded = fold(&category.category_value);
            let id = category.category_id.clone();
            self.reading.pending.insert(id, Arc::new(CategoryEntry { category: Arc::new(category), folded }));
            self.reading.mark = mark;
        }
    }

    /// Publishes a snapshot with the added rows, which include every write up to `version`. Many changes
    /// are merged on a blocking thread, so that other tasks are not delayed. When the caller is
    /// cancelled, the pending rows stay for the next caller.
    pub(crate) async fn publish(&mut self, version: i64) {
        let Reading { mark, entries, pending } = &mut *self.reading;
        let gone: Vec<_> = pending.keys().filter_map(|id| entries.get(id).cloned()).collect();
        let new: Vec<_> = pending.values().cloned().collect();
        let before = self.index.snapshot();
        let merged = if new.len() <= INLINE_MAX {
            Some(merge(&before.chunks, gone, new))
        } else {
            tokio::task::spawn_blocking(move || merge(&before.chunks, gone, new)).await.ok()
        };
        // The merge is only cancelled when the runtime stops, and then there are no more searches.
        let Some(chunks) = merged else { return };
        entries.extend(pending.drain());
        let version = version.max(mark.version);
        *self.index.snapshot.lock().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Snapshot { version, chunks });
    }
}

/// Returns the chunks without `gone` and with `new`. Chunks without a change are shared.
fn merge(
    chunks: &[Arc<Chunk>],
    gone: Vec<Arc<CategoryEntry>>,
    mut new: Vec<Arc<CategoryEntry>>,
) -> Vec<Arc<Chunk>> {
    new.sort_unstable_by(|a, b| a.key().cmp(&b.key()));
    let mut gone_from: HashMap<usize, Vec<Arc<CategoryEntry>>> = HashMap::new();
    for entry in gone {
        gone_from.entry(place(chunks, &entry)).or_default().push(entry);
    }
    let mut new = new.into_iter().peekable();
    let mut merged = Vec::with_capacity(chunks.len() + 1);
    for (index, chunk) in chunks.iter().enumerate() {
        let mut entries: Vec<Arc<CategoryEntry>> = Vec::new();
        while let Some(entry) = new.next_if(|entry| place(chunks, entry) == index) {
            entries.push(entry);
        }
        let gone = gone_from.remove(&index).unwrap_or_default();
        if entries.is_empty() && gone.is_empty() {
            merged.push(chunk.clone());
        } else {
            let stays = |entry: &&Arc<CategoryEntry>| !gone.iter().any(|gone| Arc::ptr_eq(gone, entry));
            entries.extend(chunk.entries.iter().filter(stays).cloned());
            entries.sort_unstable_by(|a, b| a.key().cmp(&b.key()));
            cut(&entries, &mut merged);
        }
    }
    cut(&new.collect::<Vec<_>>(), &mut merged);
    merged
}

/// Returns the index of the chunk of an entry: the last chunk that begins no later than the entry, or the
/// first chunk for an entry before all chunks.
fn place(chunks: &[Arc<Chunk>], entry: &CategoryEntry) -> usize {
    let begins_no_later =
        |chunk: &Arc<Chunk>| chunk.entries.first().is_none_or(|first| first.key() <= entry.key());
    chunks.partition_point(begins_no_later).saturating_sub(1)
}

/// Splits entries into chunks of about the same size.
fn cut(entries: &[Arc<CategoryEntry>], into: &mut Vec<Arc<Chunk>>) {
    let pieces = entries.len().div_ceil(CHUNK_ENTRIES_MAX).max(1);
    let size = entries.len().div_ceil(pieces).max(1);
    into.extend(entries.chunks(size).map(|piece| Arc::new(Chunk::new(piece.to_vec()))));
}

impl Chunk {
    fn new(entries: Vec<Arc<CategoryEntry>>) -> Self {
        let mut text = Vec::new();
        let mut starts = Vec::with_capacity(entries.len() + 1);
        for entry in &entries {
            text.push(SEPARATOR);
            starts.push(text.len());
            text.extend_from_slice(entry.folded.as_bytes());
        }
        text.push(SEPARATOR);
        starts.push(text.len());
        let mut by_fold: Vec<usize> = (0..entries.len()).collect();
        // The sort is stable, so that entries with equal folded names stay in the order of names.
        by_fold.sort_by(|a, b| entries[*a].folded.cmp(&entries[*b].folded));
        Self { entries, text, starts, by_fold }
    }

    /// The entries whose folded names equal `query`, in the order of names. They are the first of the
    /// entries whose folded names begin with `query`.
    fn equal_to(&self, query: &str) -> &[usize] {
        let name = |index: usize| self.entries[index].folded.as_str();
        let first = self.by_fold.partition_point(|index| name(*index) < query);
        let same = self.by_fold[first..].partition_point(|index| name(*index) == query);
        &self.by_fold[first..first + same]
    }

    /// The entries whose folded names begin with `query` and are longer, in the order of names.
    fn beginning_with(&self, query: &str) -> Vec<usize> {
        let name = |index: usize| self.entries[index].folded.as_str();
        let first = self.by_fold.partition_point(|index| name(*index) <= query);
        let begins = |index: &usize| name(*index).starts_with(query);
        let mut longer: Vec<usize> = self.by_fold[first..].iter().copied().take_while(begins).collect();
        longer.sort_unstable();
        longer
    }

    /// The entries whose folded names contain the searched text, but not at the beginning, in the order
    /// of names.
    fn containing<'c>(&'c self, finder: &'c Finder<'_>) -> impl Iterator<Item = usize> + 'c {
        let mut from = 0;
        std::iter::from_fn(move || {
            loop {
                let at = from + finder.find(self.text.get(from..)?)?;
                let index = self.starts.partition_point(|start| *start <= at) - 1;
                from = self.starts[index + 1];
                if at != self.starts[index] {
                    return Some(index);
                }
            }
        })
    }

    fn category(&self, index: usize) -> Arc<Category> {
        self.entries[index].category.clone()
    }
}

impl Snapshot {
    /// Returns every category.
    pub(crate) fn all(&self) -> Vec<Arc<Category>> {
        let entries = self.chunks.iter().flat_map(|chunk| &chunk.entries);
        entries.map(|entry| entry.category.clone()).collect()
    }

    /// Returns the first `size` categories whose name contains `query`: exact matches, then prefixes,
    /// then substrings.
    pub(crate) fn search(&self, query: &str, size: usize) -> Vec<Arc<Category>> {
        let query = fold(query);
        let (mut found, mut longer) = (Vec::new(), Vec::new());
        for chunk in &self.chunks {
            let room = size.saturating_sub(found.len());
            found.extend(chunk.equal_to(&query).iter().take(room).map(|index| chunk.category(*index)));
            let room = size.saturating_sub(longer.len());
            if room > 0 {
                let beginning = chunk.beginning_with(&query).into_iter().take(room);
                longer.extend(beginning.map(|index| chunk.category(index)));
            }
        }
        found.extend(longer);
        let finder = Finder::new(&query);
        let containing = self
            .chunks
            .iter()
            .flat_map(|chunk| chunk.containing(&finder).map(|index| chunk.category(index)))
            .take(size.saturating_sub(found.len()));
        found.extend(containing);
        found.truncate(size);
        found
    }
}

#[cfg(test)]
mod tests {
    use domain::live::CategoryType;

    use super::*;

    fn category(id: usize, value: String) -> Category {
        Category {
            category_id: CategoryId::stored(format!("c{id:05}")),
            category_type: CategoryType::Game,
            category_value: value,
            poster_image_url: None,
        }
    }

    /// Pseudo-random numbers with a fixed seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }

        /// Returns a word of few different letters, so that many words match.
        fn word(&mut self) -> String {
            let letters = ['a', 'A', 'b', '가', 'é', ' ', '%'];
            (0..=self.below(5)).map(|_| letters[self.below(letters.len())]).collect()
        }
    }

    /// The expected result of a search, computed by comparing every category.
    fn search_every_category(all: &HashMap<usize, Category>, query: &str, size: usize) -> Vec<String> {
        let query = fold(query);
        let rank = |category: &Category| match fold(&category.category_value) {
            name if name == query => Some(0),
            name if name.starts_with(&query) => Some(1),
            name if name.contains(&query) => Some(2),
            _ => None,
        };
        let key = |category: &Category| (category.category_value.clone(), category.category_id.to_string());
        let mut found: Vec<_> =
            all.values().filter_map(|category| Some((rank(category)?, key(category)))).collect();
        found.sort();
        found.into_iter().take(size).map(|(_, (_, id))| id).collect()
    }

    #[tokio::test]
    async fn a_search_equals_a_comparison_with_every_category_after_any_change() {
        let mut random = Random(1);
        let (index, mut all) = (CategoryIndex::new(), HashMap::new());
        for round in 0..24_i64 {
            // Changes of many sizes. The first one fills more than one chunk.
            let count = if round == 0 { 3 * CHUNK_ENTRIES_MAX } else { random.below(40) };
            let rows = (0..count).map(|_| category(random.below(4_000), random.word()));
            let rows: HashMap<_, _> = rows.map(|category| (category.category_id.clone(), category)).collect();
            let rows: Vec<_> = rows.into_values().collect();
            for row in &rows {
                all.insert(row.category_id.as_str()[1..].parse().expect("a number"), row.clone());
            }
            let mark = |id: &CategoryId| CategoryMark { version: round, category_id: id.to_string() };
            let rows = rows.into_iter().map(|row| (row.clone(), mark(&row.category_id))).collect();
            let mut reader = index.reader().await;
            reader.take(rows);
            reader.publish(round).await;
            drop(reader);
            let snapshot = index.current_at(round).expect("up to date");
            for _ in 0..8 {
                let (query, size) = (random.word(), 1 + random.below(50));
                let found = snapshot.search(&query, size);
                let found: Vec<_> = found.iter().map(|category| category.category_id.to_string()).collect();
                assert_eq!(found, search_every_category(&all, &query, size), "{query:?} {size}");
            }
        }
        let snapshot = index.snapshot();
        let sizes: Vec<_> = snapshot.chunks.iter().map(|chunk| chunk.entries.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), all.len());
        assert!(sizes.iter().all(|size| (1..=CHUNK_ENTRIES_MAX).contains(size)), "{sizes:?}");
    }

    #[tokio::test]
    async fn an_index_that_is_half_read_is_not_up_to_date() {
        let index = CategoryIndex::new();
        assert!(index.current_at(0).is_none(), "nothing was read yet");
        let mark = CategoryMark { version: 7, category_id: "c00001".to_owned() };
        index.reader().await.take(vec![(category(1, "a".to_owned()), mark.clone())]);
        assert!(index.current_at(0).is_none());
        assert_eq!(index.reader().await.mark(), &mark);
        index.reader().await.publish(5).await;
        assert!(index.current_at(7).is_some(), "the index has read up to version 7");
        assert!(index.current_at(8).is_none());
    }

    #[test]
    fn folding_ignores_only_case_and_composition() {
        for (one, other) in [
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("CAFE\u{301}", "café"),
            ("ΟΔΟΣ", "οδος"),
            ("J\u{30c}", "\u{1f0}"),
            ("I\u{307}", "İ"),
            ("\u{212a}", "k"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        for (one, other) in [("e", "é"), ("ㅎ", "하"), ("ß", "ss"), ("ａ", "a")] {
            assert_ne!(fold(one), fold(other), "{one} {other}");
        }
    }
}

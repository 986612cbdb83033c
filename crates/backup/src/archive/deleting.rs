//! Deletes what of an archive is old. It is many objects, so it runs beside the segments that are brought.

use std::time::Duration;

use domain::{StoreId, Timestamp};
use store::log_archive::{Now, SegmentName};

use super::catalog::{BASE_FILE, FOLDER, Generation, description_of, read_catalog};
use super::place::ArchivePlace;
use super::plan::is_whole;
use crate::{BackupError, DATA_FILE};

/// Which archive it is, and how far back it reaches.
pub(super) struct Keeping {
    pub place: ArchivePlace,
    pub store: StoreId,
    /// The generation that is being written.
    pub generation: String,
    pub keep: Duration,
    pub now: Now,
}

/// Deletes what is not needed to reach the times of the last days. What fails is tried again after the next
/// base.
pub(super) async fn delete_old(keeping: Keeping) {
    if let Err(error) = delete_before(&keeping).await {
        tracing::error!(%error, place = %keeping.place, "the archive keeps what is old");
    }
}

async fn delete_before(keeping: &Keeping) -> Result<(), BackupError> {
    let keep_ms = i64::try_from(keeping.keep.as_millis()).unwrap_or(i64::MAX);
    let mut open = keeping.place.open()?;
    let catalog = read_catalog(&mut open, FOLDER).await?;
    // What belongs to another store, or to none that is known, is never old.
    let own = |each: &Generation| each.store_id.as_deref() == Some(keeping.store.as_str());
    let catalog: Vec<_> = catalog.into_iter().filter(own).collect();
    let old = surplus(&catalog, (keeping.now)().plus_ms(-keep_ms));
    if !old.bases.is_empty() {
        let (bases, segments) = (old.bases.len(), old.segments.len());
        tracing::info!(bases, segments, "the archive deletes what is old");
    }
    for (generation, base) in old.bases {
        let folder = format!("{FOLDER}/{generation}/bases/{base}");
        for file in [BASE_FILE.to_owned(), DATA_FILE.to_owned(), format!("{DATA_FILE}.partial")] {
            open.delete(&format!("{folder}/{file}")).await?;
        }
    }
    for (generation, segment) in old.segments {
        open.delete(&format!("{FOLDER}/{generation}/segments/{segment}")).await?;
    }
    for generation in old.descriptions.iter().filter(|name| **name != keeping.generation) {
        open.delete(&description_of(generation)).await?;
    }
    Ok(())
}

/// What of an archive is no longer needed to reach the times since a time: bases by generation and name,
/// segments by generation, and incomplete bases. The newest base that is whole stays, with what it needs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Surplus {
    /// Bases, by generation and name.
    bases: Vec<(String, String)>,
    /// Segments, by generation.
    segments: Vec<(String, SegmentName)>,
    /// Generations of which nothing is left.
    descriptions: Vec<String>,
}

/// Finds what is old in the generations of one store.
fn surplus(generations: &[Generation], oldest: Timestamp) -> Surplus {
    let mut all: Vec<_> = generations
        .iter()
        .flat_map(|each| each.bases.iter().map(move |(name, base)| (base.completed(), each, name, base)))
        .collect();
    all.sort_by_key(|(completed, ..)| *completed);
    // The last whole base before `oldest` leads to the first times after it.
    let kept_from = all
        .iter()
        .rposition(|(completed, of, _, base)| *completed <= oldest && is_whole(of, base))
        .unwrap_or(0);
    let (old, kept) = all.split_at(kept_from);
    let mut surplus = Surplus::default();
    surplus.bases.extend(old.iter().map(|(_, of, name, _)| (of.name.clone(), (*name).clone())));
    for generation in generations {
        let needed = kept.iter().filter(|(_, of, ..)| of.name == generation.name);
        let first = needed.map(|(.., base)| base.redo_from).min();
        // A generation without a base may be about to get one, unless a later one has one already.
        let is_over = kept.iter().any(|(_, of, _, base)| of.name > generation.name && is_whole(of, base));
        let is_old = |segment: &&SegmentName| first.map_or(is_over, |first| segment.last < first);
        let segments = generation.segments.iter().filter(is_old);
        surplus.segments.extend(segments.map(|segment| (generation.name.clone(), *segment)));
        let newest = generation.bases.last().map(|(name, _)| name);
        let interrupted = generation
            .partial_bases
            .iter()
            .filter(|base| is_over || newest.is_some_and(|newest| *base < newest));
        surplus.bases.extend(interrupted.map(|base| (generation.name.clone(), base.clone())));
        if is_over && first.is_none() {
            surplus.descriptions.push(generation.name.clone());
        }
    }
    surplus
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{at, base, generation, segment};
    use super::*;

    #[test]
    fn old_bases_and_their_segments_go_and_the_newest_base_stays() {
        let segments: Vec<_> = (1..=9).map(|n| segment(n, n, n as i64 * 10)).collect();
        let first = generation("a", &[base(25, 1, 2), base(65, 4, 6)], &segments);
        let second = generation("b", &[base(105, 1, 1)], &[segment(1, 1, 100)]);
        let old = |oldest| surplus(&[first.clone(), second.clone()], at(oldest));
        assert_eq!(old(30), Surplus::default());
        let later = old(70);
        assert_eq!(later.bases, [("a".to_owned(), "base-25".to_owned())]);
        assert_eq!(later.segments.iter().map(|(_, segment)| segment.last).collect::<Vec<_>>(), [1, 2, 3]);
        let all = old(999);
        assert_eq!((all.bases.len(), all.segments.len()), (2, 9), "the newest base stays");
        assert!(all.segments.iter().all(|(generation, _)| generation == "a"));
        assert_eq!((later.descriptions.len(), all.descriptions), (0, vec!["a".to_owned()]));
    }

    #[test]
    fn a_base_that_is_not_whole_displaces_nothing() {
        let segments: Vec<_> = (1..=3).map(|n| segment(n, n, n as i64 * 10)).collect();
        let good = generation("a", &[base(25, 1, 2)], &segments);
        // Its first segments were brought elsewhere.
        let broken = generation("b", &[base(105, 1, 2)], &[segment(2, 2, 100)]);
        assert_eq!(surplus(&[good, broken], at(999)), Surplus::default());
    }

    #[test]
    fn the_segments_that_a_base_needs_are_not_old_though_they_begin_before_it() {
        let segments = [segment(1, 1, 10), segment(2, 6, 60), segment(3, 3, 30), segment(4, 9, 90)];
        let old = surplus(&[generation("a", &[base(92, 3, 8)], &segments)], at(95));
        assert_eq!(old.segments.iter().map(|(_, name)| name.first).collect::<Vec<_>>(), [1]);
    }
}

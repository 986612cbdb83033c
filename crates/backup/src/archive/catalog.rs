//! What an archive has, by the names of its files: which times can be reached, with what, and what is old.

use std::collections::BTreeMap;

use domain::Timestamp;
use serde::{Deserialize, Serialize};
use store::log_archive::SegmentName;

use super::place::OpenPlace;
use crate::{BackupError, DATA_FILE};

/// The folder of an archive in its place.
pub(super) const FOLDER: &str = "archive";
/// The description of a base. A base without it is not complete.
pub(super) const BASE_FILE: &str = "base.json";
/// The format that this program writes. Programs refuse formats that they do not know.
pub(super) const FORMAT: u32 = 1;

/// A base: a copy of the data file, which is whole when the segments of `redo_from` to `redo_to` are applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Base {
    /// The format of the archive.
    pub format: u32,
    /// The version of the program that made the base.
    pub version: String,
    /// When it was begun (RFC 3339).
    pub started_at: String,
    /// Everything that was acknowledged before is in it (RFC 3339).
    pub complete_until: String,
    /// When it was complete (RFC 3339): no earlier time can be reached with it.
    pub until: String,
    /// The first segment that must be applied.
    pub redo_from: u64,
    /// The last segment that must be applied.
    pub redo_to: u64,
    /// The size of the copy, in bytes.
    pub bytes: u64,
    /// The SHA-256 of the copy, in lower-case hex.
    pub sha256: String,
}

impl Base {
    /// When it was complete.
    pub fn completed(&self) -> Timestamp {
        Timestamp::parse_rfc3339(&self.until).unwrap_or_default()
    }

    /// Everything that was acknowledged before is in it.
    pub(super) fn complete_until(&self) -> Timestamp {
        Timestamp::parse_rfc3339(&self.complete_until).unwrap_or_default()
    }

    pub(super) fn of(text: &[u8], name: &str) -> Result<Self, BackupError> {
        let base: Self = serde_json::from_slice(text)
            .map_err(|error| BackupError::Damaged(format!("{name} does not describe a base: {error}")))?;
        if base.format > FORMAT {
            return Err(BackupError::Refused(format!(
                "{name} has format {}, and this program knows {FORMAT}: use the program of version {} or newer",
                base.format, base.version
            )));
        }
        Ok(base)
    }
}

/// A run of segments without a gap, and the bases within.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Generation {
    /// Its name, which begins with its time.
    pub name: String,
    /// The complete bases, oldest first: their names and what they say.
    pub bases: Vec<(String, Base)>,
    /// The names of the bases without a description.
    pub(super) partial_bases: Vec<String>,
    /// The segments, in their order.
    pub segments: Vec<SegmentName>,
}

/// The way to a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The generation.
    pub generation: String,
    /// The name of the base.
    pub base_name: String,
    /// The base.
    pub base: Base,
    /// The segments to apply, in this order.
    pub segments: Vec<SegmentName>,
    /// No commit after this time is in them.
    pub until: Timestamp,
}

/// Sorts the names of an archive's files by generation. The bases have no descriptions yet.
fn generations(names: &[String]) -> (Vec<Generation>, Vec<(usize, String)>) {
    let mut found: BTreeMap<&str, Generation> = BTreeMap::new();
    let mut described: Vec<(&str, String)> = Vec::new();
    for name in names {
        let words: Vec<&str> = name.split('/').collect();
        let [FOLDER, generation, kind, rest @ ..] = words.as_slice() else { continue };
        let entry = found.entry(generation).or_default();
        match (*kind, rest) {
            ("segments", [segment]) => entry.segments.extend(SegmentName::parse(segment)),
            ("bases", [base, BASE_FILE]) => described.push((generation, (*base).to_owned())),
            ("bases", [base, file]) if file.starts_with(DATA_FILE) => {
                entry.partial_bases.push((*base).to_owned());
            }
            _ => {}
        }
    }
    let mut generations = Vec::new();
    let mut bases = Vec::new();
    for (index, (name, mut generation)) in found.into_iter().enumerate() {
        let own = described.iter().filter(|(of, _)| *of == name).map(|(_, base)| base.clone());
        let mut own: Vec<_> = own.collect();
        own.sort();
        generation.partial_bases.retain(|base| !own.contains(base));
        bases.extend(own.into_iter().map(|base| (index, base)));
        generation.segments.sort();
        name.clone_into(&mut generation.name);
        generations.push(generation);
    }
    (generations, bases)
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
        // An archiver may delete an old base meanwhile.
        let Some(description) = place.get(&file).await? else { continue };
        generation.bases.push((name, Base::of(&description, &file)?));
    }
    Ok(found)
}

/// The segments that follow each other from a number on, each with a time of `at` or before. The rest is the
/// number of the first segment that is missing, if a later one is there.
fn run_from(segments: &[SegmentName], from: u64, at: Timestamp) -> (Vec<SegmentName>, Option<u64>) {
    let (mut run, mut next, mut best) = (Vec::new(), from, None::<SegmentName>);
    for segment in segments {
        while segment.first > next {
            let Some(found) = best.take() else { break };
            run.push(found);
            next = found.last + 1;
        }
        // An interrupted upload may have left a segment that a longer one has, too.
        let is_longer = segment.last >= best.map_or(next, |best| best.last + 1);
        if segment.first <= next && is_longer && segment.until <= at {
            best = Some(*segment);
        }
    }
    if let Some(found) = best {
        run.push(found);
        next = found.last + 1;
    }
    let is_there = segments.iter().any(|segment| segment.first <= next && next <= segment.last);
    let is_later = segments.iter().any(|segment| segment.first > next);
    (run, (is_later && !is_there).then_some(next))
}

/// The last time that can be reached with a base, and the first missing segment after it.
fn reach(generation: &Generation, base: &Base, at: Timestamp) -> (Plan, Option<u64>) {
    let (segments, missing) = run_from(&generation.segments, base.redo_from, at);
    let until = segments.last().map_or_else(|| base.completed(), |last| last.until.max(base.completed()));
    let (name, base) = (generation.name.clone(), base.clone());
    (Plan { generation: name, base_name: String::new(), base, segments, until }, missing)
}

/// The way to the last time of an archive that is `at` or before.
///
/// # Errors
/// [`BackupError::Refused`] if the archive begins later, [`BackupError::Damaged`] if a segment is
/// missing. The sentence names a time that can be reached.
pub(super) fn plan(generations: &[Generation], at: Timestamp) -> Result<Plan, BackupError> {
    let all = generations.iter().flat_map(|each| each.bases.iter().map(move |base| (each, base)));
    let usable = all.clone().filter(|(_, (_, base))| base.completed() <= at);
    let Some((generation, (base_name, base))) = usable.max_by_key(|(_, (_, base))| base.completed()) else {
        let first = all.map(|(_, (_, base))| base.completed()).min();
        return Err(BackupError::Refused(match first {
            None => "the archive has no complete base yet, so nothing can be restored from it".to_owned(),
            Some(first) => {
                format!("the archive begins at {}: no earlier time can be reached", first.rfc3339())
            }
        }));
    };
    let (plan, missing) = reach(generation, base, at);
    let plan = Plan { base_name: base_name.clone(), ..plan };
    let is_whole = plan.segments.last().map_or(base.redo_from - 1, |last| last.last) >= base.redo_to;
    if !is_whole {
        let earlier =
            generations.iter().flat_map(|each| each.bases.iter().map(move |(_, base)| (each, base)));
        let earlier = earlier.filter(|(_, other)| other.completed() < base.completed());
        let last = earlier.map(|(each, other)| reach(each, other, base.completed()).0.until).max();
        let missing = missing.unwrap_or_else(|| plan.segments.last().map_or(base.redo_from, |s| s.last + 1));
        return Err(BackupError::Damaged(format!(
            "the segment {missing} of the generation {} is missing, without which its base of {} is not whole: {}",
            generation.name,
            base.until,
            last.map_or_else(
                || "no time can be reached".to_owned(),
                |last| format!("the last time before that can be reached is {}", last.rfc3339())
            )
        )));
    }
    match missing {
        Some(number) if plan.until < at => Err(BackupError::Damaged(format!(
            "the segment {number} of the generation {} is missing: the last time that can be reached is {}",
            generation.name,
            plan.until.rfc3339()
        ))),
        _ => Ok(plan),
    }
}

/// The last time that a generation reaches, if it has a base.
pub(super) fn reaches(generation: &Generation) -> Option<(Timestamp, Timestamp)> {
    let first = generation.bases.first().map(|(_, base)| base.completed())?;
    let last =
        generation.bases.iter().map(|(_, base)| reach(generation, base, Timestamp::LAST).0.until).max()?;
    Some((first, last))
}

/// What of an archive is no longer needed to reach the times since `oldest`: bases by generation and name,
/// segments by generation, and incomplete bases. The newest base, and what belongs to it, stays.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Surplus {
    /// Bases, by generation and name.
    pub bases: Vec<(String, String)>,
    /// Segments, by generation.
    pub segments: Vec<(String, SegmentName)>,
}

/// Finds what is old.
pub(super) fn surplus(generations: &[Generation], oldest: Timestamp) -> Surplus {
    let mut all: Vec<_> = generations
        .iter()
        .flat_map(|each| {
            each.bases.iter().map(move |(name, base)| (base.completed(), each.name.as_str(), name, base))
        })
        .collect();
    all.sort_by_key(|(completed, ..)| *completed);
    // The last base before `oldest` leads to the first times after it.
    let kept_from = all.iter().rposition(|(completed, ..)| *completed <= oldest).unwrap_or(0);
    let (old, kept) = all.split_at(kept_from);
    let mut surplus = Surplus::default();
    let named =
        |(_, generation, name, _): &(_, &str, &String, _)| ((*generation).to_owned(), (*name).clone());
    surplus.bases.extend(old.iter().map(named));
    for generation in generations {
        let needed = kept.iter().filter(|(_, of, ..)| *of == generation.name);
        let first = needed.map(|(.., base)| base.redo_from).min();
        // A generation without a base may be about to get one, unless a later one has one already.
        let is_over = kept.iter().any(|(_, of, ..)| *of > generation.name.as_str());
        let is_old = |segment: &&SegmentName| first.map_or(is_over, |first| segment.last < first);
        let segments = generation.segments.iter().filter(is_old);
        surplus.segments.extend(segments.map(|segment| (generation.name.clone(), *segment)));
        let newest = generation.bases.last().map(|(name, _)| name);
        let interrupted = generation
            .partial_bases
            .iter()
            .filter(|base| is_over || newest.is_some_and(|newest| *base < newest));
        surplus.bases.extend(interrupted.map(|base| (generation.name.clone(), base.clone())));
    }
    surplus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn segment(first: u64, last: u64, until: i64) -> SegmentName {
        SegmentName { first, last, until: at(until) }
    }

    fn base(until: i64, redo_from: u64, redo_to: u64) -> (String, Base) {
        let base = Base {
            format: FORMAT,
            version: String::new(),
            started_at: String::new(),
            complete_until: String::new(),
            until: at(until).rfc3339(),
            redo_from,
            redo_to,
            bytes: 0,
            sha256: String::new(),
        };
        (format!("base-{until}"), base)
    }

    fn generation(name: &str, bases: &[(String, Base)], segments: &[SegmentName]) -> Generation {
        Generation {
            name: name.to_owned(),
            bases: bases.to_vec(),
            segments: segments.to_vec(),
            partial_bases: Vec::new(),
        }
    }

    fn failure(generations: &[Generation], time: i64) -> String {
        plan(generations, at(time)).unwrap_err().to_string()
    }

    #[test]
    fn a_plan_takes_the_newest_base_and_every_segment_up_to_the_time() {
        let segments: Vec<_> = (1..=9).map(|n| segment(n, n, n as i64 * 10)).collect();
        let one = generation("a", &[base(25, 1, 2), base(65, 4, 6)], &segments);
        let archive = [one];
        assert!(failure(&archive, 24).contains("begins at 1970-01-01T00:00:25.000Z"));
        for (time, from, to, until) in
            [(25, 1, 2, 25), (39, 1, 3, 30), (64, 1, 6, 60), (65, 4, 6, 65), (79, 4, 7, 70), (999, 4, 9, 90)]
        {
            let plan = plan(&archive, at(time)).unwrap();
            let numbers: Vec<_> = plan.segments.iter().map(|segment| segment.first).collect();
            assert_eq!((numbers, plan.until), ((from..=to).collect(), at(until)), "{time}");
        }
        assert!(failure(&[], 1).contains("no complete base"));
    }

    #[test]
    fn a_gap_is_named_with_the_last_time_before_it() {
        let mut segments: Vec<_> = (1..=9).map(|n| segment(n, n, n as i64 * 10)).collect();
        segments.remove(4);
        let gone = [generation("a", &[base(25, 1, 2)], &segments)];
        assert_eq!(plan(&gone, at(40)).unwrap().segments.len(), 4);
        for time in [41, 60, 999] {
            let words = failure(&gone, time);
            assert!(words.contains("segment 5 of the generation a is missing"), "{words}");
            assert!(words.contains("1970-01-01T00:00:40.000Z"), "{words}");
        }
        let broken = [generation("a", &[base(25, 1, 2), base(65, 4, 6)], &segments)];
        let words = failure(&broken, 70);
        assert!(words.contains("segment 5") && words.contains("00:00:40"), "{words}");
    }

    #[test]
    fn segments_that_overlap_are_read_once() {
        let segments = [segment(1, 2, 20), segment(1, 4, 40), segment(5, 5, 50)];
        let archive = [generation("a", &[base(15, 1, 1)], &segments)];
        assert_eq!(plan(&archive, at(30)).unwrap().segments, [segments[0]]);
        assert_eq!(plan(&archive, at(60)).unwrap().segments, [segments[1], segments[2]]);
    }

    #[test]
    fn what_a_kill_left_beside_a_longer_segment_is_never_applied_after_it() {
        let segments = [
            (1, 1, 10),
            (2, 6, 60),
            (3, 3, 30),
            (4, 9, 90),
            (5, 5, 50),
            (6, 6, 60),
            (8, 8, 80),
            (10, 10, 100),
        ];
        let mut segments = segments.map(|(first, last, until)| segment(first, last, until)).to_vec();
        segments.sort();
        // The base begins within one of them, and ends within another.
        let archive = [generation("a", &[base(92, 3, 8)], &segments)];
        let spans = |time| {
            let plan = plan(&archive, at(time)).unwrap();
            plan.segments.iter().map(|segment| (segment.first, segment.last)).collect::<Vec<_>>()
        };
        assert_eq!(spans(95), [(2, 6), (4, 9)]);
        assert_eq!(spans(999), [(2, 6), (4, 9), (10, 10)]);
        // The segments that the base needs are not old, though they begin before it.
        let old = surplus(&archive, at(95));
        assert_eq!(old.segments.iter().map(|(_, name)| name.first).collect::<Vec<_>>(), [1]);
        let words = failure(&[generation("a", &[base(92, 3, 8)], &segments[..3])], 999);
        assert!(words.contains("segment 7 of the generation a is missing"), "{words}");
    }

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
    }

    #[test]
    fn names_are_sorted_by_generation() {
        let names = [
            "archive/g/segments/.partial",
            "archive/g/segments/000000000001-000000000001-20261126T100000.000Z.segment",
            "archive/g/bases/x/stagedoor.db.partial",
            "archive/g/bases/y/stagedoor.db",
            "archive/g/bases/y/base.json",
            "archive/g/other",
            "elsewhere",
        ];
        let (found, bases) = generations(&names.map(str::to_owned));
        assert_eq!((found.len(), bases), (1, vec![(0, "y".to_owned())]));
        assert_eq!((found[0].segments.len(), found[0].partial_bases.as_slice()), (1, &["x".to_owned()][..]));
    }
}

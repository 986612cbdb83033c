//! Which times of an archive can be reached, with what, and where it has holes.

use domain::Timestamp;
use store::log_archive::SegmentName;

use super::catalog::{Base, Generation};
use crate::BackupError;

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
    /// What of the wanted time cannot be reached.
    pub hole: Option<Hole>,
}

/// A part of the wanted time that cannot be reached, from the end of what can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The segment that is missing, if it is known that one was there.
    pub missing: Option<u64>,
    /// The first time after the hole that can be reached; `None` if there is none.
    pub again: Option<Timestamp>,
}

impl Plan {
    /// Everything that was committed before is in it, by the names alone: each segment begins after the end
    /// of the one before it.
    pub fn complete_until(&self) -> Timestamp {
        let before_last = self.segments.iter().rev().nth(1).map(|segment| segment.until);
        before_last.unwrap_or_default().max(self.base.complete_until())
    }
}

/// What is left of a generation from its newest base that can be used to the last segment that was brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chain {
    /// Everything, from the base that was complete at this time.
    Whole(Timestamp),
    /// Every segment that a new base needs, and no base.
    NoBase,
    /// This segment is missing.
    Broken(u64),
}

/// The segments that follow each other from a number on, each with a time of `at` or before, and the number
/// after them.
fn run_from(segments: &[SegmentName], from: u64, at: Timestamp) -> (Vec<SegmentName>, u64) {
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
    (run, next)
}

/// Whether the segments that a base needs are there.
pub(super) fn is_whole(generation: &Generation, base: &Base) -> bool {
    run_from(&generation.segments, base.redo_from, Timestamp::LAST).1 > base.redo_to
}

/// The whole bases of a generation, oldest first.
pub(super) fn whole_bases(generation: &Generation) -> impl DoubleEndedIterator<Item = &(String, Base)> {
    generation.bases.iter().filter(|(_, base)| is_whole(generation, base))
}

/// The way to the last time that can be reached with a base, and the first segment that is missing after it.
fn reach(generation: &Generation, (name, base): &(String, Base), at: Timestamp) -> Plan {
    let (segments, next) = run_from(&generation.segments, base.redo_from, at);
    let until = segments.last().map_or_else(|| base.completed(), |last| last.until.max(base.completed()));
    let is_there = generation.segments.iter().any(|segment| segment.first <= next && next <= segment.last);
    let is_later = generation.segments.iter().any(|segment| segment.first > next);
    let hole = (is_later && !is_there).then_some(Hole { missing: Some(next), again: None });
    let (generation, base_name, base) = (generation.name.clone(), name.clone(), base.clone());
    Plan { generation, base_name, base, segments, until, hole }
}

/// The way to the last time of an archive that is `at` or before, or to its last one.
///
/// # Errors
/// [`BackupError::Refused`] if the archive begins later, [`BackupError::Damaged`] if no base is whole.
pub(super) fn plan(generations: &[Generation], at: Option<Timestamp>) -> Result<Plan, BackupError> {
    let limit = at.unwrap_or(Timestamp::LAST);
    let whole = || generations.iter().flat_map(|each| whole_bases(each).map(move |base| (each, base)));
    let first = whole().map(|(_, (_, base))| base.completed()).min().ok_or_else(|| no_base(generations))?;
    let usable = whole().filter(|(_, (_, base))| base.completed() <= limit);
    let best = usable.map(|(generation, base)| reach(generation, base, limit));
    let Some(best) = best.max_by_key(|plan| (plan.until, plan.base.completed())) else {
        return Err(BackupError::Refused(format!(
            "the archive begins at {}: no earlier time can be reached",
            first.rfc3339()
        )));
    };
    let later = whole().map(|(_, (_, base))| base.completed()).filter(|completed| *completed > limit);
    let again = later.min();
    let is_reached = at.is_some_and(|at| best.until >= at);
    let missing = best.hole.as_ref().and_then(|hole| hole.missing).filter(|_| !is_reached);
    // The generation ended at an unknown time after its last segment.
    let is_over = match at {
        Some(at) => best.until < at && is_over(generations, &best, at),
        None => has_lost_bases(generations, &best),
    };
    let hole = (missing.is_some() || is_over).then_some(Hole { missing, again });
    Ok(Plan { hole, ..best })
}

/// Whether a time is after the last segment of a plan's generation, and another generation follows it.
fn is_over(generations: &[Generation], plan: &Plan, at: Timestamp) -> bool {
    let of_plan = generations.iter().filter(|each| each.name == plan.generation);
    let goes_on = of_plan.flat_map(|each| &each.segments).any(|segment| segment.until > at);
    !goes_on && generations.iter().any(|each| each.name > plan.generation)
}

/// Whether there are later bases than the end of a plan. None of them is whole, or can be read.
fn has_lost_bases(generations: &[Generation], plan: &Plan) -> bool {
    let is_unread = |each: &Generation| each.name > plan.generation && !each.problems.is_empty();
    if generations.iter().any(is_unread) {
        return true;
    }
    generations.iter().flat_map(|each| &each.bases).any(|(_, base)| base.completed() > plan.until)
}

/// Why nothing can be restored.
fn no_base(generations: &[Generation]) -> BackupError {
    let bases = generations.iter().flat_map(|each| each.bases.iter().map(move |(_, base)| (each, base)));
    let Some((generation, base)) = bases.max_by_key(|(_, base)| base.completed()) else {
        return BackupError::Refused(
            "the archive has no complete base yet, so nothing can be restored from it".to_owned(),
        );
    };
    let missing = run_from(&generation.segments, base.redo_from, Timestamp::LAST).1;
    BackupError::Damaged(format!(
        "the segment {missing} of the generation {} is missing, without which its base of {} is not whole: no time \
         can be reached",
        generation.name, base.until
    ))
}

/// The stretches of time that a generation reaches, in their order.
pub(super) fn stretches(generation: &Generation) -> Vec<(Timestamp, Timestamp)> {
    let mut found: Vec<(Timestamp, Timestamp)> = Vec::new();
    for base in whole_bases(generation) {
        let (from, until) = (base.1.completed(), reach(generation, base, Timestamp::LAST).until);
        match found.last_mut() {
            Some((_, last)) if from <= *last => *last = until.max(*last),
            _ => found.push((from, until)),
        }
    }
    found
}

/// What is left of a generation of which the segments up to `brought` were brought to the archive. A new
/// base would need the segments from `redo_from` on.
pub(super) fn chain(generation: &Generation, redo_from: u64, brought: u64) -> Chain {
    let after = |from| run_from(&generation.segments, from, Timestamp::LAST).1;
    let base = whole_bases(generation).rev().find(|(_, base)| after(base.redo_from) > brought);
    match (base, after(redo_from)) {
        (Some((_, base)), _) => Chain::Whole(base.completed()),
        (None, next) if next > brought => Chain::NoBase,
        (None, missing) => Chain::Broken(missing),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::catalog::FORMAT;
    use super::*;

    pub fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    pub fn segment(first: u64, last: u64, until: i64) -> SegmentName {
        SegmentName { first, last, until: at(until) }
    }

    pub fn base(until: i64, redo_from: u64, redo_to: u64) -> (String, Base) {
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
            store_id: None,
        };
        (format!("base-{until}"), base)
    }

    pub fn generation(name: &str, bases: &[(String, Base)], segments: &[SegmentName]) -> Generation {
        Generation {
            name: name.to_owned(),
            store_id: Some("own".to_owned()),
            bases: bases.to_vec(),
            segments: segments.to_vec(),
            ..Generation::default()
        }
    }

    fn failure(generations: &[Generation], time: i64) -> String {
        plan(generations, Some(at(time))).unwrap_err().to_string()
    }

    /// Segments of ten seconds each, without some.
    fn segments(without: &[u64]) -> Vec<SegmentName> {
        (1..=9).filter(|n| !without.contains(n)).map(|n| segment(n, n, n as i64 * 10)).collect()
    }

    #[test]
    fn a_plan_takes_the_newest_base_and_every_segment_up_to_the_time() {
        let one = generation("a", &[base(25, 1, 2), base(65, 4, 6)], &segments(&[]));
        let archive = [one];
        assert!(failure(&archive, 24).contains("begins at 1970-01-01T00:00:25.000Z"));
        for (time, from, to, until) in
            [(25, 1, 2, 25), (39, 1, 3, 30), (64, 1, 6, 60), (65, 4, 6, 65), (79, 4, 7, 70), (999, 4, 9, 90)]
        {
            let plan = plan(&archive, Some(at(time))).unwrap();
            let numbers: Vec<_> = plan.segments.iter().map(|segment| segment.first).collect();
            assert_eq!((numbers, plan.until), ((from..=to).collect(), at(until)), "{time}");
            assert_eq!(plan.hole, None, "{time}: nothing is missing, and the generation goes on");
        }
        assert!(failure(&[], 1).contains("no complete base"));
    }

    #[test]
    fn a_hole_is_named_with_the_time_after_it() {
        // What is reached, which segment is missing, and the first time after the hole.
        type Expected = Option<(Option<u64>, Option<i64>)>;
        let gone = [generation("a", &[base(25, 1, 2)], &segments(&[5]))];
        let again = [generation("a", &[base(25, 1, 2), base(75, 6, 7)], &segments(&[5]))];
        let broken = [generation("a", &[base(25, 1, 2), base(65, 4, 6)], &segments(&[5]))];
        let over = [
            generation("a", &[base(25, 1, 2)], &segments(&[8, 9])),
            generation("b", &[base(95, 1, 1)], &[segment(1, 1, 94)]),
        ];
        let no_base = [over[0].clone(), generation("b", &[], &[segment(1, 1, 94)])];
        let cases: &[(&[Generation], Option<i64>, i64, Expected)] = &[
            (&gone, Some(40), 40, None),
            (&gone, Some(41), 40, Some((Some(5), None))),
            (&gone, None, 40, Some((Some(5), None))),
            (&again, Some(70), 40, Some((Some(5), Some(75)))),
            (&again, Some(75), 75, None),
            (&again, None, 90, None),
            // The newest base is not whole, so an older one is used.
            (&broken, Some(70), 40, Some((Some(5), None))),
            (&over, Some(69), 60, None),
            (&over, Some(71), 70, Some((None, Some(95)))),
            (&over, Some(95), 95, None),
            (&over, None, 95, None),
            (&no_base, Some(71), 70, Some((None, None))),
            (&no_base, None, 70, None),
        ];
        for (index, (archive, time, until, hole)) in cases.iter().enumerate() {
            let plan = plan(archive, time.map(at)).unwrap();
            let found = plan.hole.as_ref().map(|hole| (hole.missing, hole.again));
            let expected = hole.map(|(missing, again)| (missing, again.map(at)));
            assert_eq!((plan.until, found), (at(*until), expected), "{index}: {time:?}");
        }
        let words = failure(&[generation("a", &[base(65, 4, 6)], &segments(&[5]))], 70);
        assert!(words.contains("segment 5 of the generation a is missing"), "{words}");
    }

    #[test]
    fn only_what_can_be_reached_is_listed_and_is_a_chain() {
        let two = |without: &[u64]| generation("a", &[base(25, 1, 2), base(65, 4, 6)], &segments(without));
        for (without, stretches_of, expected) in [
            (&[][..], vec![(25, 90)], Chain::Whole(at(65))),
            (&[3], vec![(25, 25), (65, 90)], Chain::Whole(at(65))),
            (&[5], vec![(25, 40)], Chain::NoBase),
            (&[8], vec![(25, 70)], Chain::Broken(8)),
            (&[9], vec![(25, 80)], Chain::Broken(9)),
            (&[1, 5], vec![], Chain::NoBase),
        ] {
            let generation = two(without);
            let found: Vec<_> = stretches_of.into_iter().map(|(from, to)| (at(from), at(to))).collect();
            assert_eq!(stretches(&generation), found, "{without:?}");
            assert_eq!(chain(&generation, 7, 9), expected, "{without:?}");
        }
        assert_eq!(chain(&generation("a", &[], &[]), 1, 0), Chain::NoBase, "it has just begun");
        assert_eq!(chain(&generation("a", &[], &[]), 1, 1), Chain::Broken(1));
    }

    #[test]
    fn segments_that_overlap_are_read_once() {
        let segments = [segment(1, 2, 20), segment(1, 4, 40), segment(5, 5, 50)];
        let archive = [generation("a", &[base(15, 1, 1)], &segments)];
        assert_eq!(plan(&archive, Some(at(30))).unwrap().segments, [segments[0]]);
        assert_eq!(plan(&archive, None).unwrap().segments, [segments[1], segments[2]]);
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
            let plan = plan(&archive, time).unwrap();
            plan.segments.iter().map(|segment| (segment.first, segment.last)).collect::<Vec<_>>()
        };
        assert_eq!(spans(Some(at(95))), [(2, 6), (4, 9)]);
        assert_eq!(spans(None), [(2, 6), (4, 9), (10, 10)]);
        let words = failure(&[generation("a", &[base(92, 3, 8)], &segments[..3])], 999);
        assert!(words.contains("segment 7 of the generation a is missing"), "{words}");
    }
}

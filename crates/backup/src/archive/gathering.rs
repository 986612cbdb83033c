//! Which segments of the spool become one object of the archive, and when. Under load there are several
//! segments a second, and an object store is paid for each object.

use std::time::Duration;

use domain::Timestamp;
use store::log_archive::{MERGED_PARTS_MAX, SegmentName, SpooledSegment};

/// The longest time that segments are merged over: a time can be reached to within it.
const STRETCH_MAX: Duration = Duration::from_secs(5);
/// Maximum number of bytes that are merged.
const MERGED_BYTES_MAX: u64 = 128 << 20;

/// Gathers segments into objects.
#[derive(Debug)]
pub(super) struct Gathering {
    /// The longest time of the log in one object, in milliseconds.
    stretch_ms: i64,
    /// The last segment that was brought to the archive, and its generation.
    brought: Option<(String, SegmentName)>,
}

impl Gathering {
    /// With the longest time between two segments: nothing waits for longer because of others.
    pub fn new(every: Duration) -> Self {
        let stretch_ms = i64::try_from(every.min(STRETCH_MAX).as_millis()).unwrap_or(i64::MAX);
        Self { stretch_ms, brought: None }
    }

    /// How many of the first segments of the spool become one object now: 0 while more are waited for. No
    /// segment waits when the stretch of the log that its object covers is as long as it may be.
    pub fn due(&self, spool: &[SpooledSegment], now: Timestamp) -> usize {
        let (count, may_grow) = self.together(spool);
        let is_waited_for = may_grow && self.begin(spool).is_some_and(|begin| self.covers(begin, now));
        if is_waited_for { 0 } else { count }
    }

    /// How many of the first segments of the spool become one object, and whether others may follow that
    /// belong to it.
    pub fn together(&self, spool: &[SpooledSegment]) -> (usize, bool) {
        let begin = self.begin(spool);
        let fits =
            |segment: &SpooledSegment| begin.is_some_and(|begin| self.covers(begin, segment.name.until));
        let Some(first) = spool.first() else { return (0, false) };
        if !fits(first) {
            return (1, false);
        }
        let mut bytes = first.bytes;
        for (index, pair) in spool.windows(2).enumerate() {
            let [before, next] = pair else { break };
            bytes += next.bytes;
            let belongs = follows(&before.generation, &before.name, next)
                && before.name.until <= next.name.until
                && fits(next)
                && bytes <= MERGED_BYTES_MAX
                && index + 1 < MERGED_PARTS_MAX;
            if !belongs {
                return (index + 1, false);
            }
        }
        (spool.len(), true)
    }

    /// The archive has this segment, and all before it.
    pub fn note(&mut self, last: &SpooledSegment) {
        self.brought = Some((last.generation.clone(), last.name));
    }

    /// When the log of the first segment begins; `None` if that is not known.
    fn begin(&self, spool: &[SpooledSegment]) -> Option<Timestamp> {
        let (generation, brought) = self.brought.as_ref()?;
        follows(generation, brought, spool.first()?).then_some(brought.until)
    }

    /// Whether an object that begins at a time may cover another one. The clock may have been set back.
    fn covers(&self, begin: Timestamp, at: Timestamp) -> bool {
        begin <= at && at <= begin.plus_ms(self.stretch_ms)
    }
}

fn follows(generation: &str, before: &SegmentName, next: &SpooledSegment) -> bool {
    generation == next.generation && before.last + 1 == next.name.first
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(8);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn segment(number: u64, until: i64) -> SpooledSegment {
        let name = SegmentName { first: number, last: number, until: at(until) };
        SpooledSegment { generation: "g".to_owned(), name, path: "p".into(), bytes: 1 << 20 }
    }

    /// After segment 1, which was read at 1,000 ms.
    fn gathering(every: Duration) -> Gathering {
        let mut gathering = Gathering::new(every);
        gathering.note(&segment(1, 1_000));
        gathering
    }

    #[test]
    fn an_object_covers_five_seconds_and_none_waits_for_longer() {
        let spool: Vec<_> = (2..=12).map(|n| segment(n, n as i64 * 1_000)).collect();
        let gathering = gathering(EVERY);
        assert_eq!(gathering.due(&[], at(9_999)), 0);
        for count in 1..=5 {
            assert_eq!(gathering.due(&spool[..count], at(6_000)), 0, "{count}: more may follow");
            assert_eq!(gathering.due(&spool[..count], at(6_001)), count);
            assert_eq!(gathering.due(&spool[..count], at(999)), count, "the clock was set back");
        }
        assert_eq!(gathering.due(&spool, at(2_000)), 5, "the rest does not belong to it");
        let late = [segment(2, 6_001)];
        assert_eq!(gathering.due(&late, at(6_001)), 1);
    }

    #[test]
    fn a_shorter_time_between_segments_is_one_between_objects() {
        let spool = [segment(2, 1_400), segment(3, 1_900), segment(4, 2_100)];
        let gathering = gathering(Duration::from_secs(1));
        assert_eq!(gathering.due(&spool[..2], at(2_000)), 0);
        assert_eq!(gathering.due(&spool[..2], at(2_001)), 2);
        assert_eq!(gathering.due(&spool, at(2_000)), 2);
    }

    #[test]
    fn only_what_follows_without_a_gap_is_merged() {
        let first = segment(2, 1_100);
        let elsewhere = SpooledSegment { generation: "h".to_owned(), ..segment(3, 1_200) };
        let large = SpooledSegment { bytes: MERGED_BYTES_MAX, ..segment(3, 1_200) };
        for next in [segment(4, 1_200), segment(3, 1_099), elsewhere, large] {
            assert_eq!(gathering(EVERY).due(&[first.clone(), next], at(1_200)), 1);
        }
        let many: Vec<_> = (2..200).map(|n| segment(n, 1_100)).collect();
        assert_eq!(gathering(EVERY).due(&many, at(1_200)), MERGED_PARTS_MAX);
        // What was archived before is not known, so neither is how long the log of the first one is.
        assert_eq!(Gathering::new(EVERY).due(&many, at(1_200)), 1);
        assert_eq!(gathering(EVERY).due(&many[1..], at(1_200)), 1);
    }
}

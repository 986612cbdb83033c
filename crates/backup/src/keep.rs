//! Which backups of a store stay when old ones are deleted.

use std::num::NonZeroU32;

use domain::Timestamp;
use domain::limits::DAY_MS;

/// The rules. What one of them keeps stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepRules {
    /// The newest ones.
    pub last: Option<NonZeroU32>,
    /// The newest one of each day that has one, for the newest days.
    pub daily: Option<NonZeroU32>,
    /// The newest one of each week that has one, for the newest weeks.
    pub weekly: Option<NonZeroU32>,
}

impl KeepRules {
    /// Whether nothing is deleted.
    pub fn keep_all(&self) -> bool {
        *self == Self::default()
    }

    /// The backups that no rule keeps, by their positions in the list of their times. The newest one always
    /// stays. Days and weeks are those of UTC, and weeks begin on Monday.
    pub fn surplus(&self, taken_at: &[Timestamp]) -> Vec<usize> {
        if self.keep_all() {
            return Vec::new();
        }
        let mut newest_first: Vec<usize> = (0..taken_at.len()).collect();
        newest_first.sort_by_key(|index| std::cmp::Reverse((taken_at[*index], *index)));
        let mut kept: Vec<usize> = newest_first.first().copied().into_iter().collect();
        /// The period of a backup, by its place among the newest and its time.
        type Period = fn(usize, Timestamp) -> i64;
        let rules: [(Option<NonZeroU32>, Period); 3] = [
            (self.last, |place, _| place as i64),
            (self.daily, |_, at| day(at)),
            (self.weekly, |_, at| week(at)),
        ];
        for (count, period) in rules {
            let (mut left, mut last) = (count.map_or(0, NonZeroU32::get), None);
            for (place, index) in newest_first.iter().enumerate() {
                let period = Some(period(place, taken_at[*index]));
                if left > 0 && period != last {
                    kept.push(*index);
                    (left, last) = (left - 1, period);
                }
            }
        }
        (0..taken_at.len()).filter(|index| !kept.contains(index)).collect()
    }
}

fn day(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(DAY_MS)
}

/// The first day of the epoch was a Thursday.
fn week(at: Timestamp) -> i64 {
    (day(at) + 3).div_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 60 * 60 * 1_000;

    fn rules(last: u32, daily: u32, weekly: u32) -> KeepRules {
        let [last, daily, weekly] = [last, daily, weekly].map(NonZeroU32::new);
        KeepRules { last, daily, weekly }
    }

    /// Every hour for this number of days from Monday, 2026-11-02.
    fn hourly(days: i64) -> Vec<Timestamp> {
        let first = Timestamp::parse_rfc3339("2026-11-02T00:30:00Z").expect("a time");
        (0..days * 24).map(|hour| first.plus_ms(hour * HOUR_MS)).collect()
    }

    fn kept(rules: KeepRules, taken_at: &[Timestamp]) -> Vec<String> {
        let surplus = rules.surplus(taken_at);
        let kept = taken_at.iter().enumerate().filter(|(index, _)| !surplus.contains(index));
        kept.map(|(_, at)| at.rfc3339()[5..13].to_owned()).collect()
    }

    #[test]
    fn what_one_rule_keeps_stays() {
        let taken_at = hourly(24); // up to Wednesday, 2026-11-25
        assert_eq!(kept(rules(2, 0, 0), &taken_at), ["11-25T22", "11-25T23"]);
        assert_eq!(kept(rules(0, 3, 0), &taken_at), ["11-23T23", "11-24T23", "11-25T23"]);
        assert_eq!(kept(rules(0, 0, 3), &taken_at), ["11-15T23", "11-22T23", "11-25T23"]);
        let all = kept(rules(2, 2, 2), &taken_at);
        assert_eq!(all, ["11-22T23", "11-24T23", "11-25T22", "11-25T23"]);
        assert_eq!(kept(rules(24, 7, 4), &taken_at).len(), 24 + 6 + 2);
        assert_eq!(kept(rules(0, 0, 0), &taken_at).len(), taken_at.len(), "without a rule all stay");
    }

    #[test]
    fn days_without_a_backup_do_not_count_and_the_newest_stays() {
        let [old, older] = ["2020-01-02T00:00:00Z", "2019-05-05T00:00:00Z"]
            .map(|text| Timestamp::parse_rfc3339(text).expect("a time"));
        assert_eq!(rules(0, 2, 0).surplus(&[older, old]), [] as [usize; 0]);
        assert_eq!(rules(0, 1, 0).surplus(&[old, older]), [1], "by their times, not their places");
        assert_eq!(rules(1, 0, 0).surplus(&[old, old]), [0]);
        assert_eq!(rules(1, 1, 1).surplus(&[]), [] as [usize; 0]);
        let before_the_epoch = Timestamp::from_millis(-1);
        assert_eq!((day(before_the_epoch), week(Timestamp::from_millis(4 * DAY_MS))), (-1, 1));
    }
}

//! Points in time as people read them: "3 hours ago", with the exact time beside it.

use domain::Timestamp;
use domain::limits::{DAY_MS, HOUR_MS, MINUTE_MS};

use super::Lang;

/// After this many milliseconds a date says more than a distance: 30 days.
const DISTANCES_MS: i64 = 30 * DAY_MS;

/// A point in time on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// RFC 3339, for programs.
    pub exact: String,
    /// The date and the time in UTC, for people.
    pub full: String,
    /// The distance from now, or the date.
    pub short: String,
}

impl Moment {
    /// A moment seen from `now`.
    pub fn of(at: Timestamp, now: Timestamp, lang: Lang) -> Self {
        let exact = at.rfc3339();
        let date = exact.get(..10).unwrap_or(&exact).to_owned();
        let time = exact.get(11..16).unwrap_or_default();
        let full = format!("{date} {time} UTC");
        let short = distance(at.as_millis() - now.as_millis(), lang).unwrap_or(date);
        Self { exact, full, short }
    }

    /// The date and the time in UTC with seconds, for moments that are compared with each other.
    pub fn exact_full(&self) -> String {
        self.exact.trim_end_matches('Z').replacen('T', " ", 1) + " UTC"
    }

    /// A moment of the past that is known to the hour.
    pub fn to_the_hour(at: Timestamp, now: Timestamp, lang: Lang) -> Self {
        let mut moment = Self::of(at, now, lang);
        if now.as_millis().saturating_sub(at.as_millis()) < HOUR_MS {
            moment.short = lang.pick("한 시간 이내", "within the last hour").to_owned();
        }
        moment
    }
}

/// The distance in words; `None` when it is too long for words.
fn distance(ms: i64, lang: Lang) -> Option<String> {
    let (count, (ko, en)) = match ms.saturating_abs() {
        0..MINUTE_MS if ms > 0 => return Some(lang.pick("1분 이내", "in less than a minute").to_owned()),
        0..MINUTE_MS => return Some(lang.pick("방금", "just now").to_owned()),
        away @ MINUTE_MS..HOUR_MS => (away / MINUTE_MS, ("분", "minute")),
        away @ HOUR_MS..DAY_MS => (away / HOUR_MS, ("시간", "hour")),
        away @ DAY_MS..DISTANCES_MS => (away / DAY_MS, ("일", "day")),
        _ => return None,
    };
    let plural = if count == 1 { "" } else { "s" };
    Some(match (lang, ms < 0) {
        (Lang::Ko, true) => format!("{count}{ko} 전"),
        (Lang::Ko, false) => format!("{count}{ko} 후"),
        (Lang::En, true) => format!("{count} {en}{plural} ago"),
        (Lang::En, false) => format!("in {count} {en}{plural}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_rounded_down_to_their_largest_unit() {
        for (ms, ko, en) in [
            (0, Some("방금"), Some("just now")),
            (-59_999, Some("방금"), Some("just now")),
            (1, Some("1분 이내"), Some("in less than a minute")),
            (-MINUTE_MS, Some("1분 전"), Some("1 minute ago")),
            (-HOUR_MS + 1, Some("59분 전"), Some("59 minutes ago")),
            (-HOUR_MS, Some("1시간 전"), Some("1 hour ago")),
            (-2 * DAY_MS, Some("2일 전"), Some("2 days ago")),
            (3 * HOUR_MS, Some("3시간 후"), Some("in 3 hours")),
            (-DISTANCES_MS, None, None),
            (i64::MIN, None, None),
        ] {
            assert_eq!(distance(ms, Lang::Ko).as_deref(), ko, "{ms}");
            assert_eq!(distance(ms, Lang::En).as_deref(), en, "{ms}");
        }
    }

    #[test]
    fn a_moment_to_the_hour_names_no_minutes() {
        let now = Timestamp::from_millis(1_767_225_600_000);
        for (ago, short) in [
            (0, "within the last hour"),
            (HOUR_MS - 1, "within the last hour"),
            (HOUR_MS, "1 hour ago"),
            (-HOUR_MS, "within the last hour"),
        ] {
            assert_eq!(Moment::to_the_hour(now.plus_ms(-ago), now, Lang::En).short, short, "{ago}");
        }
    }

    #[test]
    fn a_moment_long_ago_is_a_date() {
        let at = Timestamp::from_millis(1_767_225_600_000);
        let moment = Moment::of(at, at.plus_ms(DISTANCES_MS), Lang::En);
        assert_eq!(moment.short, "2026-01-01");
        assert_eq!(moment.full, "2026-01-01 00:00 UTC");
        assert!(moment.exact.starts_with("2026-01-01T00:00:00"), "{}", moment.exact);
    }
}

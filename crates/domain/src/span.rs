//! Durations as text: `250ms`, `90s`, `15m`, `1h30m`, `36h`, `31d`, `2w`.

use std::time::Duration;

/// Maximum length of a duration: 100 years, in milliseconds.
const SPAN_MS_MAX: u64 = 36_500 * DAY_MS;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The units with their lengths in milliseconds, the longest first.
const UNITS: [(&str, u64); 6] =
    [("w", 7 * DAY_MS), ("d", DAY_MS), ("h", 60 * 60 * 1_000), ("m", 60 * 1_000), ("s", 1_000), ("ms", 1)];

/// The rule of durations, for refusals.
pub const SPAN_RULE: &str =
    "must be a duration like 250ms, 90s, 15m, 1h30m, 36h, 31d or 2w, of at most 100 years";

/// Parses a duration: numbers with their units, the longest unit first, each at most once. `None` if it
/// breaks the [`SPAN_RULE`].
pub fn parse_span(text: &str) -> Option<Duration> {
    let (mut rest, mut units, mut total_ms) = (text, UNITS.iter(), 0_u64);
    if text.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let unit = behind.bytes().take_while(u8::is_ascii_lowercase).count();
        let (unit, behind) = behind.split_at(unit);
        let (_, unit_ms) = units.find(|(name, _)| *name == unit)?;
        total_ms = number.parse::<u64>().ok()?.checked_mul(*unit_ms)?.checked_add(total_ms)?;
        rest = behind;
    }
    (total_ms <= SPAN_MS_MAX).then(|| Duration::from_millis(total_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_numbers_with_their_units() {
        for (text, ms) in [
            ("0s", Some(0)),
            ("250ms", Some(250)),
            ("90s", Some(90_000)),
            ("15m", Some(900_000)),
            ("36h", Some(129_600_000)),
            ("1h30m", Some(5_400_000)),
            ("2w", Some(1_209_600_000)),
            ("1w2d3h4m5s6ms", Some(788_645_006)),
            ("30m1h", None),
            ("1h1h", None),
            ("1h30", None),
            ("1H", None),
            ("36500d", Some(SPAN_MS_MAX)),
            ("5214w3d", None),
            ("36501d", None),
            ("99999999999999999999d", None),
            ("1.5h", None),
            ("-1s", None),
            ("1", None),
            ("s", None),
            ("", None),
            ("1 s", None),
        ] {
            assert_eq!(parse_span(text), ms.map(Duration::from_millis), "{text}");
        }
    }
}

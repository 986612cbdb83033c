//! Durations as text: `250ms`, `90s`, `15m`, `36h`, `31d`.

use std::time::Duration;

/// Maximum length of a duration: 100 years, in milliseconds.
const SPAN_MS_MAX: u64 = 36_500 * DAY_MS;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The rule of durations, for refusals.
pub const SPAN_RULE: &str = "must be a duration like 250ms, 90s, 15m, 36h or 31d, of at most 100 years";

/// Parses a duration; `None` if it breaks the [`SPAN_RULE`].
pub fn parse_span(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60 * 1_000,
        "h" => 60 * 60 * 1_000,
        "d" => DAY_MS,
        _ => return None,
    };
    let ms = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    (ms <= SPAN_MS_MAX).then(|| Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        for (text, ms) in [
            ("0s", Some(0)),
            ("250ms", Some(250)),
            ("90s", Some(90_000)),
            ("15m", Some(900_000)),
            ("36h", Some(129_600_000)),
            ("36500d", Some(SPAN_MS_MAX)),
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

//! Points in time: UTC milliseconds inside, two spellings on the wire (`docs/spec/rest.md#dates`).

use std::fmt;

use time::format_description::BorrowedFormatItem;
use time::macros::{format_description, offset};
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};

use crate::Profile;

const RFC3339_MS: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
const KOREA: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
const KST: UtcOffset = offset!(+9);

/// The first and last instants that have four-digit years, in milliseconds.
const FOUR_DIGIT_YEARS_MS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The last time that can be written: the end of the year 9999.
    pub const LAST: Self = Self(*FOUR_DIGIT_YEARS_MS.end());

    /// From milliseconds since the epoch, clamped to the years 0000 to 9999, so that it can always be
    /// written.
    pub fn from_millis(ms: i64) -> Self {
        Self(ms.clamp(*FOUR_DIGIT_YEARS_MS.start(), *FOUR_DIGIT_YEARS_MS.end()))
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This point moved by `ms` milliseconds.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self::from_millis(self.0.saturating_add(ms))
    }

    /// RFC 3339 in UTC with milliseconds and fixed width: `2026-07-18T14:32:12.345Z`.
    pub fn rfc3339(self) -> String {
        self.at(UtcOffset::UTC).format(RFC3339_MS).unwrap_or_default()
    }

    /// The spelling that a profile's clients expect of dates other than those of drops
    /// (`docs/spec/rest.md#profiles`).
    pub fn for_profile(self, profile: Profile) -> String {
        match profile {
            Profile::Documented => self.rfc3339(),
            Profile::Observed => self.at(KST).format(KOREA).unwrap_or_default(),
        }
    }

    /// Reads an RFC 3339 date with any offset; `None` for anything else.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).ok().map(Self::from_millis)
    }

    fn at(self, offset: UtcOffset) -> OffsetDateTime {
        // The constructor keeps the value inside the range, so this cannot fail.
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
            .checked_to_offset(offset)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

/// A [`Timestamp`] as its milliseconds, between nodes. [`Timestamp`] itself is not serialized, because its
/// form in JSON depends on the profile.
pub(crate) mod millis {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Timestamp;

    pub(crate) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(at.as_millis())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp::from_millis)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_two_spellings() {
        let at = Timestamp::from_millis(1_784_385_132_345);
        assert_eq!(at.rfc3339(), "2026-07-18T14:32:12.345Z");
        assert_eq!(at.for_profile(Profile::Documented), "2026-07-18T14:32:12.345Z");
        assert_eq!(at.for_profile(Profile::Observed), "2026-07-18 23:32:12");
    }

    #[test]
    fn a_date_parses_with_any_offset() {
        let check = |text, expected: Option<i64>| {
            assert_eq!(Timestamp::parse_rfc3339(text).map(Timestamp::as_millis), expected, "{text}");
        };
        check("1970-01-01T00:00:00Z", Some(0));
        check("1970-01-01T09:00:00.001+09:00", Some(1));
        check("1970-01-01 09:00:00", None);
        check("", None);
    }

    #[test]
    fn the_first_and_last_time_can_be_written() {
        for ms in [i64::MIN, -1, 0, i64::MAX] {
            let at = Timestamp::from_millis(ms);
            assert_eq!(at.rfc3339().len(), 24, "{ms}");
            assert!(!at.for_profile(Profile::Observed).is_empty() || ms == i64::MAX);
        }
    }
}

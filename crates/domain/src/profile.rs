//! The two spellings of answers, and the language of messages (`docs/spec/rest.md#profiles`,
//! `docs/spec/rest.md#language`).

use serde::{Deserialize, Serialize};

/// How answers are spelled: as the specification says, or as the modelled platform was observed to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The spelling of the specification.
    #[default]
    Documented,
    /// The spelling that published clients of the modelled platform expect.
    Observed,
}

impl Profile {
    /// The name used in the configuration, the store and the platform API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Documented => "documented",
            Self::Observed => "observed",
        }
    }

    /// The profile of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Documented, Self::Observed].into_iter().find(|profile| profile.name() == name)
    }
}

/// Maximum number of ranges of an `Accept-Language` that are read. The rest is ignored.
const ACCEPT_LANGUAGE_RANGES_MAX: usize = 20;

/// The language of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// 한국어
    #[default]
    Korean,
    /// English
    English,
}

impl Language {
    /// The language that an `Accept-Language` (RFC 9110) prefers; `None` when it names neither. Malformed
    /// ranges are skipped.
    pub fn preferred(accept_language: &str) -> Option<Self> {
        let mut best = None;
        for range in accept_language.split(',').take(ACCEPT_LANGUAGE_RANGES_MAX) {
            let mut parts = range.split(';');
            let Some(language) = parts.next().and_then(Self::from_tag) else { continue };
            let weight = parts.next().map_or(Some(1.0), quality).unwrap_or(0.0);
            // Strictly greater, so the first of two equal weights wins.
            if weight > best.map_or(0.0, |(_, most)| most) {
                best = Some((language, weight));
            }
        }
        best.map(|(language, _)| language)
    }

    /// `ko`, `ko-KR`, `EN_us`: the primary part decides.
    pub fn from_tag(tag: &str) -> Option<Self> {
        match tag.trim().split(['-', '_']).next()? {
            primary if primary.eq_ignore_ascii_case("ko") => Some(Self::Korean),
            primary if primary.eq_ignore_ascii_case("en") => Some(Self::English),
            _ => None,
        }
    }

    /// Returns one of the two texts.
    pub fn pick<T>(self, korean: T, english: T) -> T {
        match self {
            Self::Korean => korean,
            Self::English => english,
        }
    }
}

/// The number in `q=0.8`, if it is from 0 to 1.
fn quality(parameter: &str) -> Option<f32> {
    let (key, value) = parameter.split_once('=')?;
    let weight: f32 = value.trim().parse().ok()?;
    (key.trim().eq_ignore_ascii_case("q") && (0.0..=1.0).contains(&weight)).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_with_the_greatest_weight_is_preferred() {
        let check = |header: &str, expected: Option<Language>| {
            assert_eq!(Language::preferred(header), expected, "{header}");
        };
        let (korean, english) = (Some(Language::Korean), Some(Language::English));
        check("", None);
        check("en", english);
        check("EN-us", english);
        check("ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7", korean);
        check("ko;q=0.3, en;q=0.7", english);
        check("ja, en;q=0.5, *;q=0.1", english);
        check("ja", None);
        check("*", None);
        check("en;q=0", None);
        check("en;q=0.5,ko;q=0.5", english);
        check("en;q=x,;;,,q=1", None);
        check("en;q=2", None);
        check(&format!("{}en", "fr,".repeat(ACCEPT_LANGUAGE_RANGES_MAX)), None);
    }
}

//! The two ways that answers are spelled, and the language of messages (decisions 1 and 2).

use serde::{Deserialize, Serialize};

/// Whether answers follow the specification to the letter, or what the modelled platform was seen to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The specification to the letter.
    #[default]
    Documented,
    /// What published clients of the modelled platform were written against.
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

/// The language of messages that a person reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// 한국어
    #[default]
    Korean,
    /// English
    English,
}

impl Language {
    /// One of two texts.
    pub fn pick<T>(self, korean: T, english: T) -> T {
        match self {
            Self::Korean => korean,
            Self::English => english,
        }
    }
}

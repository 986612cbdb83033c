//! What the requests of applications are counted by: the scope that a call needs, else its mode.

use crate::limits::{DAY_MS, MINUTE_MS};
use crate::{Scope, Timestamp};

/// What a request of an application is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UsageKind {
    /// A call that needs this scope.
    Scope(Scope),
    /// A client-mode call that needs no scope.
    Client,
    /// A user-mode call that needs no scope.
    User,
    /// A token call.
    Token,
}

impl UsageKind {
    /// The number of kinds.
    pub const COUNT: usize = Scope::ALL.len() + 3;

    /// Every kind, in the order of [`index`](Self::index).
    pub fn all() -> impl Iterator<Item = Self> {
        Scope::ALL.into_iter().map(Self::Scope).chain([Self::Client, Self::User, Self::Token])
    }

    /// Its place among the kinds.
    pub const fn index(self) -> usize {
        match self {
            Self::Scope(scope) => scope as usize,
            Self::Client => Scope::ALL.len(),
            Self::User => Scope::ALL.len() + 1,
            Self::Token => Scope::ALL.len() + 2,
        }
    }

    /// The name in the store: the key of the scope, or the mode.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scope(scope) => scope.key(),
            Self::Client => "client",
            Self::User => "user",
            Self::Token => "token",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name() == name)
    }
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCount {
    /// All of them.
    pub requests: i64,
    /// Those that were refused, or failed.
    pub refused: i64,
}

impl RequestCount {
    /// The sum of two counts.
    pub const fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            refused: self.refused.saturating_add(other.refused),
        }
    }
}

/// The UTC day of a time, as its midnight.
pub fn day_of(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis().div_euclid(DAY_MS) * DAY_MS)
}

/// The minute of a time, as its beginning.
pub fn minute_of(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis().div_euclid(MINUTE_MS) * MINUTE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_place_and_a_name_of_its_own() {
        let kinds: Vec<_> = UsageKind::all().collect();
        assert_eq!(kinds.len(), UsageKind::COUNT);
        for (place, kind) in kinds.into_iter().enumerate() {
            assert_eq!(kind.index(), place);
            assert_eq!(UsageKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(UsageKind::from_name(""), None);
    }

    #[test]
    fn a_day_begins_at_midnight_utc() {
        for (ms, midnight) in [(0, 0), (DAY_MS - 1, 0), (DAY_MS, DAY_MS), (-1, -DAY_MS)] {
            assert_eq!(day_of(Timestamp::from_millis(ms)).as_millis(), midnight, "{ms}");
        }
        assert_eq!(minute_of(Timestamp::from_millis(2 * MINUTE_MS + 59_999)).as_millis(), 2 * MINUTE_MS);
    }
}

//! How sign-ins at a provider end, with counters.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How a sign-in at a provider ended. The names are labels of metrics, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The person is signed in.
    SignedIn,
    /// An account was made, and the person is signed in.
    Registered,
    /// The provider was linked to the account of a signed-in person.
    Linked,
    /// There is no account, and none is made.
    NoAccount,
    /// The account is barred, or the provider is linked to another account.
    Refused,
    /// The person cancelled, or the provider sent the person back with an error.
    Denied,
    /// The browser came back too late, twice, or is not the one that left.
    Expired,
    /// The provider could not be reached, or has too many sign-ins at once.
    Unavailable,
    /// The provider refused this service: its id or its secret is wrong, or the code.
    ClientRefused,
    /// The answer of the provider is wrong.
    Invalid,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 10] = [
        Self::SignedIn,
        Self::Registered,
        Self::Linked,
        Self::NoAccount,
        Self::Refused,
        Self::Denied,
        Self::Expired,
        Self::Unavailable,
        Self::ClientRefused,
        Self::Invalid,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignedIn => "signed_in",
            Self::Registered => "registered",
            Self::Linked => "linked",
            Self::NoAccount => "no_account",
            Self::Refused => "refused",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Unavailable => "unavailable",
            Self::ClientRefused => "client_refused",
            Self::Invalid => "invalid",
        }
    }
}

/// The number of each outcome.
#[derive(Debug, Default)]
pub(crate) struct Outcomes([AtomicU64; Outcome::ALL.len()]);

impl Outcomes {
    pub(crate) fn count(&self, outcome: Outcome) {
        self.0[outcome as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Outcome::ALL.into_iter().map(|outcome| (outcome.name(), self.0[outcome as usize].load(Relaxed)))
    }
}

//! Where accounts were signed in to before. Who comes from there is not held up by what strangers try
//! elsewhere.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use domain::client_address::AddressBlock;

/// Pairs of account and address kept at once, in memory alone: 2 MiB.
const PLACES_MAX: usize = 131_072;

/// Pairs of a login and an address, as keyed hashes of 64 bits. When half of the places are taken, they
/// become the older half, and what was the older half is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Places {
    hasher: RandomState,
    kept: Mutex<Halves>,
}

#[derive(Debug, Default)]
struct Halves {
    younger: HashSet<u64>,
    older: HashSet<u64>,
}

impl Places {
    /// Whether the account was signed in to from this address.
    pub(crate) fn know(&self, login: &str, block: Option<AddressBlock>) -> bool {
        let place = self.hasher.hash_one((login, block));
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.younger.contains(&place) || kept.older.contains(&place)
    }

    /// The account was signed in to from this address.
    pub(crate) fn remember(&self, login: &str, block: Option<AddressBlock>) {
        let place = self.hasher.hash_one((login, block));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.younger.len() >= PLACES_MAX / 2 {
            kept.older = std::mem::take(&mut kept.younger);
        }
        kept.younger.insert(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_pairs_and_the_oldest_are_forgotten() {
        let places = Places::default();
        let block = |n: u32| Some(AddressBlock::from(std::net::IpAddr::from(n.to_be_bytes())));
        places.remember("a", block(1));
        assert!(places.know("a", block(1)));
        assert!(!places.know("a", block(2)) && !places.know("b", block(1)) && !places.know("a", None));
        for n in 0..u32::try_from(PLACES_MAX).expect("it fits") {
            places.remember("b", block(n));
        }
        assert!(!places.know("a", block(1)) && places.know("b", block(100_000)));
        let kept = places.kept.lock().expect("not poisoned");
        assert!(kept.younger.len() + kept.older.len() <= PLACES_MAX);
    }
}

//! Known addresses: those from which an account was signed in to before. Attempts from a known address are
//! not delayed because of attempts from other addresses.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use domain::client_address::AddressBlock;

/// Maximum number of pairs of account and address, kept only in memory: 2 MiB.
const ADDRESSES_MAX: usize = 131_072;

/// Pairs of a login and an address, as keyed 64-bit hashes, in a newer and an older half. When the newer half
/// is full, it replaces the older half.
#[derive(Debug, Default)]
pub(crate) struct KnownAddresses {
    hasher: RandomState,
    halves: Mutex<Halves>,
}

#[derive(Debug, Default)]
struct Halves {
    newer: HashSet<u64>,
    older: HashSet<u64>,
}

impl KnownAddresses {
    /// Whether the account was signed in to from this address before.
    pub(crate) fn contains(&self, login: &str, block: Option<AddressBlock>) -> bool {
        let pair = self.hasher.hash_one((login, block));
        let halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        halves.newer.contains(&pair) || halves.older.contains(&pair)
    }

    /// Records that the account was signed in to from this address.
    pub(crate) fn insert(&self, login: &str, block: Option<AddressBlock>) {
        let pair = self.hasher.hash_one((login, block));
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if halves.newer.len() >= ADDRESSES_MAX / 2 {
            halves.older = std::mem::take(&mut halves.newer);
        }
        halves.newer.insert(pair);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_by_account_and_the_oldest_are_dropped() {
        let known = KnownAddresses::default();
        let block = |n: u32| Some(AddressBlock::from(std::net::IpAddr::from(n.to_be_bytes())));
        known.insert("a", block(1));
        assert!(known.contains("a", block(1)));
        assert!(
            !known.contains("a", block(2)) && !known.contains("b", block(1)) && !known.contains("a", None)
        );
        for n in 0..u32::try_from(ADDRESSES_MAX).expect("it fits") {
            known.insert("b", block(n));
        }
        assert!(!known.contains("a", block(1)) && known.contains("b", block(100_000)));
        let halves = known.halves.lock().expect("not poisoned");
        assert!(halves.newer.len() + halves.older.len() <= ADDRESSES_MAX);
    }
}

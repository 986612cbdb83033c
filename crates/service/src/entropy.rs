//! The only source of randomness.
#![allow(clippy::disallowed_methods, reason = "this is the one place that asks the system for randomness")]

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

/// A source of random bytes: the system, or a seed that makes a test repeatable. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Entropy(Option<Arc<Seeded>>);

#[derive(Debug)]
struct Seeded {
    seed: u64,
    drawn: AtomicU64,
}

/// Random bytes of the system, read in advance for many small draws, because the system call costs more than
/// the bytes. Each thread has its own pool.
struct Pool {
    bytes: [u8; POOL_BYTES],
    left: usize,
}

/// The number of bytes read from the system at once.
const POOL_BYTES: usize = 256;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], left: 0 }) };
}

impl Pool {
    /// Moves bytes out of the pool. The pool keeps no copy of them.
    fn take(&mut self, bytes: &mut [u8]) {
        if self.left < bytes.len() {
            getrandom::fill(&mut self.bytes).expect("the operating system gives randomness");
            self.left = POOL_BYTES;
        }
        let taken = &mut self.bytes[self.left - bytes.len()..self.left];
        bytes.copy_from_slice(taken);
        taken.fill(0);
        self.left -= bytes.len();
    }
}

impl Entropy {
    /// The system's randomness.
    pub fn system() -> Self {
        Self(None)
    }

    /// The same bytes in every run, for tests.
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(Seeded { seed, drawn: AtomicU64::new(0) })))
    }

    /// `N` random bytes, at most 32.
    ///
    /// # Panics
    /// When the operating system gives no random bytes. Without them nothing is safe.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        const { assert!(N <= 32) };
        let mut bytes = [0; N];
        match &self.0 {
            None => POOL.with_borrow_mut(|pool| pool.take(&mut bytes)),
            Some(seeded) => {
                let mut hash = Sha256::new();
                hash.update(seeded.seed.to_le_bytes());
                hash.update(seeded.drawn.fetch_add(1, Ordering::Relaxed).to_le_bytes());
                bytes.copy_from_slice(&hash.finalize()[..N]);
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn equal_seeds_give_equal_bytes_and_draws_differ() {
        let (one, two) = (Entropy::seeded(7), Entropy::seeded(7));
        let (first, second) = (one.bytes::<16>(), one.bytes::<16>());
        assert_eq!((first, second), (two.bytes(), two.bytes()));
        assert_ne!(first, second);
    }

    #[test]
    fn draws_from_the_system_differ_and_leave_no_copy() {
        let drawn: HashSet<[u8; 16]> = (0..1_000).map(|_| Entropy::system().bytes()).collect();
        assert_eq!(drawn.len(), 1_000);
        POOL.with_borrow(|pool| assert_eq!(pool.bytes[pool.left..], [0; POOL_BYTES][pool.left..]));
    }
}

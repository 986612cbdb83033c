//! The one source of randomness.
#![allow(clippy::disallowed_methods, reason = "this is the one place that asks the system for randomness")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

/// Where randomness comes from: the system, or a seed that makes a test repeatable. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Entropy(Option<Arc<Seeded>>);

#[derive(Debug)]
struct Seeded {
    seed: u64,
    drawn: AtomicU64,
}

impl Entropy {
    /// The system's randomness.
    pub fn system() -> Self {
        Self(None)
    }

    /// The same bytes every time, for tests.
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(Seeded { seed, drawn: AtomicU64::new(0) })))
    }

    /// `N` random bytes, at most 32.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing safe can be done without.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        const { assert!(N <= 32) };
        let mut bytes = [0; N];
        match &self.0 {
            None => getrandom::fill(&mut bytes).expect("the operating system gives randomness"),
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
    use super::*;

    #[test]
    fn a_seed_repeats_itself_but_draws_differ() {
        let (one, two) = (Entropy::seeded(7), Entropy::seeded(7));
        let (first, second) = (one.bytes::<16>(), one.bytes::<16>());
        assert_eq!((first, second), (two.bytes(), two.bytes()));
        assert_ne!(first, second);
        assert_ne!(Entropy::system().bytes::<16>(), Entropy::system().bytes::<16>());
    }
}

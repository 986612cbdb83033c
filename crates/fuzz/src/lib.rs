//! A mutating fuzzer for decoders that runs as an ordinary test, on a stable compiler.
//!
//! ```
//! fuzz::Fuzz::new("numbers")
//!     .seeds(["0", "-17"])
//!     .tokens(["e", "99999999999999999999"])
//!     .run(|input| {
//!         let number: Option<i64> = std::str::from_utf8(input).ok().and_then(|text| text.parse().ok());
//!         if let Some(number) = number {
//!             assert_eq!(number.to_string().parse(), Ok(number));
//!         }
//!         number.is_some()
//!     });
//! ```
//!
//! A target is a function of bytes. It asserts what must hold for any input, and returns an outcome: for
//! example the error, or the number of events. Inputs with a new outcome join the corpus and are mutated
//! further. So the fuzzer gets deep into a decoder without an instrumented compiler.
//!
//! An ordinary run tries the seeds, the regressions, and [`INPUTS`] mutations, always the same ones.
//! `STAGEDOOR_FUZZ_SECONDS=60` makes the run longer, and `STAGEDOOR_FUZZ_SEED=7` makes other mutations. A
//! failing input is minimized and printed as a byte string. Fix the decoder, and add the string to the
//! target's [`regressions`](Fuzz::regressions).

mod mutate;
mod watch;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use mutate::Mutator;
use watch::Watch;

/// Mutations that an ordinary run tries.
pub const INPUTS: u64 = 3_000;
/// Default of the maximum length of an input, in bytes.
pub const BYTES_MAX: usize = 4 * 1024;
/// Maximum number of inputs in the corpus.
const CORPUS_MAX: usize = 4_096;
/// Inputs between two checks of the time.
const INPUTS_PER_CHECK: u64 = 64;
/// Maximum number of attempts to minimize a failing input.
const MINIMIZE_TRIES_MAX: u32 = 2_000;

/// One target, and its inputs to begin with.
#[derive(Debug)]
pub struct Fuzz {
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    tokens: Vec<Vec<u8>>,
    bytes_max: usize,
}

impl Fuzz {
    /// A target with this name.
    pub fn new(name: &'static str) -> Self {
        Self { name, seeds: Vec::new(), tokens: Vec::new(), bytes_max: BYTES_MAX }
    }

    /// Inputs to begin with. The fuzzer finds more, the more kinds of valid input are among them.
    pub fn seeds<T: AsRef<[u8]>>(mut self, seeds: impl IntoIterator<Item = T>) -> Self {
        self.seeds.extend(seeds.into_iter().map(|seed| seed.as_ref().to_vec()));
        self
    }

    /// Inputs that failed once.
    pub fn regressions<T: AsRef<[u8]>>(self, inputs: impl IntoIterator<Item = T>) -> Self {
        self.seeds(inputs)
    }

    /// Bytes that mutations insert: separators, keywords, numbers at limits.
    pub fn tokens<T: AsRef<[u8]>>(mut self, tokens: impl IntoIterator<Item = T>) -> Self {
        self.tokens.extend(tokens.into_iter().map(|token| token.as_ref().to_vec()));
        self
    }

    /// Maximum length of an input, in bytes.
    pub fn bytes_max(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// Runs the target.
    ///
    /// # Panics
    /// When the target panics, after printing the minimized input and the seed of the run.
    pub fn run<O: Hash>(self, target: impl Fn(&[u8]) -> O) {
        let seed = setting("STAGEDOOR_FUZZ_SEED").unwrap_or_default();
        let duration = setting("STAGEDOOR_FUZZ_SECONDS").map(Duration::from_secs);
        let (watch, mut tried) = (Watch::start(), 0);
        let mut seen = HashSet::new();
        let mut corpus = if self.seeds.is_empty() { vec![Vec::new()] } else { self.seeds.clone() };
        for input in &self.seeds {
            seen.insert(self.check(seed, input, &target));
        }
        let mut mutator = self.mutator();
        let continues = |tried: u64| match duration {
            Some(duration) => !tried.is_multiple_of(INPUTS_PER_CHECK) || watch.elapsed() < duration,
            None => tried < INPUTS,
        };
        while continues(tried) {
            tried += 1;
            let input = mutator.mutated(&corpus);
            if seen.insert(self.check(seed, &input, &target)) && corpus.len() < CORPUS_MAX {
                corpus.push(input);
            }
        }
        println!("fuzz: {}: {tried} inputs, {} outcomes, seed {seed}", self.name, seen.len());
    }

    /// Endless mutations of the seeds, for a target that is not a function. They are always the same, unless
    /// `STAGEDOOR_FUZZ_SEED` is set.
    pub fn mutations(self) -> impl Iterator<Item = Vec<u8>> {
        let mut mutator = self.mutator();
        std::iter::repeat_with(move || mutator.mutated(&self.seeds))
    }

    fn mutator(&self) -> Mutator {
        let seed = setting("STAGEDOOR_FUZZ_SEED").unwrap_or_default();
        Mutator::new(seed ^ hash(&self.name), self.tokens.clone(), self.bytes_max)
    }

    /// The outcome of one input, as a hash.
    fn check<O: Hash>(&self, seed: u64, input: &[u8], target: &impl Fn(&[u8]) -> O) -> u64 {
        match catch_unwind(AssertUnwindSafe(|| target(input))) {
            Ok(outcome) => hash(&outcome),
            Err(panic) => {
                let minimal =
                    minimize(input, |input| catch_unwind(AssertUnwindSafe(|| target(input))).is_err());
                println!("fuzz: {} fails, seed {seed}: b\"{}\"", self.name, minimal.escape_ascii());
                resume_unwind(panic);
            }
        }
    }
}

/// Minimizes a failing input: removes ever smaller parts while the input still fails.
fn minimize(input: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut minimal, mut part, mut tries) = (input.to_vec(), input.len().div_ceil(2), 0);
    while part > 0 && tries < MINIMIZE_TRIES_MAX {
        let mut at = 0;
        while at < minimal.len() && tries < MINIMIZE_TRIES_MAX {
            tries += 1;
            let end = (at + part).min(minimal.len());
            let shorter = [&minimal[..at], &minimal[end..]].concat();
            if fails(&shorter) {
                minimal = shorter;
            } else {
                at = end;
            }
        }
        part /= 2;
    }
    minimal
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_fault_behind_several_steps_is_found_and_minimized() {
        let found = Mutex::new(Vec::new());
        let depth =
            |input: &[u8]| input.iter().zip(b"a{}{").take_while(|(byte, wanted)| byte == wanted).count();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            Fuzz::new("steps").seeds(["a little text"]).tokens(["{", "}"]).run(|input| {
                if depth(input) == 4 {
                    *found.lock().unwrap() = input.to_vec();
                    panic!("found");
                }
                depth(input)
            });
        }));
        assert!(ended.is_err());
        assert_eq!(*found.lock().unwrap(), b"a{}{");
    }

    #[test]
    fn a_sound_target_passes_and_inputs_keep_the_length_limit() {
        let runs = || {
            let inputs = Mutex::new(Vec::new());
            Fuzz::new("sound").bytes_max(40).seeds([[7; 40]]).run(|input| {
                assert!(input.len() <= 40);
                inputs.lock().unwrap().push(input.to_vec());
                input.first().copied()
            });
            inputs.into_inner().unwrap()
        };
        let inputs = runs();
        assert!(inputs.len() as u64 > INPUTS);
        assert!(inputs.iter().collect::<HashSet<_>>().len() > inputs.len() / 2);
        assert_eq!(inputs, runs(), "the same run again");
    }
}

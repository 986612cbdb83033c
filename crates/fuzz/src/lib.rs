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
//! A target is a function of bytes. It asserts what must hold for any of them, and returns what became of
//! them: which errors, how many events. Inputs with an outcome that was not seen before are kept and mutated
//! further, which leads the fuzzer into the depths of a decoder without an instrumented compiler.
//!
//! An ordinary run tries the seeds, the inputs that once failed, and [`INPUTS`] mutations of them, always the
//! same ones. `STAGEDOOR_FUZZ_SECONDS=60` goes on for that long, `STAGEDOOR_FUZZ_SEED=7` takes other
//! mutations. A failing input is cut down and printed as a byte string: fix the decoder, and add the string
//! to the target's [`regressions`](Fuzz::regressions).

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
/// Longest input, in bytes, unless a target asks for another.
pub const BYTES_MAX: usize = 4 * 1024;
/// Inputs with an outcome of their own that are kept.
const KEPT_MAX: usize = 4_096;
/// Inputs between two looks at the watch.
const INPUTS_PER_LOOK: u64 = 64;
/// Tries to cut a failing input down.
const CUTS_MAX: u32 = 2_000;

/// One target and what to feed it with.
#[derive(Debug)]
pub struct Fuzz {
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    tokens: Vec<Vec<u8>>,
    bytes_max: usize,
}

impl Fuzz {
    /// A target by its name.
    pub fn new(name: &'static str) -> Self {
        Self { name, seeds: Vec::new(), tokens: Vec::new(), bytes_max: BYTES_MAX }
    }

    /// Inputs to begin with: the more of what the decoder knows is in them, the better.
    pub fn seeds<T: AsRef<[u8]>>(mut self, seeds: impl IntoIterator<Item = T>) -> Self {
        self.seeds.extend(seeds.into_iter().map(|seed| seed.as_ref().to_vec()));
        self
    }

    /// Inputs that failed once.
    pub fn regressions<T: AsRef<[u8]>>(self, inputs: impl IntoIterator<Item = T>) -> Self {
        self.seeds(inputs)
    }

    /// What is put in between now and then: separators, keywords, numbers at limits.
    pub fn tokens<T: AsRef<[u8]>>(mut self, tokens: impl IntoIterator<Item = T>) -> Self {
        self.tokens.extend(tokens.into_iter().map(|token| token.as_ref().to_vec()));
        self
    }

    /// Longest input, in bytes.
    pub fn bytes_max(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// Runs the target.
    ///
    /// # Panics
    /// As the target does, after printing the input, cut down as far as it still fails, and the seed of the
    /// run.
    pub fn run<O: Hash>(self, target: impl Fn(&[u8]) -> O) {
        let seed = setting("STAGEDOOR_FUZZ_SEED").unwrap_or_default();
        let time = setting("STAGEDOOR_FUZZ_SECONDS").map(Duration::from_secs);
        let (watch, mut tried) = (Watch::start(), 0);
        let mut seen = HashSet::new();
        let mut kept = if self.seeds.is_empty() { vec![Vec::new()] } else { self.seeds.clone() };
        for input in &self.seeds {
            seen.insert(self.check(seed, input, &target));
        }
        let mut mutator = self.mutator();
        let goes_on = |tried: u64| match time {
            Some(time) => !tried.is_multiple_of(INPUTS_PER_LOOK) || watch.elapsed() < time,
            None => tried < INPUTS,
        };
        while goes_on(tried) {
            tried += 1;
            let input = mutator.mutated(&kept);
            if seen.insert(self.check(seed, &input, &target)) && kept.len() < KEPT_MAX {
                kept.push(input);
            }
        }
        println!("fuzz: {}: {tried} inputs, {} outcomes, seed {seed}", self.name, seen.len());
    }

    /// Mutations of the seeds without end, for a target that is no function. Always the same ones, unless
    /// `STAGEDOOR_FUZZ_SEED` says otherwise.
    pub fn mutations(self) -> impl Iterator<Item = Vec<u8>> {
        let mut mutator = self.mutator();
        std::iter::repeat_with(move || mutator.mutated(&self.seeds))
    }

    fn mutator(&self) -> Mutator {
        let seed = setting("STAGEDOOR_FUZZ_SEED").unwrap_or_default();
        Mutator::new(seed ^ hash(&self.name), self.tokens.clone(), self.bytes_max)
    }

    /// The outcome of one input.
    fn check<O: Hash>(&self, seed: u64, input: &[u8], target: &impl Fn(&[u8]) -> O) -> u64 {
        match catch_unwind(AssertUnwindSafe(|| target(input))) {
            Ok(outcome) => hash(&outcome),
            Err(panic) => {
                let least =
                    cut_down(input, |input| catch_unwind(AssertUnwindSafe(|| target(input))).is_err());
                println!("fuzz: {} fails, seed {seed}: b\"{}\"", self.name, least.escape_ascii());
                resume_unwind(panic);
            }
        }
    }
}

/// Leaves out ever smaller parts of an input, as long as it still fails.
fn cut_down(input: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut least, mut part, mut tries) = (input.to_vec(), input.len().div_ceil(2), 0);
    while part > 0 && tries < CUTS_MAX {
        let mut at = 0;
        while at < least.len() && tries < CUTS_MAX {
            tries += 1;
            let end = (at + part).min(least.len());
            let shorter = [&least[..at], &least[end..]].concat();
            if fails(&shorter) {
                least = shorter;
            } else {
                at = end;
            }
        }
        part /= 2;
    }
    least
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
    fn a_mistake_behind_several_steps_is_found_and_cut_down() {
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
    fn what_is_sound_is_left_alone_and_the_limit_is_kept() {
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

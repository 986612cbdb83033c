//! Mutates inputs.

/// Maximum number of changes in one mutation.
const CHANGES_MAX: usize = 6;
/// Maximum number of bytes that one change inserts, removes or repeats.
const RANGE_MAX: usize = 64;
/// Bytes at the limits that decoders check.
const BYTES: &[u8] = b"\0\x01\x1e\x7d\x7e\x7f\x80\x81\x88\x89\xfe\xff\n\r\"%&+,-./09:=?[]\\{}";

/// Makes mutations. Their order depends only on the seed.
pub(crate) struct Mutator {
    state: u64,
    tokens: Vec<Vec<u8>>,
    bytes_max: usize,
}

impl Mutator {
    pub(crate) fn new(seed: u64, tokens: Vec<Vec<u8>>, bytes_max: usize) -> Self {
        Self { state: seed, tokens, bytes_max }
    }

    /// A mutation of one of the inputs. Newer inputs are chosen more often, because they led to new outcomes.
    pub(crate) fn mutated(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let from = if self.below(2) == 0 { inputs.len() - inputs.len().div_ceil(4) } else { 0 };
        let mut input = inputs[from + self.below(inputs.len() - from)].clone();
        // Mostly one change, because many changes seldom keep the input's outcome.
        for _ in 0..CHANGES_MAX {
            self.change(&mut input, inputs);
            if self.below(2) == 0 {
                break;
            }
        }
        input.truncate(self.bytes_max);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, inputs: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let end = (at + 1 + self.below(RANGE_MAX)).min(input.len());
        match self.below(9) {
            0 => {
                let bit = 1 << self.below(8);
                self.put(input, at, |byte| byte ^ bit);
            }
            1 => {
                let byte = BYTES[self.below(BYTES.len())];
                self.put(input, at, |_| byte);
            }
            2 => {
                let by = self.below(35) as u8;
                self.put(input, at, |byte| byte.wrapping_add(by).wrapping_sub(17));
            }
            3 => {
                let bytes: Vec<u8> = (0..=self.below(8)).map(|_| self.below(256) as u8).collect();
                input.splice(at..at, bytes);
            }
            4 => drop(input.drain(at..end)),
            5 => {
                let range = input[at..end].to_vec();
                let times = 1 + self.below(4) * self.below(20);
                input.splice(at..at, range.repeat(times));
            }
            6 => input.truncate(at),
            7 if !self.tokens.is_empty() => {
                let token = self.below(self.tokens.len());
                let token = self.tokens[token].clone();
                let replaced = if self.below(2) == 0 { at } else { (at + token.len()).min(input.len()) };
                input.splice(at..replaced, token);
            }
            _ => {
                let other = &inputs[self.below(inputs.len())];
                let from = self.below(other.len() + 1);
                input.splice(at.., other[from..].iter().copied());
            }
        }
    }

    fn put(&mut self, input: &mut [u8], at: usize, change: impl Fn(u8) -> u8) {
        if let Some(byte) = input.get_mut(at) {
            *byte = change(*byte);
        }
    }

    /// A number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % end.max(1) as u64) as usize
    }
}

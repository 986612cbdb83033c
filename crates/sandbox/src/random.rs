//! Numbers that a seed decides, by SplitMix64. They are for repeatable tests, not for secrets.

/// The next number of a sequence. The state begins with the seed.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A number from 0 to below 1.
pub(crate) fn draw(state: &mut u64) -> f64 {
    // The 53 bits that a double holds.
    (next(state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A whole number from `low` to `high`.
pub(crate) fn draw_between(state: &mut u64, low: u64, high: u64) -> u64 {
    low + next(state) % (high.saturating_sub(low) + 1)
}

//! Decides which secret of a webhook signs (ours; `docs/webhooks.md`).
//!
//! A new secret is pending for a day, so the receiver can be configured with it while the old one signs.
//! After that day, or when it is activated, the new secret signs. The old one is kept for another day, so the
//! change can be undone. A receiver that accepts both secrets misses no message.

use crate::Timestamp;

/// The state of a webhook's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretState {
    /// It will sign.
    Pending,
    /// It signs.
    Signing,
    /// It signed before the current one.
    Retiring,
}

impl SecretState {
    /// The names on the wire.
    pub const NAMES: &'static [&'static str] = &["PENDING", "SIGNING", "RETIRING"];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Signing => "SIGNING",
            Self::Retiring => "RETIRING",
        }
    }
}

/// The states at `now` of secrets that sign from these ascending times on. The last secret whose time has
/// come signs.
pub fn states(signs_from: &[Timestamp], now: Timestamp) -> Vec<SecretState> {
    let come = signs_from.iter().filter(|from| **from <= now).count();
    let state = |at: usize| match at + 1 {
        at if at > come => SecretState::Pending,
        at if at == come => SecretState::Signing,
        _ => SecretState::Retiring,
    };
    (0..signs_from.len()).map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use SecretState::{Pending, Retiring, Signing};

    #[test]
    fn the_last_secret_whose_time_has_come_signs() {
        let check = |signs_from: &[i64], expected: &[SecretState]| {
            let signs_from: Vec<_> = signs_from.iter().map(|ms| Timestamp::from_millis(*ms)).collect();
            assert_eq!(states(&signs_from, Timestamp::from_millis(10)), expected, "{signs_from:?}");
        };
        check(&[], &[]);
        check(&[10], &[Signing]);
        check(&[11], &[Pending]);
        check(&[1, 11], &[Signing, Pending]);
        check(&[1, 10], &[Retiring, Signing]);
        check(&[1, 2, 3, 11], &[Retiring, Retiring, Signing, Pending]);
    }
}

//! One-time addresses of the console. Whoever has one is the user who can read the overview or the operator
//! key; the port alone, which every user of the machine can reach, opens nothing.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use domain::secret::SecretHash;

/// Maximum number of addresses that were not used yet. A new one replaces the oldest.
const LINKS_MAX: usize = 16;
/// The path that opens the console.
pub(crate) const OPEN_PATH: &str = "/sandbox/console/open";

/// The addresses that were given out and not used yet.
#[derive(Debug, Default)]
pub(crate) struct ConsoleLinks(Mutex<VecDeque<SecretHash>>);

impl ConsoleLinks {
    /// The path and query of a new address. `random` becomes its token.
    pub fn make(&self, random: [u8; 16]) -> String {
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if links.len() >= LINKS_MAX {
            links.pop_front();
        }
        links.push_back(SecretHash::of(&token));
        format!("{OPEN_PATH}?token={token}")
    }

    /// Uses an address up. Returns whether its token was right.
    pub fn take(&self, token: &str) -> bool {
        let presented = SecretHash::of(token);
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = links.iter().position(|link| link.matches(&presented));
        found.and_then(|at| links.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_opens_once_and_their_number_is_bounded() {
        let links = ConsoleLinks::default();
        let token = |path: String| path.split_once("token=").expect("a token").1.to_owned();
        let first = token(links.make([1; 16]));
        assert!(!links.take("00") && links.take(&first) && !links.take(&first));
        let oldest = token(links.make([0; 16]));
        (2..2 + LINKS_MAX as u8).for_each(|number| _ = links.make([number; 16]));
        assert!(!links.take(&oldest));
    }
}

//! Session URLs that were used lately on this node: so that a second use can be told from a made-up URL. A URL is used on
//! the node that issued it, and only to word a refusal: it need not be kept anywhere else.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use domain::secret::SecretHash;

/// URLs that are remembered: those of some minutes of many connects. Each takes about 200 bytes.
const USED_URLS_MAX: usize = 4_096;

/// The last ones, by their hashes.
#[derive(Debug, Default)]
pub(crate) struct UsedUrls(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    known: HashSet<SecretHash>,
    order: VecDeque<SecretHash>,
}

impl UsedUrls {
    /// Remembers one, and forgets the oldest when there are too many.
    pub fn remember(&self, url: SecretHash) {
        let mut urls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if urls.order.len() >= USED_URLS_MAX
            && let Some(oldest) = urls.order.pop_front()
        {
            urls.known.remove(&oldest);
        }
        if urls.known.insert(url.clone()) {
            urls.order.push_back(url);
        }
    }

    /// Whether that one was used lately.
    pub fn contains(&self, url: &SecretHash) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).known.contains(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_ones_are_remembered() {
        let (urls, url) = (UsedUrls::default(), |n: usize| SecretHash::of(&n.to_string()));
        for n in 0..USED_URLS_MAX * 2 {
            urls.remember(url(n));
        }
        assert!(!urls.contains(&url(USED_URLS_MAX - 1)));
        assert!(urls.contains(&url(USED_URLS_MAX)) && urls.contains(&url(USED_URLS_MAX * 2 - 1)));
        assert_eq!(urls.0.lock().expect("not poisoned").known.len(), USED_URLS_MAX);
    }
}

//! Session URLs that were used recently on this node. They distinguish a second use from an unknown URL.
//! This only affects the reason of a refusal, so the URLs are kept in memory only.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use domain::secret::SecretHash;

/// Maximum number of URLs in memory. Each takes about 200 bytes.
const USED_URLS_MAX: usize = 4_096;

/// The hashes of the URLs that were used last.
#[derive(Debug, Default)]
pub(crate) struct UsedUrls(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    known: HashSet<SecretHash>,
    order: VecDeque<SecretHash>,
}

impl UsedUrls {
    /// Adds a URL. When there are [`USED_URLS_MAX`] URLs, the oldest one is dropped.
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

    /// Whether the URL was used recently.
    pub fn contains(&self, url: &SecretHash) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).known.contains(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_urls_are_remembered() {
        let (urls, url) = (UsedUrls::default(), |n: usize| SecretHash::of(&n.to_string()));
        for n in 0..USED_URLS_MAX * 2 {
            urls.remember(url(n));
        }
        assert!(!urls.contains(&url(USED_URLS_MAX - 1)));
        assert!(urls.contains(&url(USED_URLS_MAX)) && urls.contains(&url(USED_URLS_MAX * 2 - 1)));
        assert_eq!(urls.0.lock().expect("not poisoned").known.len(), USED_URLS_MAX);
    }
}

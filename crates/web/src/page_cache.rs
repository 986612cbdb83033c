//! Pages that are the same for all readers except for who is signed in, rendered once in each language.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderValue;

use crate::constant::{Constant, etag, hash};
use crate::pages::{ACCOUNT_MARK, Lang};

/// A rendered page.
#[derive(Debug)]
pub(crate) struct CachedPage {
    /// The page for those who are not signed in.
    pub signed_out: Constant,
    /// The page before and after the place of who is signed in.
    parts: [String; 2],
    hash: String,
}

/// The pages that were asked for so far. Their number is that of the pages that exist.
#[derive(Debug, Default)]
pub(crate) struct PageCache(RwLock<HashMap<(&'static str, String), Arc<CachedPage>>>);

impl CachedPage {
    fn new(html: &str, signed_out: &str) -> Self {
        let (before, after) = html.split_once(ACCOUNT_MARK).unwrap_or((html, ""));
        Self {
            signed_out: Constant::new(format!("{before}{signed_out}{after}")),
            parts: [before.to_owned(), after.to_owned()],
            hash: hash(html.as_bytes()),
        }
    }

    /// The page for a person, with its `ETag`.
    pub fn with_account(&self, account: &str) -> (String, HeaderValue) {
        let [before, after] = &self.parts;
        let tag = etag(&[&self.hash, &hash(account.as_bytes())], false);
        (format!("{before}{account}{after}"), tag)
    }
}

impl PageCache {
    /// The page at the address of an existing page. If nobody has asked for it before, `render` gives it with
    /// the mark of who is signed in, and what stands there for those who are not.
    pub fn page(&self, lang: Lang, href: &str, render: impl FnOnce() -> [String; 2]) -> Arc<CachedPage> {
        let key = (lang.tag(), href.to_owned());
        if let Some(page) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return page.clone();
        }
        let [html, signed_out] = render();
        let page = Arc::new(CachedPage::new(&html, &signed_out));
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, page.clone());
        page
    }
}

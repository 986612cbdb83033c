//! Pages that are the same for all readers, rendered once in each language.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderValue;
use sha2::{Digest, Sha256};

use crate::pages::Lang;

/// A rendered page.
#[derive(Debug)]
pub(crate) struct CachedPage {
    /// The page.
    pub html: String,
    /// The value of `ETag`.
    pub etag: HeaderValue,
}

/// The pages that were asked for so far. Their number is that of the pages that exist.
#[derive(Debug, Default)]
pub(crate) struct PageCache(RwLock<HashMap<(&'static str, String), Arc<CachedPage>>>);

impl CachedPage {
    fn new(html: String) -> Self {
        let hash = Sha256::digest(html.as_bytes());
        let hash: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        // Hex digits are valid in a header.
        let etag = HeaderValue::from_str(&format!("\"{hash}\"")).unwrap_or(HeaderValue::from_static("\"\""));
        Self { html, etag }
    }
}

impl PageCache {
    /// The page at the address of an existing page, rendered if nobody has asked for it before.
    pub fn page(&self, lang: Lang, href: &str, render: impl FnOnce() -> String) -> Arc<CachedPage> {
        let key = (lang.tag(), href.to_owned());
        if let Some(page) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return page.clone();
        }
        let page = Arc::new(CachedPage::new(render()));
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, page.clone());
        page
    }
}

//! Pages of lists by number.

/// A page of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Items of a page.
    pub size: i64,
    /// Pages before it.
    pub page: i64,
}

impl Page {
    /// Rows before the page. Cannot overflow: both factors are far below 2^32.
    pub fn offset(self) -> i64 {
        self.size.saturating_mul(self.page)
    }
}

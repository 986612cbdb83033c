//! Lives, categories and watching.

pub mod categories;
pub(crate) mod category_index;
pub mod lives;
pub mod watching;
pub(crate) mod watching_reports;

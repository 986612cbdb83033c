//! Lives, their categories, and who watches them.

pub mod categories;
pub mod lives;
pub mod watching;
pub mod watching_groups;

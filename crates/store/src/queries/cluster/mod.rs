//! The nodes that share a store, and what they do to it together.

pub mod due;
pub mod expire;
pub mod locks;
mod measures;
pub mod nodes;
pub mod overview;
pub mod store_identity;
pub mod store_origin;
pub mod sweeps;

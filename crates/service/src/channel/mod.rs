//! Channels, their relations, broadcast settings and stream keys.

pub mod badges;
pub mod broadcast_settings;
pub mod channel_admin;
pub mod channels;
pub(crate) mod follow_change;
mod follow_groups;
pub mod people_search;
pub mod relations;
pub mod restrictions;

//! Channels, their relations and what their streamers broadcast with.

pub mod badges;
pub mod broadcast_settings;
pub mod channel_admin;
pub mod channels;
pub mod relations;
pub mod restrictions;

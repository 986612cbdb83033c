//! Channels, the people around them, and their settings.

pub mod broadcast_settings;
pub mod channel_admin;
pub mod channel_deletions;
pub mod channels;
pub mod follow_groups;
pub mod named_channels;
pub mod relations;
pub mod restrictions;
pub mod stream_keys;

//! Chats and their settings.

pub mod chat_appends;
pub mod chat_log;
pub mod chat_settings;
pub mod chats;

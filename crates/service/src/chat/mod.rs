//! Chat messages and the settings of chats.

pub mod chat_log;
pub mod chat_settings;
pub mod chats;
pub(crate) mod message_times;
pub(crate) mod slow_chats;

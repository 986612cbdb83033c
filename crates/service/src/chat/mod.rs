//! Chat messages and the settings of chats.

pub(crate) mod append_queue;
mod appender;
pub mod chat_log;
pub mod chat_settings;
pub mod chats;
pub(crate) mod message_times;
pub(crate) mod messages;
pub(crate) mod posts;
pub(crate) mod slow_chats;

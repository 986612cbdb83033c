//! Chat messages and the settings of chats.

mod appender;
pub(crate) mod chat_append;
pub mod chat_log;
pub mod chat_settings;
pub mod chats;
pub(crate) mod message_times;
pub(crate) mod messages;
pub(crate) mod posts;
pub(crate) mod slow_chats;

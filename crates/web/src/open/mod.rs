//! The open API, `/open/v1` (`docs/spec/rest.md`).

pub mod categories;
pub mod channels;
pub mod chat_settings;
pub mod chats;
pub mod drops;
pub mod listener;
pub mod lives;
pub mod relations;
pub mod restrictions;
pub mod sessions;
pub mod streams;
pub mod subscriptions;
pub mod users;

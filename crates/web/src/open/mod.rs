//! The open API, `/open/v1` (spec 4.2 to 4.5).

pub mod categories;
pub mod channels;
pub mod chats;
pub mod lives;
pub mod sessions;
pub mod streams;
pub mod users;

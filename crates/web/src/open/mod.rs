//! The open API, `/open/v1` (spec 4.2 to 4.5).

pub mod channels;
pub mod chats;
pub mod drops;
pub mod sessions;
pub mod users;

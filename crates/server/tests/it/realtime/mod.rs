//! Sessions on sockets.

mod session_details;
mod sessions;

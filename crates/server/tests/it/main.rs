//! The whole service through its public surface, on both engines. Files mirror section 4 of the specification; what holds
//! everywhere is in `conventions`, `bad_input` and `quotas`; what the program promises is in `command_line`, `shutdown`
//! and `durability`; what the source promises is in `tidy`.

mod authorization;
mod bad_input;
mod channels;
mod chats;
mod command_line;
mod conventions;
mod credentials;
mod durability;
mod endpoints;
mod platform;
mod process;
mod profiles;
mod quotas;
mod secrets;
mod serving;
mod sessions;
mod shutdown;
mod sign_in;
mod single_use;
mod stage;
mod tidy;
mod token_lifetimes;
mod users;

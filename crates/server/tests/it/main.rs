//! The whole service through its public surface, on both engines. Files mirror section 4 of the specification; what holds
//! everywhere is in `conventions`, `bad_input` and `quotas`; what the program promises is in `command_line`, `shutdown`
//! and `durability`; what the source promises is in `tidy`.

mod applications;
mod authorization;
mod bad_input;
mod blind_messages;
mod broadcast_settings;
mod bulk;
mod categories;
mod channels;
mod chat_rules;
mod chat_settings;
mod chats;
mod command_line;
mod consents;
mod contract;
mod conventions;
mod corpus;
mod credentials;
mod drops;
mod drops_claims;
mod durability;
mod endpoints;
mod lists;
mod lives;
mod notices;
mod oddities;
mod outages;
mod platform;
mod process;
mod profiles;
mod quotas;
mod restrictions;
mod scopes;
mod secrets;
mod serving;
mod sessions;
mod shutdown;
mod sign_in;
mod single_use;
mod stage;
mod stream_keys;
mod tidy;
mod token_lifetimes;
mod users;

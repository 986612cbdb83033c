//! The fan-out of events to sessions: the shards and their parts.

mod batch;
mod catch_up;
mod command;
mod index;
mod recently_unsubscribed;
mod shard;
mod shard_thread;
mod shards;
mod timers;

pub(crate) use batch::Encoded;
pub(crate) use command::{Command, Join};
pub(crate) use shard_thread::ShardThread;
pub(crate) use shards::{Inbox, Shards};

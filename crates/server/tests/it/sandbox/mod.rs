//! The sandbox: its API and its commands.

mod clock;
mod console;
mod deliveries;
mod doctor;
mod environment;
mod expect;
mod expire;
mod explain;
mod fault_command;
mod faults;
mod frames;
mod listen;
mod networks;
mod recording;
mod scenario;
mod seed;
mod socket_faults;
mod socket_triggers;
mod storm;
mod timeline;
mod tokens;
mod trigger;
mod webhook;
mod webhook_faults;
mod world_files;
mod worlds;

//! What exists once on a node: the list of its sessions, the dispatcher of the bus, and what the node does
//! about lost events, changes that it missed, ended sessions and its own end.

mod disconnects;
mod dispatcher;
mod drain;
mod lost_events;
mod reconcile;
mod registry;

pub(crate) use disconnects::Disconnects;
pub(crate) use dispatcher::{Dispatcher, Receivers};
pub(crate) use drain::drain;
pub(crate) use registry::Registry;

//! The parts of the gateway that exist once on a node: the registry of its sessions, the dispatcher of the
//! bus, the work on lost events, missed changes, ended sessions and the drain, and the comparison with the
//! store.

mod comparison;
mod disconnects;
mod dispatcher;
mod drain;
mod lost_events;
mod reconcile;
mod registry;

pub(crate) use comparison::compare;
pub(crate) use disconnects::Disconnects;
pub(crate) use dispatcher::{Dispatcher, Receivers};
pub(crate) use drain::{close_at_once, drain};
pub(crate) use registry::Registry;

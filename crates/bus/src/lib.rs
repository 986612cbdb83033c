//! Messages between the parts of the service after a commit, on one node ([`LocalBus`]) or on many
//! ([`NatsBus`]).
//!
//! The store is the truth. A message only makes a node read the store, or carries an event to connected
//! sessions. The contract of the bus:
//!
//! - **At most once.** A message may be lost. It never comes twice.
//! - **In order** for one publisher and one channel or session. A message that was confirmed before another
//!   one was published comes before it.
//! - **By interest.** A node receives the events of a channel while an [`Interest`] in it is held, and every
//!   event once the interest is ready. Changes of a session come to the node that has the session.
//! - **No silent loss.** A publisher gets the channels of unconfirmed events, and records them. A subscriber
//!   that may have missed an event receives [`Delivery::Lost`] or [`Delivery::Gap`] before any later message,
//!   and closes the affected sessions.
//! - **Bounded.** On one node a full subscriber slows publishers down (backpressure). On many nodes the bus
//!   disconnects a full subscriber in the end, which is a gap.

mod bus;
mod local;
mod message;
mod nats_bus;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

pub use bus::{Bus, Guard, Interest, QUEUE_MAX, Stats, Subscriber};
pub use futures_util::future::BoxFuture;
pub use local::LocalBus;
pub use message::{Delivery, Message};
pub use nats::{Access, Address, BadAccess, BadAddress};
pub use nats_bus::{BadPrefix, NatsBus, NoBus, Options, Prefix};

//! Webhooks on their way out: from the outbox, over HTTP, to the addresses that publishers have chosen
//! (`docs/webhooks.md`).
//!
//! | | |
//! |---|---|
//! | `sender` | which webhooks have something due |
//! | `worker` | the messages of one webhook: taken, sent, recorded |
//! | `client` | one attempt |
//! | `connect` | where an attempt may go |
//! | `kept` | connections between attempts |
//! | `metered` | a bound on what a receiver may send |
//! | `figures` | counts for the metrics |

mod client;
mod connect;
mod figures;
mod kept;
mod metered;
mod sender;
mod worker;

pub use client::{
    ANSWER_BYTES_MAX, ATTEMPT_MAX, Answer, BEGINNING_BYTES_MAX, Client, Outgoing, Surroundings, system_roots,
    tls,
};
pub use connect::{BoxFuture, Resolver, system_resolver};
pub use figures::{DELAY_BOUNDS_MS, Figures};
pub use sender::{LOOK_EVERY, Sender};
pub use worker::PER_WEBHOOK_MAX;

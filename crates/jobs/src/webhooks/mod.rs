//! Sends webhooks from the outbox over HTTP to the addresses that publishers have registered
//! (`docs/webhooks.md`).
//!
//! | | |
//! |---|---|
//! | `sender` | finds the webhooks with due messages and starts their workers |
//! | `settler` | asks the sender to make the attempts that are due |
//! | `worker` | takes, sends and records the messages of one webhook |
//! | `context` | the context of every worker |
//! | `client` | one attempt |
//! | `connect` | connections, only to judged addresses |
//! | `probe` | connection tests, step by step |
//! | `pool` | idle connections between attempts |
//! | `metrics` | counters of attempts |

mod client;
mod connect;
mod context;
mod metrics;
mod pool;
mod probe;
mod sender;
mod settler;
mod worker;

pub use client::{ATTEMPT_MAX, Answer, Client, ClientConfig, Outgoing};
pub use connect::{ANSWER_BYTES_MAX, BEGINNING_BYTES_MAX, Resolver, system_resolver};
pub use metrics::{DELAY_BOUNDS_MS, WebhookMetrics};
pub use probe::{ConnectionProber, TEST_PAUSE};
pub use sender::{POLL_EVERY, Sender};
pub use settler::Settler;
pub use worker::{LATE_MAX, PER_WEBHOOK_MAX};

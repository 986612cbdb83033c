//! Sends webhooks from the outbox over HTTP to the addresses that publishers have registered
//! (`docs/webhooks.md`).
//!
//! | | |
//! |---|---|
//! | `sender` | finds the webhooks with due messages and starts their workers |
//! | `worker` | takes, sends and records the messages of one webhook |
//! | `context` | the context of every worker |
//! | `client` | one attempt |
//! | `connect` | connections, only to judged addresses |
//! | `pool` | idle connections between attempts |
//! | `byte_limit` | the limit of bytes that a receiver may send |
//! | `metrics` | counters of attempts |

mod byte_limit;
mod client;
mod connect;
mod context;
mod metrics;
mod pool;
mod sender;
mod worker;

pub use client::{
    ANSWER_BYTES_MAX, ATTEMPT_MAX, Answer, BEGINNING_BYTES_MAX, Client, ClientConfig, Outgoing, system_roots,
    tls,
};
pub use connect::{BoxFuture, Resolver, system_resolver};
pub use metrics::{DELAY_BOUNDS_MS, WebhookMetrics};
pub use sender::{POLL_EVERY, Sender};
pub use worker::PER_WEBHOOK_MAX;

//! Several nodes over one PostgreSQL database and NATS.

mod acknowledged;
mod bus;
mod crash;
mod kills;
mod ledger;
mod outbox;
mod promise;

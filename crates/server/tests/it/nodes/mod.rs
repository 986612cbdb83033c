//! Several nodes over one PostgreSQL database and NATS.

mod bus;
mod ledger;
mod promise;

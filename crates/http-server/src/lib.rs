//! The HTTP listeners of a node: connections with their limits and deadlines, the proxies in front, host
//! names, TLS, and the road of a request to its handler.
//!
//! | Module | Contents |
//! |---|---|
//! | `listener` | accepts connections, and routes requests to the gateway, the sandbox or the web |
//! | `connections` | the places of connections, shared out by address block |
//! | `inbound` | request bodies, which are read to their end beside the answer |
//! | `proxies` | client addresses behind trusted proxies |
//! | `hosts` | the host names that a sandbox accepts |
//! | `malformed` | answers to bytes that are no request |
//! | `terminator` | TLS handshakes, and the plain stream behind them |
//! | `unix_socket` | listeners on a Unix socket |

pub mod connections;
pub mod hosts;
mod inbound;
pub mod listener;
mod malformed;
pub mod proxies;
pub mod terminator;
pub mod unix_socket;

//! Real servers and services on both engines, and clients of their public interfaces, for the integration
//! tests.
//!
//! ```text
//! #[tokio::test(flavor = "multi_thread")]
//! async fn a_message_comes_back_on_the_socket() {
//!     testkit::both(Setup::default(), |world| async move {
//!         let app = world.application("bot").create().await;
//!         let streamer = world.person("haneul").create().await;
//!         let tokens = world.sign_in(&app, &streamer).await;
//!         …
//!     })
//!     .await;
//! }
//! ```
//!
//! - [`both`]: runs a test on SQLite and on PostgreSQL. [`Setup`] starts a [`World`], [`ServiceSetup`] a
//!   [`ServiceWorld`], [`EmptyDatabase`] nothing.
//! - [`World`]: a [`server::Node`] in this process on `127.0.0.1:0`, on SQLite or PostgreSQL, with a manual
//!   clock.
//! - [`ServiceWorld`]: services on one store and bus, without a listener. [`serve`] gives a gateway a port.
//! - [`Api`]: the REST interface and the platform API of any server, also of one in another process. A
//!   [`World`] dereferences to one.
//! - [`Browser`]: submits the sign-in pages' forms, with a cookie jar.
//! - [`Socket`]: a session of Engine.IO revision 3 over a [`WebSocket`], whose events are checked.
//! - [`Receiver`]: receives webhooks, optionally over TLS with a certificate of an [`Authority`].
//! - [`Collector`]: decodes the traces and lines of the log that a server exports.
//! - [`WebSocket`] and [`Connection`]: send raw packets, frames and bytes, for malformed input.
//!
//! The clients share no code with the server's wire formats, so they detect faults in these. A test fails
//! when a wait exceeds [`PATIENCE`], or when any answer or event does not match the documents in `docs/api/`.

mod api;
mod authority;
mod browser;
mod collector;
mod contract;
mod gateways;
mod html;
mod http;
mod message;
mod nodes;
mod patience;
mod receiver;
mod schema;
mod service_world;
mod signature;
mod socket;
mod url;
mod websocket;
mod world;

pub use api::Api;
pub use api::accounts::{Application, Person, Tokens};
pub use api::builders::{NewApplication, NewPerson};
pub use authority::Authority;
pub use browser::{Browser, Page};
pub use collector::{CollectedAttributes, CollectedLine, CollectedSpan, Collector};
pub use gateways::serve;
pub use html::Form;
pub use http::Connection;
pub use message::{Request, Response};
pub use nodes::{Cluster, ClusterNode, nodes};
pub use patience::{PATIENCE, patiently};
pub use receiver::{Received, Receiver, Reply};
pub use reserved_port::ReservedPort;
pub use service_world::{
    REDIRECT, START_MS, STATE, ServiceSetup, ServiceWorld, client_owner, record, user_owner,
};
pub use socket::Socket;
pub use store::testing::{EmptyDatabase, Network, Wire, both_with as both, while_running};
pub use url::{decode, encode, query_value};
pub use web::{Brand, Logo};
pub use websocket::{Refused, WebSocket, websocket_request};
pub use wire_client::{BINARY, CLOSE, PING, PONG, TEXT, frame, handshake, text};
pub use world::{Engine, Setup, Sockets, World, over_a_wire, settings_on};

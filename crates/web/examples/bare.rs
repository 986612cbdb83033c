//! The minimal axum program that answers `GET /open/v1/users/me`, the baseline of `stagedoor-load rest`. It
//! checks nothing and has one user.
//!
//! ```text
//! bare CHANNEL_ID CHANNEL_NAME
//! ```
//! The program listens on a free port and prints `{"baseUrl":"http://127.0.0.1:PORT"}`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Me {
    channel_id: String,
    channel_name: String,
}

#[derive(Serialize)]
struct Envelope<'a> {
    code: u16,
    message: (),
    content: &'a Me,
}

async fn me(State(me): State<Arc<Me>>) -> Response {
    let answer = serde_json::to_vec(&Envelope { code: 200, message: (), content: &me }).unwrap_or_default();
    ([(CONTENT_TYPE, "application/json")], answer).into_response()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(Some).chain(std::iter::repeat(None));
    let mut argument = || arguments.next().flatten().unwrap_or_default();
    let content = Me { channel_id: argument(), channel_name: argument() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", serde_json::json!({ "baseUrl": format!("http://{}", listener.local_addr()?) }));
    axum::serve(listener, Router::new().route("/open/v1/users/me", get(me)).with_state(Arc::new(content)))
        .await
}

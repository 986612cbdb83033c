//! socketioxide with its defaults, except the ping times, which all peers share. `bench/README.md` describes the requests
//! that every peer serves.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use socketioxide::SocketIo;
use socketioxide::extract::SocketRef;
use tokio::net::TcpSocket;

/// Length of the accept queue.
const BACKLOG: u32 = 4_096;
const PING_INTERVAL: Duration = Duration::from_secs(25);
const PING_TIMEOUT: Duration = Duration::from_secs(60);

async fn join(socket: SocketRef) {
    let query = socket.req_parts().uri.query().unwrap_or_default();
    if let Some(room) = query.split('&').find_map(|pair| pair.strip_prefix("room=")) {
        socket.join(room.to_owned());
    }
}

/// Publishes each line: a room, a tab, a payload.
async fn publish(State(io): State<SocketIo>, lines: String) -> StatusCode {
    for (room, payload) in lines.lines().filter_map(|line| line.split_once('\t')) {
        // It fails if a session's queue is full. The load detects the missing message.
        let _ = io.to(room.to_owned()).emit("CHAT", payload).await;
    }
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let builder = SocketIo::builder().ping_interval(PING_INTERVAL).ping_timeout(PING_TIMEOUT);
    let (layer, io) = builder.build_layer();
    io.ns("/", join);
    let app = Router::new().route("/publish", post(publish)).with_state(io).layer(layer);
    let listener = TcpSocket::new_v4()?;
    listener.bind(([127, 0, 0, 1], 0).into())?;
    let listener = listener.listen(BACKLOG)?;
    println!(r#"{{"baseUrl":"http://{}"}}"#, listener.local_addr()?);
    axum::serve(listener, app).await
}

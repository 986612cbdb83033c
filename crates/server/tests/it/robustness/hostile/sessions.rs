//! A peer that sends arbitrary bytes.

use std::net::SocketAddr;

use testkit::{Api, Connection, Refused, Request, WebSocket, websocket_request};

/// The queries of `count` client session URLs, ten for each application.
pub async fn session_queries(api: &Api, name: &str, count: usize) -> Vec<String> {
    let mut queries = Vec::new();
    while queries.len() < count {
        let app = api.application(&format!("{name}-{}", queries.len())).create().await;
        for _ in 0..(count - queries.len()).min(10) {
            let url = api.client_session_url(&app).await.content()["url"].clone();
            let (_, query) =
                url.as_str().and_then(|url| url.split_once('?')).expect("an address with a query");
            queries.push(query.to_owned());
        }
    }
    queries
}

/// Opens a websocket session of an Engine.IO revision, and reads up to SYSTEM `connected`.
pub async fn session(address: SocketAddr, query: &str, revision: u8) -> WebSocket {
    introduced(Connection::open(address).await, query, revision).await.0
}

/// The same on this connection, and the session's key.
pub async fn introduced(connection: Connection, query: &str, revision: u8) -> (WebSocket, String) {
    let mut peer = opened(connection, query, revision).await;
    if revision == 4 {
        peer.send("40").await;
        assert!(peer.packet().await.starts_with("40{"));
    } else {
        assert_eq!(peer.packet().await, "40");
    }
    let connected = peer.packet().await;
    let (_, key) = connected.split_once(r#"\"sessionKey\":\""#).expect("SYSTEM connected");
    let key = key.split('\\').next().unwrap_or_default().to_owned();
    (peer, key)
}

/// Opens a websocket session, and reads its first packet only.
pub async fn opened(connection: Connection, query: &str, revision: u8) -> WebSocket {
    let request = websocket_request(&format!("{query}&EIO={revision}&transport=websocket"));
    let mut peer = WebSocket::over(connection, &request).await.expect("it is let in");
    assert!(peer.packet().await.starts_with("0{"));
    peer
}

/// The request for a websocket that takes over a polling session.
pub fn upgrade_request(polling: &str) -> Request {
    websocket_request(&polling.replace("transport=polling", "transport=websocket"))
}

/// Opens a websocket that wants to take over a polling session.
pub async fn candidate(address: SocketAddr, polling: &str) -> Result<WebSocket, Refused> {
    WebSocket::over(Connection::open(address).await, &upgrade_request(polling)).await
}

/// The reason in the close frame, after what comes before it. `None` when the server closes without one.
pub async fn reason(peer: &mut WebSocket) -> Option<String> {
    peer.close_frame().await.map(|(_, reason)| reason)
}

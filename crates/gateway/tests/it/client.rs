//! Requests and websockets of the tests.

use std::net::SocketAddr;

use domain::SessionKey;
use testkit::{Connection, Refused, Request, Response, WebSocket, websocket_request};

/// The address of a gateway.
#[derive(Clone, Copy)]
pub struct Address(pub SocketAddr);

impl Address {
    pub async fn connect(self) -> Connection {
        Connection::open(self.0).await
    }

    pub async fn send(self, request: Request) -> Response {
        self.connect().await.send(&request).await
    }

    /// Sends a request without reading the answer.
    pub async fn begin(self, request: Request) -> Connection {
        let mut connection = self.connect().await;
        connection.begin(&request).await;
        connection
    }

    pub async fn get(self, query: &str) -> Response {
        self.send(Request::get(target(query))).await
    }

    /// Begins a poll.
    pub async fn poll(self, query: &str) -> Connection {
        self.begin(Request::get(target(query))).await
    }

    pub async fn post(self, query: &str, body: &[u8]) -> Response {
        self.send(Request::post(target(query)).body(body)).await
    }

    /// Opens a websocket, or returns the refusal. The client offers an extension, as browsers do.
    pub async fn websocket(self, query: &str) -> Result<WebSocket, Refused> {
        let request = websocket_request(query);
        let offers = "permessage-deflate; client_max_window_bits";
        WebSocket::over(self.connect().await, &request.header("Sec-WebSocket-Extensions", offers)).await
    }

    /// Opens a websocket session of revision 3 and reads up to SYSTEM `connected`.
    pub async fn session(self, auth: &str) -> (WebSocket, SessionKey) {
        let query = format!("auth={auth}&EIO=3&transport=websocket");
        let mut client = self.websocket(&query).await.unwrap_or_else(|a| panic!("refused: {}", a.text()));
        assert!(client.packet().await.starts_with("0{"));
        assert_eq!(client.packet().await, "40");
        let key = connected_key(&client.packet().await);
        (client, key)
    }
}

pub fn target(query: &str) -> String {
    format!("/socket.io/?{query}")
}

/// The next answer.
pub async fn read_answer(connection: &mut Connection) -> Response {
    connection.read_response(false).await.expect("an answer")
}

/// The session key in a SYSTEM `connected` packet.
pub fn connected_key(packet: &str) -> SessionKey {
    let system = system(packet);
    assert_eq!(system["type"], "connected", "{packet}");
    SessionKey::stored(system["data"]["sessionKey"].as_str().expect("a key").to_owned())
}

/// The payload of a SYSTEM packet.
pub fn system(packet: &str) -> serde_json::Value {
    payload("SYSTEM", packet)
}

/// The payload of an event packet, which is JSON in a JSON string.
pub fn payload(name: &str, packet: &str) -> serde_json::Value {
    assert!(packet.is_ascii(), "{packet}");
    let event: Vec<String> =
        serde_json::from_str(packet.strip_prefix("42").expect("an event")).expect(packet);
    assert_eq!(event[0], name, "{packet}");
    assert_eq!(event.len(), 2);
    serde_json::from_str(&event[1]).expect("the argument is JSON")
}

/// `type eventType` of a SYSTEM packet about a subscription.
pub fn change(packet: &str) -> String {
    let system = system(packet);
    format!(
        "{} {}",
        system["type"].as_str().expect("a type"),
        system["data"]["eventType"].as_str().expect("an event type")
    )
}

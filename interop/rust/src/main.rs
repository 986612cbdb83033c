//! rust_socketio, blocking or asynchronous, driven line by line by `py/matrix.py`, which describes the lines.
//!
//!     stagedoor-interop-rust blocking|async

use std::collections::HashMap;
use std::io::{BufRead, Write, stdin, stdout};

use futures_util::FutureExt;
use rust_socketio::asynchronous::{Client as AsyncClient, ClientBuilder as AsyncBuilder};
use rust_socketio::client::Client;
use rust_socketio::{ClientBuilder, Error, Payload, TransportType};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Prints one line for the reader.
fn tell(id: &str, mut line: Value) {
    line["id"] = id.into();
    let mut out = stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the reader is there");
}

fn arguments(payload: Payload) -> Value {
    match payload {
        Payload::Text(values) => Value::Array(values),
        other => json!([{ "not text": format!("{other:?}") }]),
    }
}

fn failed(error: impl std::fmt::Display) -> Value {
    json!({ "state": "connect_error", "detail": error.to_string() })
}

/// A command from the input.
struct Order {
    ask: String,
    id: String,
    rest: Value,
}

impl Order {
    fn read(line: &str) -> Self {
        let rest: Value = serde_json::from_str(line).expect("orders are JSON");
        let text = |key: &str| rest[key].as_str().unwrap_or_default().to_owned();
        Self { ask: text("ask"), id: text("id"), rest }
    }

    fn url(&self) -> &str {
        self.rest["url"].as_str().expect("a URL")
    }

    fn events(&self) -> impl Iterator<Item = String> {
        self.rest["events"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
    }

    fn transport(&self) -> TransportType {
        match self.rest["transport"].as_str() {
            Some("websocket") => TransportType::Websocket,
            Some("polling") => TransportType::Polling,
            _ => TransportType::WebsocketUpgrade,
        }
    }
}

fn connect(order: &Order) -> Result<Client, Error> {
    let id = order.id.clone();
    let mut builder = ClientBuilder::new(order.url())
        .transport_type(order.transport())
        .reconnect(false)
        .on("open", move |_, _| tell(&id, json!({ "state": "connect" })));
    for (name, state) in [("close", "disconnect"), ("error", "error")] {
        let id = order.id.clone();
        builder =
            builder.on(name, move |why, _| tell(&id, json!({ "state": state, "detail": arguments(why) })));
    }
    for event in order.events() {
        let id = order.id.clone();
        builder = builder.on(event.clone(), move |payload, _| {
            tell(&id, json!({ "event": event, "args": arguments(payload) }));
        });
    }
    builder.connect()
}

fn blocking() {
    let (done, connected) = std::sync::mpsc::channel::<(String, Client)>();
    let mut clients = HashMap::new();
    for line in stdin().lock().lines() {
        let order = Order::read(&line.expect("UTF-8"));
        match order.ask.as_str() {
            "open" => {
                let done = done.clone();
                std::thread::spawn(move || match connect(&order) {
                    Ok(client) => drop(done.send((order.id, client))),
                    Err(error) => tell(&order.id, failed(error)),
                });
            }
            "leave" => {
                clients.extend(connected.try_iter());
                if let Some(client) = clients.remove(&order.id) {
                    std::thread::spawn(move || client.disconnect());
                }
            }
            _ => tell(&order.id, json!({ "transport": null })),
        }
    }
}

async fn connect_async(order: &Order) -> Result<AsyncClient, Error> {
    let mut builder = AsyncBuilder::new(order.url()).transport_type(order.transport()).reconnect(false);
    for (name, state) in [("open", "connect"), ("close", "disconnect"), ("error", "error")] {
        let id = order.id.clone();
        builder = builder.on(name, move |why, _| {
            tell(&id, json!({ "state": state, "detail": arguments(why) }));
            async {}.boxed()
        });
    }
    for event in order.events() {
        let id = order.id.clone();
        builder = builder.on(event.clone(), move |payload, _| {
            tell(&id, json!({ "event": event, "args": arguments(payload) }));
            async {}.boxed()
        });
    }
    builder.connect().await
}

async fn asynchronous() {
    let (send, mut orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lock().lines() {
            drop(send.send(Order::read(&line.expect("UTF-8"))));
        }
    });
    let (done, mut connected) = mpsc::unbounded_channel();
    let mut clients: HashMap<String, AsyncClient> = HashMap::new();
    while let Some(order) = orders.recv().await {
        match order.ask.as_str() {
            "open" => {
                let done = done.clone();
                tokio::spawn(async move {
                    match connect_async(&order).await {
                        Ok(client) => drop(done.send((order.id, client))),
                        Err(error) => tell(&order.id, failed(error)),
                    }
                });
            }
            "leave" => {
                while let Ok((id, client)) = connected.try_recv() {
                    clients.insert(id, client);
                }
                if let Some(client) = clients.remove(&order.id) {
                    tokio::spawn(async move { client.disconnect().await });
                }
            }
            _ => tell(&order.id, json!({ "transport": null })),
        }
    }
}

fn main() {
    println!("{}", json!({ "ready": true, "ordered": true }));
    if std::env::args().nth(1).as_deref() == Some("async") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(asynchronous());
    } else {
        blocking();
    }
    std::process::exit(0);
}

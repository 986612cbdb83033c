//! An OpenTelemetry collector on loopback, which decodes what it gets.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Received, Receiver, Reply, patiently};

/// Attributes, as texts.
pub type CollectedAttributes = BTreeMap<String, String>;

/// A span that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedSpan {
    /// 32 hexadecimal digits.
    pub trace: String,
    /// 16 hexadecimal digits.
    pub id: String,
    /// The same, or `None`.
    pub parent: Option<String>,
    /// Its name.
    pub name: String,
    /// 1 internal, 2 server, 3 client.
    pub kind: u64,
    /// Nanoseconds from its begin to its end.
    pub took_ns: u64,
    /// Its attributes.
    pub attributes: CollectedAttributes,
    /// Whether its status is an error.
    pub has_failed: bool,
}

/// A line of the log that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedLine {
    /// As in `INFO`.
    pub severity: String,
    /// The message.
    pub message: String,
    /// Its attributes.
    pub attributes: CollectedAttributes,
    /// The trace of its request.
    pub trace: Option<String>,
}

/// A running collector.
pub struct Collector {
    receiver: Receiver,
}

impl Collector {
    /// A collector that takes everything.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start() -> Self {
        let receiver = Receiver::start().await;
        let json = "Content-Type: application/json".to_owned();
        receiver.usually(Reply::Whole(200, vec![json], b"{}".to_vec()));
        Self { receiver }
    }

    /// What receives its requests.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Every span so far.
    ///
    /// # Panics
    /// When something is not OTLP.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        self.records("/v1/traces", ["resourceSpans", "scopeSpans", "spans"]).iter().map(span).collect()
    }

    /// Every line so far.
    ///
    /// # Panics
    /// When something is not OTLP.
    pub fn lines(&self) -> Vec<CollectedLine> {
        self.records("/v1/logs", ["resourceLogs", "scopeLogs", "logRecords"]).iter().map(line).collect()
    }

    /// The spans of the trace of a request, when the span of the request has arrived.
    ///
    /// # Panics
    /// When it does not arrive.
    pub async fn trace_of(&self, request: &str) -> Vec<CollectedSpan> {
        patiently("the span of a request", async {
            loop {
                let spans = self.spans();
                let is_own = |span: &&CollectedSpan| {
                    span.attributes.get("stagedoor.request_id").is_some_and(|id| id == request)
                };
                if let Some(own) = spans.iter().find(is_own) {
                    return spans.iter().filter(|span| span.trace == own.trace).cloned().collect();
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await
    }

    fn records(&self, path: &str, [resources, scopes, records]: [&str; 3]) -> Vec<Value> {
        let line = format!("POST {path} HTTP/1.1");
        let bodies = self.receiver.received().into_iter().filter(|received| received.line == line);
        let bodies: Vec<Value> = bodies.map(|received| body(&received)).collect();
        let inner = |value: &Value, key: &str| value[key].as_array().expect("a list").clone();
        let of_resource = |resource: Value| {
            let attributes = attributes(&resource["resource"]);
            assert_eq!(attributes["service.name"], "stagedoor");
            assert!(attributes.contains_key("service.version"), "{attributes:?}");
            assert_eq!(attributes["service.instance.id"].len(), 16);
            inner(&resource, scopes)
        };
        let scoped = bodies.iter().flat_map(|body| inner(body, resources)).flat_map(of_resource);
        scoped.flat_map(|scope| inner(&scope, records)).collect()
    }
}

fn body(received: &Received) -> Value {
    assert_eq!(received.header("content-type"), "application/json");
    serde_json::from_slice(&received.body).expect("the body is JSON")
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is no text: {value}")).to_owned()
}

/// An id of this many hexadecimal digits that is not zero.
fn id(value: &Value, key: &str, digits: usize) -> String {
    let id = text(value, key);
    let is_hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    assert!(id.len() == digits && is_hex && id.bytes().any(|byte| byte != b'0'), "{key}: {id}");
    id
}

fn nanoseconds(value: &Value, key: &str) -> u64 {
    text(value, key).parse().expect("nanoseconds")
}

fn attributes(of: &Value) -> CollectedAttributes {
    let list = of["attributes"].as_array().expect("attributes").iter();
    let one = |attribute: &Value| {
        let value = attribute["value"].as_object().expect("a value");
        let (kind, value) = value.iter().next().expect("a value");
        assert!(["stringValue", "intValue", "boolValue", "doubleValue"].contains(&kind.as_str()), "{kind}");
        (text(attribute, "key"), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let all: CollectedAttributes = list.clone().map(one).collect();
    assert_eq!(all.len(), list.len(), "an attribute comes twice: {of}");
    all
}

fn span(value: &Value) -> CollectedSpan {
    let (began, ended) = (nanoseconds(value, "startTimeUnixNano"), nanoseconds(value, "endTimeUnixNano"));
    assert!(began <= ended && began > 1_700_000_000_000_000_000, "{value}");
    CollectedSpan {
        trace: id(value, "traceId", 32),
        id: id(value, "spanId", 16),
        parent: value.get("parentSpanId").map(|_| id(value, "parentSpanId", 16)),
        name: text(value, "name"),
        kind: value["kind"].as_u64().expect("a kind"),
        took_ns: ended - began,
        attributes: attributes(value),
        has_failed: value["status"]["code"] == 2,
    }
}

fn line(value: &Value) -> CollectedLine {
    nanoseconds(value, "timeUnixNano");
    assert!(value["severityNumber"].as_u64().is_some_and(|number| (1..=24).contains(&number)), "{value}");
    CollectedLine {
        severity: text(value, "severityText"),
        message: text(&value["body"], "stringValue"),
        attributes: attributes(value),
        trace: value.get("traceId").map(|_| id(value, "traceId", 32)),
    }
}

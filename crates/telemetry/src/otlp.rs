//! The JSON of OTLP over HTTP: ids as hexadecimal digits, numbers of 64 bits as texts.

use serde_json::{Value, json};
use tracing::Level;

use crate::record::{AttributeValue, Attributes, LogRecord, SpanKind, SpanRecord};

/// What all records of a process have in common.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// Names the process among those of the service.
    pub instance: String,
}

impl Resource {
    fn json(&self) -> Value {
        json!({ "attributes": [
            text("service.name", "stagedoor"),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", &self.instance),
        ] })
    }
}

/// The body of a request to `/v1/traces`.
pub(crate) fn traces(resource: &Resource, spans: &[SpanRecord]) -> Value {
    let spans: Vec<_> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{
        "resource": resource.json(),
        "scopeSpans": [{ "scope": { "name": "stagedoor" }, "spans": spans }],
    }] })
}

/// The body of a request to `/v1/logs`.
pub(crate) fn logs(resource: &Resource, records: &[LogRecord]) -> Value {
    let records: Vec<_> = records.iter().map(log).collect();
    json!({ "resourceLogs": [{
        "resource": resource.json(),
        "scopeLogs": [{ "scope": { "name": "stagedoor" }, "logRecords": records }],
    }] })
}

fn span(span: &SpanRecord) -> Value {
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    };
    let mut json = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": span.began_ns.to_string(),
        "endTimeUnixNano": span.ended_ns.to_string(),
        "attributes": attributes(&span.attributes),
        // 0 is unset, 2 is an error.
        "status": { "code": if span.has_failed { 2 } else { 0 } },
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = parent.to_string().into();
    }
    json
}

fn log(record: &LogRecord) -> Value {
    let (severity, name) = match record.level {
        Level::TRACE => (1, "TRACE"),
        Level::DEBUG => (5, "DEBUG"),
        Level::INFO => (9, "INFO"),
        Level::WARN => (13, "WARN"),
        Level::ERROR => (17, "ERROR"),
    };
    let mut list = attributes(&record.attributes);
    list.push(text("code.namespace", record.target));
    list.extend(record.request.as_deref().map(|id| text("stagedoor.request_id", id)));
    let mut json = json!({
        "timeUnixNano": record.at_ns.to_string(),
        "observedTimeUnixNano": record.at_ns.to_string(),
        "severityNumber": severity,
        "severityText": name,
        "body": { "stringValue": record.message },
        "attributes": list,
    });
    if let Some((trace, span, is_sampled)) = record.span {
        json["traceId"] = trace.to_string().into();
        json["spanId"] = span.to_string().into();
        json["flags"] = u8::from(is_sampled).into();
    }
    json
}

fn attributes(attributes: &Attributes) -> Vec<Value> {
    let value = |value: &AttributeValue| match value {
        AttributeValue::Text(text) => json!({ "stringValue": text }),
        AttributeValue::Integer(number) => json!({ "intValue": number.to_string() }),
        AttributeValue::Float(number) => json!({ "doubleValue": number }),
        AttributeValue::Flag(flag) => json!({ "boolValue": flag }),
    };
    attributes.0.iter().map(|(name, found)| json!({ "key": name, "value": value(found) })).collect()
}

fn text(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_context::{SpanId, TraceId};

    #[test]
    fn a_span_and_a_line_are_spelled_as_the_protocol_wants_them() {
        let list = Attributes(vec![
            ("text", AttributeValue::Text("가\"".to_owned())),
            ("integer", AttributeValue::Integer(-1)),
            ("float", AttributeValue::Float(0.5)),
            ("flag", AttributeValue::Flag(true)),
        ]);
        let (trace, id) = (TraceId::of(0xa, 0xb), SpanId::of(0xc));
        let record = SpanRecord {
            trace,
            id,
            parent: Some(SpanId::of(0xd)),
            name: "GET /a".to_owned(),
            kind: SpanKind::Server,
            began_ns: 1_764_115_200_000_000_000,
            ended_ns: 1_764_115_200_000_000_001,
            attributes: list,
            has_failed: true,
        };
        let resource = Resource { instance: "i".to_owned() };
        let body = traces(&resource, &[record]);
        assert_eq!(
            body["resourceSpans"][0]["scopeSpans"][0]["spans"][0],
            json!({
                "traceId": "000000000000000a000000000000000b", "spanId": "000000000000000c",
                "parentSpanId": "000000000000000d", "name": "GET /a", "kind": 2,
                "startTimeUnixNano": "1764115200000000000", "endTimeUnixNano": "1764115200000000001",
                "attributes": [
                    { "key": "text", "value": { "stringValue": "가\"" } },
                    { "key": "integer", "value": { "intValue": "-1" } },
                    { "key": "float", "value": { "doubleValue": 0.5 } },
                    { "key": "flag", "value": { "boolValue": true } },
                ],
                "status": { "code": 2 },
            })
        );
        let line = LogRecord {
            at_ns: 7,
            level: Level::WARN,
            target: "web::finish",
            message: "a request failed".to_owned(),
            attributes: Attributes::default(),
            span: Some((trace, id, true)),
            request: Some("r".to_owned()),
        };
        let body = logs(&resource, &[line]);
        assert_eq!(
            body["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0],
            json!({
                "timeUnixNano": "7", "observedTimeUnixNano": "7", "severityNumber": 13, "severityText": "WARN",
                "body": { "stringValue": "a request failed" },
                "attributes": [
                    { "key": "code.namespace", "value": { "stringValue": "web::finish" } },
                    { "key": "stagedoor.request_id", "value": { "stringValue": "r" } },
                ],
                "traceId": trace.to_string(), "spanId": id.to_string(), "flags": 1,
            })
        );
        assert_eq!(body["resourceLogs"][0]["resource"]["attributes"][0]["key"], "service.name");
    }
}

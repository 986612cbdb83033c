//! What is exported: spans, and lines of the log.

use std::fmt::Debug;

use tracing::field::{Field, Visit};

use crate::trace_context::{SpanId, TraceId};

/// Maximum length of a text, in bytes.
const TEXT_BYTES_MAX: usize = 2_048;
/// Maximum number of attributes of a record.
const ATTRIBUTES_MAX: usize = 32;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AttributeValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
}

/// The attributes of a record, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attributes(pub Vec<(&'static str, AttributeValue)>);

impl Attributes {
    fn put(&mut self, name: &'static str, value: AttributeValue) {
        let has_room = self.0.len() < ATTRIBUTES_MAX;
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some(known) => known.1 = value,
            None if has_room => self.0.push((name, value)),
            None => {}
        }
    }

    /// The text of an attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.iter().find(|(other, _)| *other == name) {
            Some((_, AttributeValue::Text(text))) => Some(text),
            _ => None,
        }
    }

    /// The number of an attribute.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.0.iter().find(|(other, _)| *other == name) {
            Some((_, AttributeValue::Integer(number))) => Some(*number),
            _ => None,
        }
    }

    /// Removes the text of an attribute.
    pub fn take_text(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(other, _)| *other == name)?;
        match self.0.remove(place) {
            (_, AttributeValue::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// The fields of a span or an event.
impl Visit for Attributes {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), AttributeValue::Text(clipped(value).to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = format!("{value:?}");
        text.truncate(clipped(&text).len());
        self.put(field.name(), AttributeValue::Text(text));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), AttributeValue::Integer(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), AttributeValue::Integer(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), AttributeValue::Float(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), AttributeValue::Flag(value));
    }
}

/// The beginning of a text that is too long.
fn clipped(text: &str) -> &str {
    let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// What a span is to its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// It answers a request.
    Server,
    /// It makes a request.
    Client,
    /// A part of another span.
    Internal,
}

/// A span that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpanRecord {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: SpanKind,
    /// In nanoseconds since 1970.
    pub began_ns: u64,
    pub ended_ns: u64,
    pub attributes: Attributes,
    pub has_failed: bool,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogRecord {
    /// In nanoseconds since 1970.
    pub at_ns: u64,
    pub level: tracing::Level,
    /// The module that logged it.
    pub target: &'static str,
    pub message: String,
    pub attributes: Attributes,
    /// The span in which it was logged, and whether the span is traced.
    pub span: Option<(TraceId, SpanId, bool)>,
    /// The id of the request.
    pub request: Option<String>,
}

/// Something to export.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TelemetryRecord {
    Span(Box<SpanRecord>),
    Log(Box<LogRecord>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_have_a_limit() {
        let long = "가".repeat(TEXT_BYTES_MAX);
        assert_eq!(clipped(&long).len(), TEXT_BYTES_MAX - TEXT_BYTES_MAX % 3);
        assert_eq!(clipped("short"), "short");
        let mut attributes = Attributes::default();
        for name in ["a", "a", "b"] {
            attributes.put(name, AttributeValue::Integer(1));
        }
        assert_eq!(attributes.0.len(), 2);
        attributes.put("a", AttributeValue::Text("new".to_owned()));
        assert_eq!((attributes.text("a"), attributes.integer("b")), (Some("new"), Some(1)));
        assert_eq!((attributes.take_text("a").as_deref(), attributes.text("a")), (Some("new"), None));
    }
}

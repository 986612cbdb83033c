//! Times as text: RFC 3339. Durations as text are [`domain::span`].

use domain::Timestamp;
use serde::Serializer;

pub(crate) use domain::span::{SPAN_RULE, parse_span};

/// Writes a time for JSON: RFC 3339 in UTC with milliseconds.
pub(crate) fn rfc3339<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.rfc3339())
}

/// The same for a time that may be absent.
pub(crate) fn optional_rfc3339<S: Serializer>(
    at: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => rfc3339(at, serializer),
        None => serializer.serialize_none(),
    }
}

//! Reads JSON bodies. A refusal names the field. Unknown fields are refused, because they are typing errors.

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::answer::Problem;

/// Maximum length of a JSON body, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// A JSON body. An empty body is an object without fields. `T` denies unknown fields.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let too_large = |_| Problem::invalid("body", "must be at most 64 KiB of JSON");
        let bytes = to_bytes(request.into_body(), BODY_BYTES_MAX).await.map_err(too_large)?;
        read(&bytes).map(Self)
    }
}

/// Reads a value from JSON.
pub(super) fn read<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, Problem> {
    let bytes = bytes.trim_ascii();
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    if bytes[0] != b'{' {
        return Err(Problem::invalid("body", "must be a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "body" } else { &path };
        Problem::invalid(field, rule(&error.inner().to_string()))
    })
}

/// Reads a value from an object.
pub(super) fn of<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, Problem> {
    read(&Bytes::from(Value::Object(fields).to_string()))
}

/// The rule of a value, without its position in the text: the field is named.
fn rule(message: &str) -> String {
    let end = message.rfind(" at line ").unwrap_or(message.len());
    message[..end].to_owned()
}

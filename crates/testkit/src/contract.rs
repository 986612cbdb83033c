//! Checks every answer and every event of every test against the documents in `docs/api/`.
//!
//! The check is stricter than the documents: a field of an answer that they do not describe is an error.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::schema::Document;
use crate::{Request, Response};

static OPENAPI: LazyLock<Document> = LazyLock::new(|| Document::without_unnamed_fields(OPENAPI_JSON));
static ASYNCAPI: LazyLock<Document> =
    LazyLock::new(|| Document::without_unnamed_fields(include_str!("../../../docs/api/asyncapi.json")));
/// For bodies of requests: whether a field that the document does not name is an error is up to the service.
static PUBLISHED_OPENAPI: LazyLock<Document> = LazyLock::new(|| Document::as_published(OPENAPI_JSON));

const OPENAPI_JSON: &str = include_str!("../../../docs/api/openapi.json");

const RENEW: &str = "if the documents are stale: UPDATE_CONTRACTS=1 cargo test -p server --test it contract";

/// Checks an answer, and the body of an accepted request.
///
/// # Panics
/// When the documents do not allow the answer or the body. The message names the operation, the place and the
/// value.
pub(crate) fn check_answer(request: &Request, response: &Response) {
    let path = request.target().split('?').next().unwrap_or_default();
    // A malformed request is not a call of an operation.
    let unread = response.status == 400 && response.header("x-request-id").is_none();
    let elsewhere = request.is_elsewhere() && response.status == 404;
    if (unread && response.body.is_empty()) || elsewhere {
        return;
    }
    let Some((template, methods)) = methods_of(path) else { return };
    let mut methods = methods.as_object().into_iter().flatten();
    // Methods are case-sensitive. An undescribed method is refused as the router refuses it.
    let operation = methods.find(|(method, _)| method.to_uppercase() == request.method());
    let Some((method, operation)) = operation else { return };
    let name = format!("{} {template}", request.method());
    let described = resolve(&operation["responses"][response.status.to_string()]);
    assert!(
        !described.is_null(),
        "{name} answered {}, which is not documented: {}\n{RENEW}",
        response.status,
        String::from_utf8_lossy(&response.body)
    );
    check_headers(&name, described, response);
    check_body(&name, described, response);
    let published = &PUBLISHED_OPENAPI.content["paths"][template][method];
    let schema = &published["requestBody"]["content"]["application/json"]["schema"];
    if let (true, Some(body)) = (response.status == 200 && schema.is_object(), request.sent_json())
        && let Err(wrong) = PUBLISHED_OPENAPI.check(schema, &body)
    {
        panic!("{name} took a body that its document forbids: {wrong}\n{RENEW}");
    }
}

/// Checks the payload of an event on the socket.
///
/// # Panics
/// When the documents do not allow the payload.
pub(crate) fn check_event(name: &str, payload: &str) {
    let messages = ASYNCAPI.content["components"]["messages"].as_object().expect("messages");
    let message = messages.values().find(|message| message["x-event"] == name);
    let message = message.unwrap_or_else(|| panic!("the event {name} is not documented\n{RENEW}"));
    let value: Value = serde_json::from_str(payload).expect("a payload is JSON");
    if let Err(wrong) = ASYNCAPI.check(&message["payload"], &value) {
        panic!("{name}: {wrong} in {payload}\n{RENEW}");
    }
}

fn check_headers(name: &str, described: &Value, response: &Response) {
    for (header, described) in described["headers"].as_object().into_iter().flatten() {
        let described = resolve(described);
        let present = response.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(header));
        let Some((_, text)) = present else {
            assert!(described["required"] != true, "{name}: no {header} at {}", response.status);
            continue;
        };
        let value = text.parse::<i64>().map_or_else(
            |_| json!(text),
            |number| match &described["schema"] {
                schema if schema["type"] == "integer" => json!(number),
                _ => json!(text),
            },
        );
        if let Err(wrong) = OPENAPI.check(&described["schema"], &value) {
            panic!("{name}: the header {header}: {wrong}");
        }
    }
}

fn check_body(name: &str, described: &Value, response: &Response) {
    let Some(content) = described["content"].as_object() else {
        assert!(response.body.is_empty(), "{name}: {} has a body", response.status);
        return;
    };
    let sent = response.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default();
    let content = content.get(sent);
    let schema =
        content.unwrap_or_else(|| panic!("{name}: {sent:?} is not documented for {}", response.status));
    if sent == "application/json"
        && let Err(wrong) = OPENAPI.check(&schema["schema"], &response.json())
    {
        panic!("{name} answered {} otherwise than documented: {wrong}\n{RENEW}", response.status);
    }
}

/// The path of the document that matches a request's path. A literal path is preferred to one with
/// parameters.
fn methods_of(path: &str) -> Option<(&'static str, &'static Value)> {
    let paths = OPENAPI.content["paths"].as_object()?;
    if let Some((template, methods)) = paths.get_key_value(path) {
        return Some((template, methods));
    }
    let fits = |template: &str| {
        let (mut named, mut given) = (template.split('/'), path.split('/'));
        loop {
            match (named.next(), given.next()) {
                (None, None) => return true,
                (Some(name), Some(given)) if name == given => {}
                (Some(name), Some(given)) if name.starts_with('{') && !given.is_empty() => {}
                _ => return false,
            }
        }
    };
    paths.iter().find(|(template, _)| fits(template)).map(|(template, methods)| (template.as_str(), methods))
}

fn resolve(described: &Value) -> &Value {
    match described["$ref"].as_str() {
        Some(reference) => OPENAPI.content.pointer(&reference[1..]).unwrap_or(&Value::Null),
        None => described,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the check passes for an answer to `GET /open/v1/users/me`.
    fn passes(request_id: &str, body: &Value) -> bool {
        let headers = [("content-type", "application/json"), ("x-request-id", request_id)];
        let response = Response {
            status: 200,
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            body: body.to_string().into(),
        };
        std::panic::catch_unwind(|| check_answer(&Request::get("/open/v1/users/me"), &response)).is_ok()
    }

    #[test]
    fn an_answer_that_the_documents_do_not_allow_fails_the_test() {
        let request_id = "0123456789abcdef0123";
        let body = |content: Value| json!({ "code": 200, "message": null, "content": content });
        assert!(passes(request_id, &body(json!({ "channelId": "a", "channelName": "b" }))));
        assert!(!passes("0123", &body(json!({ "channelId": "a", "channelName": "b" }))), "a header");
        assert!(!passes(request_id, &body(json!({ "channelId": "a" }))), "a field is missing");
        assert!(!passes(request_id, &body(json!({ "channelId": "a", "channelName": 1 }))), "another type");
        let more = json!({ "channelId": "a", "channelName": "b", "more": 1 });
        assert!(!passes(request_id, &body(more)), "a field that is not documented");
        assert!(!passes(request_id, &json!({ "code": 200 })), "no envelope");
    }
}

//! The OpenAPI 3.1 document.

use domain::quota::Quota;
use domain::{Scope, Word};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::operation::{Operation, Output, Section, Security, Summary};
use crate::envelope::FailureBody;
use crate::input::shape::{self, Field};

/// The meaning of each refusal status.
pub const REFUSALS: [(u16, &str); 8] = [
    (400, "A wrong value: the message names the field and what it may be, or what does not fit."),
    (401, "Who calls is not proven: `UNAUTHORIZED`, `INVALID_CLIENT` or `INVALID_TOKEN`."),
    (403, "The caller may not: the scope is missing, or a rule of the channel is against it."),
    (404, "There is no such thing: `NOT_FOUND`."),
    (405, "The path has other methods, which `Allow` names: `METHOD_NOT_ALLOWED`."),
    (
        429,
        "A quota is used up, and `Retry-After` says when to come back; or there are as many as there may be, and waiting \
         does not help: `TOO_MANY_REQUESTS`.",
    ),
    (500, "Our fault: `INTERNAL_SERVER_ERROR`."),
    (
        503,
        "The service cannot write now, and nothing was written: `SERVICE_UNAVAILABLE`. `Retry-After` says when to come back.",
    ),
];

const DESCRIPTION: &str = "\
Every answer is JSON in an envelope: `{\"code\":200,\"message\":null,\"content\":…}`, or `{\"code\":…,\"message\":\"…\"}` with \
`code` equal to the HTTP status. A path that is not listed is 404, a method that is not listed 405.

Checks are made in this order: 401, 429, 403, 400, 404. Why a request was refused stands in the header \
`Stagedoor-Reason`; messages that are sentences follow `Accept-Language` (ko, en).

An application follows one of two profiles, `documented` (the default) and `observed`. What only the observed profile \
has is described as optional; programs should ignore fields that they do not know.

In request bodies `null` means absent, unknown fields are ignored, integers are written without fraction and exponent, and \
64 KiB is the most. Scopes are chosen in the \
application's settings; `x-scope` names the one that an operation needs.";

/// The whole document.
pub fn document(operations: &[Operation]) -> Value {
    let mut generator = super::generator(SchemaSettings::draft2020_12());
    let mut paths = Map::new();
    for operation in operations {
        let described = describe(operation, &mut generator);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_lowercase()] = described;
    }
    let tag = |section: &Section| json!({ "name": section.tag, "description": section.about, "x-name-ko": section.korean });
    let tags = sections(operations).into_iter().map(tag);
    let (tags, responses) = (tags.collect::<Value>(), refusals(&mut generator));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stagedoor",
            "summary": "The open API of a live-streaming platform, and the platform API behind it",
            "description": DESCRIPTION,
            "version": "1",
            "contact": super::CONTACT.clone(),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "Wherever this document is served" }],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": security_schemes(),
            "headers": headers(),
            "responses": responses,
            "schemas": generator.take_definitions(true),
        },
    })
}

/// The sections of these operations, in their order.
pub fn sections(operations: &[Operation]) -> Vec<&'static Section> {
    let mut sections: Vec<_> = operations.iter().map(|operation| operation.section).collect();
    sections.dedup_by_key(|section| section.tag);
    sections
}

fn describe(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let Summary { id, english, korean, .. } = operation.summary;
    let mut described = json!({
        "tags": [operation.section.tag],
        "operationId": id,
        "summary": english,
        "x-summary-ko": korean,
        "description": description(operation),
        "security": security(operation.security),
        "parameters": parameters(operation),
        "responses": responses(operation, generator),
    });
    if let Some(scope) = operation.scope {
        described["x-scope"] = json!(scope.name());
    }
    if let Some((media_types, schema)) = &operation.body {
        let content = media_types.iter().map(|name| ((*name).to_owned(), json!({ "schema": schema })));
        let content: Map<_, _> = content.collect();
        described["requestBody"] = json!({ "required": operation.body_required, "content": content });
    }
    described
}

fn description(operation: &Operation) -> String {
    let mut text = match (operation.security, operation.scope) {
        (Security::None, _) => "Without authentication headers.".to_owned(),
        (Security::User, Some(scope)) => format!("An access token with the scope {}.", scope.name()),
        (Security::User, None) => "Any access token.".to_owned(),
        (Security::Client, Some(Scope::Drops)) => {
            "Client authentication, of an application with the scope 드롭스 that a verified organization owns."
                .to_owned()
        }
        (Security::Client, _) => "Client authentication.".to_owned(),
        (Security::Operator(role), _) => format!("An operator key with the role `{}`.", role.name()),
    };
    if let Some(Quota { limit, period_s }) = operation.quota {
        text.push_str(&format!(" Besides the quota of its mode: {limit} in {period_s} s."));
    }
    text
}

fn security(security: Security) -> Value {
    match security {
        Security::None => json!([]),
        Security::User => json!([{ "AccessToken": [] }]),
        Security::Client => json!([{ "ClientId": [], "ClientSecret": [] }]),
        Security::Operator(_) => json!([{ "OperatorKey": [] }]),
    }
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let path = operation.path_names().map(|name| parameter("path", &shape::required(name, shape::id())));
    let query = operation.query.iter().map(|field| parameter("query", field));
    let header = operation.headers.iter().map(|field| parameter("header", field));
    path.chain(query).chain(header).collect()
}

fn parameter(place: &str, field: &Field) -> Value {
    let mut schema = field.kind.clone().schema();
    let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    let mut parameter = json!({ "name": field.name, "in": place, "required": field.required });
    if let Some(description) = description {
        parameter["description"] = description;
    }
    if schema["type"] == "array" {
        parameter["style"] = json!("form");
        parameter["explode"] = json!(false);
    }
    parameter["schema"] = schema;
    parameter
}

fn responses(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    match operation.output {
        Output::Content(content) => {
            let schema = json!({ "application/json": { "schema": content(generator) } });
            responses.insert("200".into(), response("Done.", false, schema));
            for status in operation.refusals.iter().chain(operation.summary.refusals) {
                let name = format!("#/components/responses/{status}");
                responses.insert(status.to_string(), json!({ "$ref": name }));
            }
        }
        Output::Page => {
            let page = json!({ "text/html": { "schema": { "type": "string" } } });
            responses.insert("200".into(), response("The next page.", false, page.clone()));
            responses.insert("400".into(), refusing("A page that names the mistake.", false, page.clone()));
            if operation.method == "POST" {
                let mut redirect =
                    response("Back to the application, with `code` and `state`.", false, json!({}));
                redirect["headers"]["Location"] = json!({ "schema": { "type": "string" }, "required": true });
                responses.insert("303".into(), redirect);
                responses
                    .insert("429".into(), refusing("The page once more, for later.", true, page.clone()));
            }
            let fault = |retry| refusing("A page that says it is our fault.", retry, page.clone());
            responses.insert("500".into(), fault(false));
            responses.insert("503".into(), fault(true));
        }
    }
    responses.into()
}

/// The refusals, by status. Operations refer to them. No operation lists 405.
fn refusals(generator: &mut SchemaGenerator) -> Value {
    let schema = generator.subschema_for::<FailureBody<'_>>();
    let content = json!({ "application/json": { "schema": schema } });
    let refusal = |(status, text): (u16, &str)| {
        (status.to_string(), refusing(text, matches!(status, 429 | 503), content.clone()))
    };
    REFUSALS.into_iter().filter(|(status, _)| *status != 405).map(refusal).collect::<Map<_, _>>().into()
}

/// A refusal's response, with its reason header.
fn refusing(description: &str, retry: bool, content: Value) -> Value {
    let mut response = response(description, retry, content);
    response["headers"]["Stagedoor-Reason"] = json!({ "$ref": "#/components/headers/Stagedoor-Reason" });
    response
}

fn response(description: &str, retry: bool, content: Value) -> Value {
    let names = ["X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];
    let names = names.into_iter().chain(retry.then_some("Retry-After"));
    let header = |name: &str| (name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }));
    let mut response = json!({ "description": description });
    response["headers"] = names.map(header).collect::<Map<_, _>>().into();
    if content.as_object().is_some_and(|content| !content.is_empty()) {
        response["content"] = content;
    }
    response
}

fn headers() -> Value {
    let words: Vec<_> = Word::ALL.iter().map(|word| word.name()).collect();
    let number = |required: bool, text: &str| json!({ "description": text, "required": required, "schema": { "type": "integer", "minimum": 0 } });
    json!({
        "X-Request-Id": {
            "description": "Names this request in the service's log.",
            "required": true,
            "schema": { "type": "string", "pattern": "^[0-9a-f]{20}$" },
        },
        "RateLimit-Limit": number(false, "Requests that fit into one period of the tightest quota. Left out where quotas are off."),
        "RateLimit-Remaining": number(false, "Requests that would be let through right now."),
        "RateLimit-Reset": number(false, "Seconds until that quota is whole again."),
        "Retry-After": number(false, "Seconds after which it is worth another try. Left out where waiting does not help."),
        "Stagedoor-Reason": {
            "description": format!("Why: one of the words {}, and details as `; key=value`. New details may come, so \
                programs look for those that they know.", words.join(", ")),
            "required": true,
            "schema": { "type": "string", "pattern": format!("^({})(; [a-z]+=[^ ;,]+)*$", words.join("|")) },
        },
    })
}

fn security_schemes() -> Value {
    let header = |name: &str, text: &str| json!({ "type": "apiKey", "in": "header", "name": name, "description": text });
    json!({
        "AccessToken": {
            "type": "http", "scheme": "bearer",
            "description": "A user's access token, from `/auth/v1/token`. It lives one day.",
        },
        "ClientId": header("Client-Id", "The application's id."),
        "ClientSecret": header("Client-Secret", "The application's secret."),
        "OperatorKey": {
            "type": "http", "scheme": "bearer",
            "description": "The key of the platform API. No application's credentials open it.",
        },
    })
}

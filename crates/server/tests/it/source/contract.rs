//! The documents of the service: the checked-in files are current, the service serves them, they describe
//! every endpoint correctly, and the service refuses what they forbid. `testkit` checks every answer of every
//! test against them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Request, Setup, both};

use crate::api::endpoints::{ENDPOINTS, Endpoint, Mode};
use crate::fixture::Fixture;

/// The environment variable that renews the documents instead of comparing them.
const UPDATE: &str = "UPDATE_CONTRACTS";

fn documents() -> [(&'static str, Value); 2] {
    [("openapi.json", web::documents::openapi()), ("asyncapi.json", web::documents::asyncapi())]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api")
}

#[test]
fn the_checked_in_documents_are_current() {
    for (name, document) in documents() {
        let (path, text) = (folder().join(name), web::documents::text(&document));
        if std::env::var_os(UPDATE).is_some() {
            fs::write(&path, &text).expect("the document is written");
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == text,
            "docs/api/{name} is stale; renew it with\n  {UPDATE}=1 cargo test -p server --test it contract"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documents_are_public_and_cacheable() {
    both(Setup { quotas: true, ..Setup::default() }, |world| async move {
        for (name, document) in documents() {
            let answer = world.send(Request::get(format!("/{name}"))).await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.header("cache-control"), Some("public, max-age=600"));
            assert_eq!(answer.text(), web::documents::text(&document));
        }
        world.send(Request::post("/openapi.json")).await.assert_refused(405, "METHOD_NOT_ALLOWED");
    })
    .await;
}

/// Method and path of each operation, with its security and scope.
fn described() -> BTreeMap<String, (Value, Value)> {
    let document = web::documents::openapi();
    let mut operations = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let name = format!("{} {path}", method.to_uppercase());
            operations.insert(name, (operation["security"].clone(), operation["x-scope"].clone()));
        }
    }
    operations
}

#[test]
fn exactly_the_endpoints_are_described_with_mode_and_scope() {
    let pages = ["GET /account-interlock", "POST /account-interlock"];
    let mut expected: BTreeMap<_, _> =
        pages.map(|page| (page.to_owned(), (json!([]), Value::Null))).into_iter().collect();
    for Endpoint { method, path, mode, .. } in ENDPOINTS.iter() {
        let (security, scope) = match mode {
            Mode::Body => (json!([]), None),
            Mode::Client => (json!([{ "ClientId": [], "ClientSecret": [] }]), None),
            Mode::Drops => (json!([{ "ClientId": [], "ClientSecret": [] }]), Some(domain::Scope::Drops)),
            Mode::User(scope) => (json!([{ "AccessToken": [] }]), *scope),
            Mode::Operator => (json!([{ "OperatorKey": [] }]), None),
        };
        expected.insert(format!("{method} {path}"), (security, json!(scope.map(domain::Scope::name))));
    }
    assert_eq!(described(), expected);
}

/// Readers of the documents do not have the repository.
#[test]
fn the_documents_do_not_refer_to_the_repository() {
    for (name, document) in documents() {
        let text = web::documents::text(&document);
        for reference in ["spec ", "docs/spec", "docs/adr", "section "] {
            assert!(!text.contains(reference), "{name} mentions {reference:?}");
        }
    }
}

#[test]
fn every_success_is_a_named_envelope_schema() {
    let document = web::documents::openapi();
    let mut names = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let Some(content) = operation["responses"]["200"]["content"].get("application/json") else {
                continue;
            };
            let name = content["schema"]["$ref"].as_str().unwrap_or_default();
            assert!(name.ends_with("Envelope"), "{method} {path}: {content}");
            assert!(document.pointer(&name[1..]).is_some(), "{name}");
            names.push(name.to_owned());
        }
    }
    assert!(names.len() > 60, "{}", names.len());
    let numbered = names.iter().find(|name| name.contains(|c: char| c.is_ascii_digit()));
    assert_eq!(numbered, None, "two schemas have one name");
}

#[test]
fn every_operation_is_completely_described() {
    let document = web::documents::openapi();
    let mut names = Vec::new();
    for operation in document["paths"]
        .as_object()
        .expect("paths")
        .values()
        .flat_map(|path| path.as_object().expect("methods").values())
    {
        for key in ["operationId", "summary", "x-summary-ko", "description", "tags", "responses"] {
            assert!(!operation[key].is_null(), "{key} is missing: {operation}");
        }
        names.push(operation["operationId"].as_str().expect("a text"));
    }
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "an operationId stands twice");
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            let described = schema.get("description").or(schema.get("$ref")).or(schema.get("anyOf"));
            assert!(described.is_some(), "{name}.{field} has no doc comment");
        }
    }
}

/// Bodies that a schema forbids, each made from a good one by one change.
fn forbidden(schema: &Value, good: &Value) -> Vec<(String, Value)> {
    let mut bodies = Vec::new();
    let mut with = |what: String, field: &str, value: Option<Value>| {
        let mut body = good.clone();
        let fields = body.as_object_mut().expect("an object");
        match value {
            Some(value) => drop(fields.insert(field.to_owned(), value)),
            None => drop(fields.remove(field)),
        }
        bodies.push((what, body));
    };
    for field in schema["required"].as_array().into_iter().flatten() {
        let field = field.as_str().expect("a name");
        with(format!("without {field}"), field, None);
        with(format!("{field} null"), field, Some(Value::Null));
    }
    for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
        for (what, value) in beyond(schema) {
            with(format!("{field}: {what}"), field, Some(value));
        }
    }
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    let there = |name: &Value| !good[name.as_str().expect("a name")].is_null();
    for variant in
        variants.filter(|variant| variant["required"].as_array().is_some_and(|all| all.iter().all(there)))
    {
        bodies.extend(forbidden(variant, good));
    }
    bodies
}

/// Values that a field's schema forbids.
fn beyond(schema: &Value) -> Vec<(&'static str, Value)> {
    let schema = schema.get("anyOf").map_or(schema, |either| &either[0]);
    let kind = schema["type"].as_str().or(schema["type"][0].as_str()).expect("a type");
    let mut values = vec![("another type", if kind == "boolean" { json!("true") } else { json!(true) })];
    let number = |key: &str| schema[key].as_i64();
    let long = |more: i64| "가".repeat(usize::try_from(more).expect("a length"));
    if schema.get("enum").is_some() {
        values.push(("not of the list", if kind == "string" { json!("ELSE") } else { json!(-7) }));
    }
    values.extend(number("minimum").map(|min| ("below", json!(min - 1))));
    values.extend(number("maximum").map(|max| ("above", json!(max + 1))));
    values.extend(number("minLength").filter(|min| *min > 0).map(|min| ("too short", json!(long(min - 1)))));
    values.extend(number("maxLength").map(|max| ("too long", json!(long(max + 1)))));
    if schema.get("format").is_some() {
        values.push(("no date", json!("yesterday")));
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    values.extend((kind == "string" && schema.get("enum").is_none()).then(|| ("a NUL", json!("a\0"))));
    if pattern.contains("\\S") {
        values.push(("blank", json!(" \t")));
    } else if !["", r"^[^\x00]*$"].contains(&pattern) {
        values.push(("another form", json!("\u{1}가 /")));
    }
    if kind == "array" {
        values.push(("a list of another type", json!([{}])));
        for (_, item) in beyond(&schema["items"]) {
            values.push(("an item that is wrong", json!([item])));
        }
    }
    values
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_the_document_forbids_are_refused() {
    let document = web::documents::openapi();
    both(Setup::default(), move |world| {
        let document = document.clone();
        async move {
            let stage = Fixture::set_up(&world).await;
            let mut tried = 0;
            for endpoint in ENDPOINTS.iter() {
                let operation = &document["paths"][endpoint.path][endpoint.method.to_lowercase()];
                let body = &operation["requestBody"];
                let schema = &body["content"]["application/json"]["schema"];
                let needed = schema.is_object() && body["required"] == true;
                assert_eq!(endpoint.reads_body, needed, "{endpoint:?}");
                let good = match endpoint.body(&stage) {
                    Value::Null => json!({}),
                    body => body,
                };
                for (what, body) in forbidden(schema, &good) {
                    let request = endpoint.proven(&stage, &endpoint.target("x")).json(&body);
                    let answer = world.send(request).await;
                    let proof = what.contains("client");
                    let refused = answer.status == 400 || (proof && answer.status == 401);
                    assert!(refused, "{} {what}: {} {}", endpoint.path, answer.status, answer.text());
                    tried += 1;
                }
            }
            assert!(tried > 50, "only {tried} were tried");
        }
    })
    .await;
}

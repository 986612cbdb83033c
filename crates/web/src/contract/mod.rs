//! The contract: machine-readable documents of the service's interface.
//!
//! - `/openapi.json`: every REST operation (OpenAPI 3.1). Method and path come from the router. Security,
//!   scope, input and output come from the handlers' signatures ([`routes`]), answers from the serialized
//!   types (`JsonSchema`), requests from the [`Form`](crate::input::Form) of each body and query, words from
//!   the [`Summary`] above each handler.
//! - `/asyncapi.json`: the socket's events and the drops webhook (AsyncAPI 3), from the serialized types.
//!
//! `documents.rs` serves both documents, and a page for people. The documents are checked in under
//! `docs/api/`; a test fails when they are stale.

pub mod asyncapi;
pub mod openapi;
mod operation;
pub mod routes;

use std::sync::LazyLock;

use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use serde_json::Value;

pub use operation::{Operation, Section, Security, Summary};

/// The contact. Linters require all three fields. The document is the same for every operator, so the values
/// are general.
static CONTACT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::json!({
        "name": "Whoever runs this service",
        "url": "https://stagedoor.example/",
        "email": "operator@stagedoor.example",
    })
});

/// Makes the schemas of a document from the serialized types.
fn generator(settings: SchemaSettings) -> SchemaGenerator {
    let settings = settings.for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    settings.with_transform(RecursiveTransform(join_lines)).into_generator()
}

/// Joins the lines of a doc comment, which are wrapped for the source. In a document each paragraph is one
/// line.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        let paragraphs = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
        *description = paragraphs.collect::<Vec<_>>().join("\n\n");
    }
}

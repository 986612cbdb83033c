//! The schemas of a document. Each one is compiled when it is first needed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

/// A document of `docs/api/`.
pub(crate) struct Document {
    /// Its text, parsed.
    pub content: Value,
    /// By the text of the schema.
    compiled: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Document {
    /// A document, as it stands.
    ///
    /// # Panics
    /// When it is not JSON.
    pub(crate) fn as_published(text: &str) -> Self {
        let content = serde_json::from_str(text).expect("a document is JSON");
        Self { content, compiled: Mutex::default() }
    }

    /// A document in which an object has only the fields that its schema names, unless the schema describes
    /// further fields.
    ///
    /// # Panics
    /// When it is not JSON.
    pub(crate) fn without_unnamed_fields(text: &str) -> Self {
        let mut document = Self::as_published(text);
        forbid_unnamed_fields(&mut document.content);
        document
    }

    /// Checks a value against a schema of this document. An error names every invalid place and the reason.
    ///
    /// # Panics
    /// When the schema is none.
    pub(crate) fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let validator = self.validator(schema);
        let describe = |error: jsonschema::ValidationError<'_>| match error.instance_path().as_str() {
            "" => error.to_string(),
            place => format!("{place}: {error}"),
        };
        let errors: Vec<_> = validator.iter_errors(value).map(describe).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    fn validator(&self, schema: &Value) -> Arc<Validator> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.entry(schema.to_string()).or_insert_with(|| Arc::new(self.compile(schema))).clone()
    }

    fn compile(&self, schema: &Value) -> Validator {
        let mut schema = schema.clone();
        // The targets of its references.
        if let Some(keywords) = schema.as_object_mut() {
            let shared = self.content["components"]["schemas"].clone();
            let components = Map::from_iter([("schemas".to_owned(), shared)]);
            keywords.insert("components".to_owned(), Value::Object(components));
        }
        let options = jsonschema::draft202012::options().with_pattern_options(PatternOptions::regex());
        options.build(&schema).unwrap_or_else(|error| panic!("no schema: {error}"))
    }
}

fn forbid_unnamed_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(forbid_unnamed_fields);
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_unnamed_fields),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DOCUMENT: &str = r##"{
        "components": { "schemas": {
            "Id": { "type": "string", "pattern": "^[a-z]+$" },
            "Item": { "type": "object", "required": ["id"], "properties": {
                "id": { "$ref": "#/components/schemas/Id" },
                "size": { "type": ["integer", "null"], "minimum": 1, "maximum": 5 }
            } },
            "List": { "type": "array", "items": { "$ref": "#/components/schemas/Item" }, "maxItems": 2 },
            "Map": { "type": "object", "additionalProperties": { "type": "string" }, "properties": { "id": {} } }
        } }
    }"##;

    #[test]
    fn values_against_schemas() {
        let (published, strict) =
            (Document::as_published(DOCUMENT), Document::without_unnamed_fields(DOCUMENT));
        for (schema, value, is_valid, is_strictly_valid) in [
            ("Item", json!({ "id": "a", "size": 5 }), true, true),
            ("Item", json!({ "id": "a", "size": 6 }), false, false),
            ("Item", json!({ "id": "A" }), false, false),
            ("Item", json!({ "size": 1 }), false, false),
            ("Item", json!({ "id": "a", "more": 1 }), true, false),
            ("List", json!([{ "id": "a" }, { "id": "b" }]), true, true),
            ("List", json!([{ "id": "a" }, { "id": "b", "more": 1 }]), true, false),
            ("List", json!([{ "id": "a" }, { "id": "b" }, { "id": "c" }]), false, false),
            ("Map", json!({ "a": "b" }), true, true),
            ("Map", json!({ "a": 1 }), false, false),
        ] {
            let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
            for (document, expected) in [(&published, is_valid), (&strict, is_strictly_valid)] {
                let verdict = document.check(&schema, &value);
                assert_eq!(verdict.is_ok(), expected, "{value}: {verdict:?}");
            }
        }
    }

    #[test]
    fn an_error_names_the_place() {
        let strict = Document::without_unnamed_fields(DOCUMENT);
        let list = json!({ "$ref": "#/components/schemas/List" });
        let wrong = strict.check(&list, &json!([{ "id": "a" }, { "id": "b", "more": 1 }]));
        assert!(wrong.unwrap_err().starts_with("/1: "));
    }
}

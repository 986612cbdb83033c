//! A schema as rows of a table: one row for each field, with inner fields below their outer field.

use serde_json::Value;

use super::korean::described;
use crate::pages::Lang;

/// Maximum depth of inner fields. No answer is deeper, so only a recursive schema is cut off.
const DEPTH_MAX: usize = 6;

/// A field, a parameter, or the heading of a variant.
#[derive(Clone, Debug)]
pub struct FieldRow {
    /// The name, with the names of the outer fields: `data[].channelId`.
    pub name: String,
    /// The type.
    pub kind: String,
    /// The allowed values, when they are listed.
    pub values: Vec<String>,
    /// Bounds and default.
    pub limits: String,
    /// Whether the field is required (in a request), or always present (in an answer).
    pub required: bool,
    /// Whether this is the heading of a variant.
    pub is_heading: bool,
    /// The description.
    pub about: String,
}

impl FieldRow {
    /// The row of a parameter of an OpenAPI document.
    pub fn parameter(parameter: &Value, lang: Lang) -> Self {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        let schema = &parameter["schema"];
        Self {
            kind: kind(&Value::Null, schema),
            values: listed(&Value::Null, schema),
            limits: bounds(schema, lang),
            required: parameter["required"] == true,
            is_heading: false,
            about: described(&name, parameter["description"].as_str(), lang),
            name,
        }
    }
}

/// The rows of a schema of this document.
pub fn rows(document: &Value, schema: &Value, lang: Lang) -> Vec<FieldRow> {
    let mut rows = Vec::new();
    Walk { document, lang, rows: &mut rows }.fields("", schema, 0);
    rows
}

struct Walk<'a> {
    document: &'a Value,
    lang: Lang,
    rows: &'a mut Vec<FieldRow>,
}

impl Walk<'_> {
    fn fields(&mut self, inside: &str, schema: &Value, depth: usize) {
        let schema = resolve(self.document, schema);
        if depth > DEPTH_MAX {
            return;
        }
        let required = schema["required"].as_array();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let required = required.is_some_and(|names| names.iter().any(|each| each == name));
            let name = if inside.is_empty() { name.clone() } else { format!("{inside}.{name}") };
            self.field(name, field, required, depth);
        }
        let mut variants = variants(self.document, &schema);
        variants.retain(|variant| variant["properties"].is_object());
        let headings = headings(inside, &variants, self.lang);
        let several = variants.len() > 1;
        for (variant, heading) in variants.iter_mut().zip(headings) {
            if several {
                hide_absent(variant);
                self.rows.push(heading);
            }
            self.fields(inside, variant, depth + 1);
        }
    }

    fn field(&mut self, name: String, field: &Value, required: bool, depth: usize) {
        let resolved = resolve(self.document, field);
        let about = field.get("description").or(resolved.get("description")).and_then(Value::as_str);
        let own_name = name.rsplit('.').next().unwrap_or_default();
        self.rows.push(FieldRow {
            name: name.clone(),
            kind: kind(self.document, &resolved),
            values: listed(self.document, &resolved),
            limits: bounds(&resolved, self.lang),
            required,
            is_heading: false,
            about: described(own_name, about, self.lang),
        });
        if resolved["items"].is_object() {
            self.fields(&format!("{name}[]"), &resolved["items"], depth + 1);
        } else {
            self.fields(&name, &resolved, depth + 1);
        }
    }
}

/// Removes the fields of a variant that belong only to other variants.
fn hide_absent(variant: &mut Value) {
    if let Some(fields) = variant["properties"].as_object_mut() {
        fields.retain(|_, field| field["type"] != "null");
    }
}

/// The headings of variants: the field that distinguishes a variant from the others, with its value, or else
/// the fields that only this variant requires.
fn headings(inside: &str, variants: &[Value], lang: Lang) -> Vec<FieldRow> {
    let everywhere = |name: &str| variants.iter().all(|variant| required(variant).any(|each| each == name));
    let heading = |variant: &Value| {
        let mut fields = variant["properties"].as_object().into_iter().flatten();
        let constant = fields.find_map(|(name, field)| Some((name, only_value(field)?)));
        let own = || required(variant).filter(|name| !everywhere(name)).collect::<Vec<_>>();
        let which = constant.map_or_else(
            || format!("+ {}", if own().is_empty() { "–".to_owned() } else { own().join(", ") }),
            |(name, value)| format!("{name} = {value}"),
        );
        let name = if inside.is_empty() { which } else { format!("{inside}: {which}") };
        let about = variant["description"].as_str().map(|about| described("", Some(about), lang));
        FieldRow {
            name,
            kind: String::new(),
            values: Vec::new(),
            limits: String::new(),
            required: false,
            is_heading: true,
            about: about.unwrap_or_default(),
        }
    };
    variants.iter().map(heading).collect()
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The text that a field must have, if only one is allowed.
fn only_value(field: &Value) -> Option<&str> {
    match field["enum"].as_array().map(Vec::as_slice) {
        Some([value]) => value.as_str(),
        Some(_) => None,
        None => field["const"].as_str(),
    }
}

/// The alternatives of a schema, with references resolved.
fn variants(document: &Value, schema: &Value) -> Vec<Value> {
    let either = schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array);
    either.into_iter().flatten().map(|variant| resolve(document, variant)).collect()
}

/// The schema that a reference points to, merged with the properties next to the reference.
pub fn resolve(document: &Value, schema: &Value) -> Value {
    let mut whole = schema.as_object().cloned().unwrap_or_default();
    let inner = whole.remove("allOf").and_then(|all| all.get(0).cloned());
    let reference = inner.as_ref().unwrap_or(schema)["$ref"].as_str();
    if let Some(found) = reference.and_then(|reference| document.pointer(&reference[1..])) {
        for (key, value) in found.as_object().into_iter().flatten() {
            whole.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    Value::Object(whole)
}

/// The type, in one line.
fn kind(document: &Value, schema: &Value) -> String {
    let line = type_names(document, schema).join(" | ");
    match (line.as_str(), &type_names(document, &schema["items"])[..]) {
        ("array", [item]) => format!("{item}[]"),
        _ => line,
    }
}

/// The values that a field may have, when they are listed.
fn listed(document: &Value, schema: &Value) -> Vec<String> {
    let of = if schema["items"].is_object() { &schema["items"] } else { schema };
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    values(document, of).iter().filter(|value| !value.is_null()).map(shown).collect()
}

/// The types that a schema names, also through references and alternatives.
fn type_names(document: &Value, schema: &Value) -> Vec<String> {
    let schema = resolve(document, schema);
    let mut names: Vec<String> = match &schema["type"] {
        Value::String(name) => vec![name.clone()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => variants(document, &schema).iter().flat_map(|each| type_names(document, each)).collect(),
    };
    names.dedup();
    names
}

/// The values that a schema lists, also through references and alternatives.
fn values(document: &Value, schema: &Value) -> Vec<Value> {
    match (&schema["enum"], schema.get("const")) {
        (Value::Array(values), _) => values.clone(),
        (_, Some(value)) => vec![value.clone()],
        _ => variants(document, schema).iter().flat_map(|each| values(document, each)).collect(),
    }
}

/// Bounds and default, as `1–100 characters, default 20`.
fn bounds(schema: &Value, lang: Lang) -> String {
    let number = |key: &str| schema[key].as_i64();
    let range = |unit: &str, min: Option<i64>, max: Option<i64>| match (min, max) {
        (Some(min), Some(max)) => Some(format!("{min}–{max}{unit}")),
        (None, Some(max)) => Some(format!("≤ {max}{unit}")),
        (Some(min), None) => Some(format!("≥ {min}{unit}")),
        (None, None) => None,
    };
    let default = schema.get("default").map(|default| {
        let value = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        format!("{} {value}", lang.pick("기본값", "default"))
    });
    let parts = [
        range("", number("minimum"), number("maximum")),
        range(lang.pick("자", " characters"), number("minLength"), number("maxLength")),
        range(lang.pick("개", " items"), number("minItems"), number("maxItems")),
        default,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(document: &Value, schema: &Value) -> Vec<(String, String)> {
        let line = |row: FieldRow| match row.values.is_empty() {
            true => (row.name, row.kind),
            false => (row.name, format!("{}: {}", row.kind, row.values.join(", "))),
        };
        rows(document, schema, Lang::En).into_iter().map(line).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
    }

    #[test]
    fn a_nullable_reference_is_resolved() {
        let document = json!({ "schemas": {
            "Thing": { "type": "object", "properties": { "id": { "type": "string" } } },
            "Role": { "oneOf": [{ "type": "string", "const": "a" }, { "type": "string", "const": "b" }] },
        } });
        let nullable = |name: &str| json!({ "anyOf": [{ "$ref": name }, { "type": "null" }] });
        let schema = json!({ "properties": {
            "role": nullable("#/schemas/Role"),
            "roles": { "type": "array", "items": { "$ref": "#/schemas/Role" } },
            "thing": nullable("#/schemas/Thing"),
        } });
        let expected = [
            ("role", "string | null: a, b"),
            ("roles", "string[]"),
            ("thing", "object | null"),
            ("thing.id", "string"),
        ];
        assert_eq!(shown(&document, &schema), pairs(&expected));
    }

    #[test]
    fn variants_are_named_by_their_distinguishing_field() {
        let variant = |name: &str, extra: &str| json!({ "properties": { extra: { "type": "string" }, "kind": { "const": name, "type": "string" } } });
        let schema = json!({ "oneOf": [variant("one", "a"), variant("two", "b")] });
        let expected = [
            ("kind = one", ""),
            ("a", "string"),
            ("kind", "string: one"),
            ("kind = two", ""),
            ("b", "string"),
            ("kind", "string: two"),
        ];
        assert_eq!(shown(&Value::Null, &schema), pairs(&expected));
    }

    #[test]
    fn a_variant_without_such_a_field_is_named_by_its_required_fields() {
        let text = json!({ "type": "string" });
        let schema = json!({ "oneOf": [
            { "properties": { "a": text, "id": text, "b": { "type": "null" } }, "required": ["a", "id"] },
            { "properties": { "b": text, "id": text, "a": { "type": "null" } }, "required": ["id"] },
        ] });
        let expected =
            [("+ a", ""), ("a", "string"), ("id", "string"), ("+ –", ""), ("b", "string"), ("id", "string")];
        assert_eq!(shown(&Value::Null, &schema), pairs(&expected));
    }

    #[test]
    fn every_row_of_the_documents_has_a_name_and_a_type() {
        let documents = [crate::documents::openapi(), crate::documents::asyncapi()];
        let mut seen = Vec::new();
        for document in &documents {
            for (_, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
                seen.extend(rows(document, schema, Lang::En));
            }
            let operations = document["paths"].as_object().into_iter().flatten();
            for operation in operations.flat_map(|(_, path)| path.as_object().into_iter().flatten()) {
                let content = operation.1["requestBody"]["content"].as_object().into_iter().flatten();
                for (_, body) in content {
                    let schema = body["schema"].get("x-line").unwrap_or(&body["schema"]);
                    seen.extend(rows(document, schema, Lang::En));
                }
            }
        }
        assert!(seen.len() > 300, "{}", seen.len());
        for FieldRow { name, kind, is_heading, .. } in seen {
            // Two known cases: a restriction has no end, and an envelope may be empty.
            let field = name.rsplit('.').next().unwrap_or_default();
            let has_value = kind != "null" || ["releaseDate", "message", "content"].contains(&field);
            assert!(!name.is_empty() && !name.contains('#') && has_value, "{name}: {kind}");
            assert!(is_heading || !kind.is_empty(), "{name} has no type");
        }
    }
}

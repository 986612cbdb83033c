//! A schema as rows of a table: one for each field, those inside another below it.

use serde_json::Value;

/// How deep fields inside fields are shown. Deeper than any answer, so that a schema that holds itself ends.
const DEPTH_MAX: usize = 6;

/// A field, a parameter, or the heading of a variant.
pub struct FieldRow {
    /// Its name, below the fields that it is in: `data[].channelId`.
    pub name: String,
    /// What it may hold.
    pub kind: String,
    /// Whether it must be there (in a request), or always is (in an answer).
    pub required: bool,
    /// What it means.
    pub about: String,
}

impl FieldRow {
    /// The row of a parameter of an OpenAPI document.
    pub fn parameter(parameter: &Value) -> Self {
        let place = parameter["in"].as_str().unwrap_or_default();
        Self {
            name: parameter["name"].as_str().unwrap_or_default().to_owned(),
            kind: format!("{} · {place}", kind(&parameter["schema"])),
            required: parameter["required"] == true,
            about: plain(parameter["description"].as_str().unwrap_or_default()),
        }
    }
}

/// A text without the marks that Markdown puts around code.
pub fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// The rows of a schema of this document.
pub fn rows(document: &Value, schema: &Value) -> Vec<FieldRow> {
    let mut rows = Vec::new();
    Walk { document, rows: &mut rows }.fields("", schema, 0);
    rows
}

struct Walk<'a> {
    document: &'a Value,
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
        for (index, variant) in variants(&schema).iter().enumerate() {
            let variant = resolve(self.document, variant);
            if variant["properties"].is_object() {
                let about = plain(variant["description"].as_str().unwrap_or_default());
                let name = format!("{inside} #{}", index + 1);
                let heading = FieldRow { name, kind: String::new(), required: false, about };
                self.rows.push(heading);
                self.fields(inside, &variant, depth + 1);
            }
        }
    }

    fn field(&mut self, name: String, field: &Value, required: bool, depth: usize) {
        let resolved = resolve(self.document, field);
        let about = field.get("description").or(resolved.get("description"));
        let about = plain(about.and_then(Value::as_str).unwrap_or_default());
        self.rows.push(FieldRow { name: name.clone(), kind: kind(&resolved), required, about });
        if resolved["items"].is_object() {
            self.fields(&format!("{name}[]"), &resolved["items"], depth + 1);
        } else {
            self.fields(&name, &resolved, depth + 1);
        }
    }
}

fn variants(schema: &Value) -> Vec<Value> {
    let either = schema.get("oneOf").or(schema.get("anyOf"));
    either.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The schema that a reference leads to, with what stands beside the reference.
fn resolve(document: &Value, schema: &Value) -> Value {
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

/// What a value may be, in one line.
fn kind(schema: &Value) -> String {
    let mut names: Vec<String> = match &schema["type"] {
        Value::String(name) => vec![name.clone()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let constants = |schemas: &[Value]| schemas.iter().filter_map(|s| s.get("const")).cloned().collect();
    let either: Vec<Value> = variants(schema);
    if names.is_empty() {
        names.extend(either.iter().filter_map(|schema| schema["type"].as_str()).map(str::to_owned));
        names.dedup();
    }
    let values: Vec<Value> = match (&schema["enum"], schema.get("const")) {
        (Value::Array(values), _) => values.clone(),
        (_, Some(value)) => vec![value.clone()],
        _ => constants(&either),
    };
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values: Vec<_> = values.iter().filter(|value| !value.is_null()).map(shown).collect();
    let mut line = names.join(" | ");
    if line == "array"
        && let Some(item) = schema["items"]["type"].as_str()
    {
        line = format!("{item}[]");
    }
    if !values.is_empty() {
        line.push_str(&format!(": {}", values.join(", ")));
    }
    line + &bounds(schema)
}

fn bounds(schema: &Value) -> String {
    let number = |key: &str| schema[key].as_i64();
    let range = |unit: &str, min: Option<i64>, max: Option<i64>| match (min, max) {
        (Some(min), Some(max)) => format!(", {min}–{max}{unit}"),
        (None, Some(max)) => format!(", ≤ {max}{unit}"),
        (Some(min), None) => format!(", ≥ {min}{unit}"),
        (None, None) => String::new(),
    };
    let mut line = range("", number("minimum"), number("maximum"));
    line.push_str(&range(" chars", number("minLength"), number("maxLength")));
    line.push_str(&range(" items", number("minItems"), number("maxItems")));
    if let Some(default) = schema.get("default") {
        line.push_str(&format!(
            ", = {}",
            default.as_str().map_or_else(|| default.to_string(), str::to_owned)
        ));
    }
    line
}

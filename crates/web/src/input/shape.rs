//! The shape of a body or a query, for the documents.

use std::collections::BTreeSet;

use domain::ids::ID_PATTERN;
use domain::limits::{ID_BYTES_MAX, PAGE_MAX};
use serde_json::{Map, Value, json};

/// The fields of a JSON object, or the parameters of a query.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The fields, in the order in which they are read.
    pub fields: Vec<Field>,
    /// Alternatives: exactly one of these shapes applies in addition.
    pub either: Vec<Shape>,
}

/// One field or parameter.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in the request.
    pub name: &'static str,
    /// Whether it is required.
    pub required: bool,
    /// Its allowed values.
    pub kind: Kind,
}

/// The allowed values of a field, as a JSON schema.
#[derive(Clone, Debug)]
pub struct Kind(Map<String, Value>);

impl Shape {
    /// A shape with these fields.
    pub fn of<const N: usize>(fields: [Field; N]) -> Self {
        Self { fields: fields.into(), either: Vec::new() }
    }

    /// `page` and `size` of a page-number list.
    pub fn page(size_default: i64, size_max: i64) -> Self {
        Self::of([
            optional("page", integer(0, PAGE_MAX).default(0)),
            optional("size", integer(1, size_max).default(size_default)),
        ])
    }

    /// Exactly one of these shapes.
    pub fn one_of<const N: usize>(either: [Self; N]) -> Self {
        Self { fields: Vec::new(), either: either.into() }
    }

    /// Adds fields.
    pub fn and(mut self, more: Self) -> Self {
        self.fields.extend(more.fields);
        self.either.extend(more.either);
        self
    }

    /// The JSON schema of an object with these fields. `null` means absent, and unknown fields are ignored.
    /// Each variant contains all fields, because generators of clients ignore fields next to `oneOf`.
    pub fn schema(&self) -> Value {
        match &self.variants()[..] {
            [only] => only.object(),
            several => json!({ "oneOf": several.iter().map(Self::object).collect::<Vec<_>>() }),
        }
    }

    fn variants(&self) -> Vec<Self> {
        if self.either.is_empty() {
            return vec![self.clone()];
        }
        let common = Self { fields: self.fields.clone(), either: Vec::new() };
        self.either.iter().flat_map(|variant| common.clone().and(variant.clone()).variants()).collect()
    }

    fn object(&self) -> Value {
        let mut properties = Map::new();
        for field in &self.fields {
            properties.insert(field.name.to_owned(), field.kind.clone().or_null(!field.required).schema());
        }
        let required = self.fields.iter().filter(|field| field.required).map(|field| field.name);
        let required: BTreeSet<_> = required.collect();
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

/// A required field.
pub fn required(name: &'static str, kind: Kind) -> Field {
    Field { name, required: true, kind }
}

/// An optional field.
pub fn optional(name: &'static str, kind: Kind) -> Field {
    Field { name, required: false, kind }
}

/// A field that must be absent, because another one is present.
pub fn absent(name: &'static str) -> Field {
    optional(name, Kind::new("null"))
}

/// No field may contain a NUL.
const NO_NUL: &str = r"^[^\x00]*$";
/// Not blank, without NUL.
const NOT_BLANK: &str = r"^[^\x00]*\S[^\x00]*$";
/// No white space or control character after the scheme.
const WEB_ADDRESS: &str = r"^https?://[^\s\x00-\x1f\x7f-\x9f]*$";

/// Any text without NUL.
pub fn text() -> Kind {
    Kind::new("string").pattern(NO_NUL)
}

/// A text of `min` to `max` code points. If `min` is not 0, blank is refused.
pub fn chars(min: usize, max: usize) -> Kind {
    let kind = text().with("minLength", min).with("maxLength", max);
    if min > 0 { kind.pattern(NOT_BLANK) } else { kind }
}

/// A text that is not empty.
pub fn non_empty_text() -> Kind {
    text().with("minLength", 1)
}

/// One item of a comma-separated list in a query.
pub fn item() -> Kind {
    non_empty_text().pattern(r"^[^,\x00]+$")
}

/// An id that a caller chose.
pub fn id() -> Kind {
    text().with("pattern", ID_PATTERN).with("minLength", 1).with("maxLength", ID_BYTES_MAX)
}

/// An `http` or `https` address.
pub fn web_address() -> Kind {
    text().pattern(WEB_ADDRESS).with("maxLength", domain::limits::URL_BYTES_MAX)
}

/// An RFC 3339 date.
pub fn date() -> Kind {
    Kind::new("string").with("format", "date-time")
}

/// A cursor from the previous page.
pub fn cursor() -> Kind {
    text().pattern("^[A-Za-z0-9_-]+$").about("From the page before; opaque. Left out: the first page.")
}

/// A cursor from the previous page, or the empty text of the last page.
pub fn cursor_or_empty() -> Kind {
    let about = "From the page before; opaque. Left out or empty: the first page.";
    text().pattern("^[A-Za-z0-9_-]*$").about(about)
}

/// One of these texts.
pub fn one_of(values: &[&str]) -> Kind {
    text().with("enum", values)
}

/// One of these numbers.
pub fn one_of_numbers(values: &[i64]) -> Kind {
    Kind::new("integer").with("enum", values)
}

/// An integer in a range.
pub fn integer(min: i64, max: i64) -> Kind {
    Kind::new("integer").with("minimum", min).with("maximum", max)
}

/// `true` or `false`.
pub fn flag() -> Kind {
    Kind::new("boolean")
}

/// A list.
pub fn list(items: Kind, min: usize, max: usize) -> Kind {
    let kind = Kind::new("array").with("items", items.schema()).with("maxItems", max);
    if min > 0 { kind.with("minItems", min) } else { kind }
}

/// A list with a minimum length. Repeated items count once, so a schema cannot express the maximum.
pub fn texts(items: Kind, min: usize) -> Kind {
    let kind = Kind::new("array").with("items", items.schema());
    if min > 0 { kind.with("minItems", min) } else { kind }
}

/// A map from names to values of one kind.
pub fn map(names: Kind, values: Kind, max: usize) -> Kind {
    let kind = Kind::new("object").with("additionalProperties", values.schema());
    kind.with("propertyNames", names.schema()).with("maxProperties", max)
}

/// An object within an object.
pub fn object(shape: &Shape) -> Kind {
    match shape.schema() {
        Value::Object(schema) => Kind(schema),
        _ => Kind::new("object"),
    }
}

impl Kind {
    fn new(name: &str) -> Self {
        Self(Map::new()).with("type", name)
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Sets the maximum number of characters.
    pub fn max_chars(self, max: usize) -> Self {
        self.with("maxLength", max)
    }

    /// Adds a regular expression that the text must match.
    pub fn pattern(self, pattern: &str) -> Self {
        self.with("pattern", pattern)
    }

    /// Restricts to these texts.
    pub fn one_of(self, values: &[&str]) -> Self {
        self.with("enum", values)
    }

    /// Sets the default value.
    pub fn default(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// Adds a rule that a schema cannot express, as text.
    pub fn about(self, text: &str) -> Self {
        self.with("description", text)
    }

    /// The JSON schema.
    pub fn schema(self) -> Value {
        Value::Object(self.0)
    }

    fn or_null(mut self, null: bool) -> Self {
        if null && self.0.contains_key("format") {
            // Programs read the format only if the type is a text.
            let about = self.0.remove("description");
            let either = json!([self.0, { "type": "null" }]);
            let kind = Self(Map::new()).with("anyOf", either);
            return about.into_iter().fold(kind, |kind, about| kind.with("description", about));
        }
        if null && self.0.get("type") != Some(&json!("null")) {
            if let Some(name) = self.0.remove("type") {
                self.0.insert("type".to_owned(), json!([name, "null"]));
            }
            if let Some(Value::Array(values)) = self.0.get_mut("enum") {
                values.push(Value::Null);
            }
        }
        self
    }
}

//! What a body or a query may hold, said next to the function that reads it.

use std::collections::BTreeSet;

use domain::ids::ID_PATTERN;
use domain::limits::{ID_BYTES_MAX, PAGE_MAX};
use serde_json::{Map, Value, json};

/// The fields of a JSON object, or the parameters of a query.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The fields, in the order in which they are read.
    pub fields: Vec<Field>,
    /// Shapes of which exactly one comes on top.
    pub either: Vec<Shape>,
}

/// One field or parameter.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name on the wire.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// What it may hold.
    pub kind: Kind,
}

/// What a field may hold, as a JSON schema.
#[derive(Clone, Debug)]
pub struct Kind(Map<String, Value>);

impl Shape {
    /// These fields.
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

    /// These fields as well.
    pub fn and(mut self, more: Self) -> Self {
        self.fields.extend(more.fields);
        self.either.extend(more.either);
        self
    }

    /// The JSON schema of an object with these fields. `null` means absent, and unknown fields are ignored.
    pub fn schema(&self) -> Value {
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
        if !self.either.is_empty() {
            schema["oneOf"] = self.either.iter().map(Self::schema).collect();
        }
        schema
    }
}

/// A field that must be there.
pub fn required(name: &'static str, kind: Kind) -> Field {
    Field { name, required: true, kind }
}

/// A field that may be there.
pub fn optional(name: &'static str, kind: Kind) -> Field {
    Field { name, required: false, kind }
}

/// Any text.
pub fn text() -> Kind {
    Kind::new("string")
}

/// A text of `min` to `max` code points; blank is refused where something is asked for.
pub fn chars(min: usize, max: usize) -> Kind {
    let kind = text().with("minLength", min).with("maxLength", max);
    if min > 0 { kind.with("pattern", "\\S") } else { kind }
}

/// An id that a caller chose.
pub fn id() -> Kind {
    text().with("pattern", ID_PATTERN).with("minLength", 1).with("maxLength", ID_BYTES_MAX)
}

/// An `http` or `https` address.
pub fn web_address() -> Kind {
    text().with("pattern", "^https?://").with("maxLength", domain::limits::URL_BYTES_MAX)
}

/// An RFC 3339 date.
pub fn date() -> Kind {
    text().with("format", "date-time")
}

/// A cursor of the page before.
pub fn cursor() -> Kind {
    text().about("From the page before; opaque. Left out: the first page.")
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

/// A list of any length.
pub fn texts(items: Kind) -> Kind {
    Kind::new("array").with("items", items.schema())
}

/// A map from text to values of one kind.
pub fn map(values: Kind, max: usize) -> Kind {
    Kind::new("object").with("additionalProperties", values.schema()).with("maxProperties", max)
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

    /// A regular expression that it matches.
    pub fn pattern(self, pattern: &str) -> Self {
        self.with("pattern", pattern)
    }

    /// What is taken when it is absent.
    pub fn default(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// What a schema cannot say.
    pub fn about(self, text: &str) -> Self {
        self.with("description", text)
    }

    /// An example.
    pub fn example(self, value: impl Into<Value>) -> Self {
        self.with("examples", Value::Array(vec![value.into()]))
    }

    /// The JSON schema.
    pub fn schema(self) -> Value {
        Value::Object(self.0)
    }

    fn or_null(mut self, null: bool) -> Self {
        if null {
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

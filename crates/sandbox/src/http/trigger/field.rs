//! The fields of triggers and their types. The call, the command line, scenarios and the console take the
//! types from here.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::time_text;

/// A field of a kind of trigger.
pub(crate) struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// What it takes.
    pub takes: FieldType,
}

/// What a field takes. A command line has only texts, so each type takes its text too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FieldType {
    /// A text. A number is a text too.
    Text,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Flag,
    /// A duration.
    Duration,
    /// An object, or its JSON.
    Object,
    /// A list of texts, or a text with commas between them.
    List,
}

impl Field {
    pub const fn text(name: &'static str, about: &'static str) -> Self {
        Self { name, about, takes: FieldType::Text }
    }

    pub const fn number(name: &'static str, about: &'static str) -> Self {
        Self { name, about, takes: FieldType::Number }
    }

    pub const fn flag(name: &'static str, about: &'static str) -> Self {
        Self { name, about, takes: FieldType::Flag }
    }

    pub const fn span(name: &'static str, about: &'static str) -> Self {
        Self { name, about, takes: FieldType::Duration }
    }

    pub const fn object(name: &'static str, about: &'static str) -> Self {
        Self { name, about, takes: FieldType::Object }
    }

    pub const fn list(name: &'static str, about: &'static str) -> Self {
        Self { name, about, takes: FieldType::List }
    }
}

impl FieldType {
    /// The value in the form that the kinds read: a text for [`Text`](Self::Text) and
    /// [`Duration`](Self::Duration), else the JSON type. An absent value stays absent.
    pub fn read(self, value: Value) -> Result<Value, &'static str> {
        let text = value.as_str().map(str::to_owned);
        match (self, value) {
            (_, Value::Null) => Ok(Value::Null),
            (Self::Text, Value::String(text)) => Ok(text.into()),
            (Self::Text, Value::Number(number)) => Ok(number.to_string().into()),
            (Self::Text, _) => Err("must be a text"),
            (Self::Number, value) => {
                let number = value.as_i64().or_else(|| text?.parse().ok());
                number.map(Value::from).ok_or("must be a whole number")
            }
            (Self::Flag, value) => {
                let flag = value.as_bool().or_else(|| text?.parse().ok());
                flag.map(Value::from).ok_or("must be true or false")
            }
            (Self::Duration, _) => {
                let text = text.filter(|text| time_text::parse_span(text).is_some());
                text.map(Value::from).ok_or(time_text::SPAN_RULE)
            }
            (Self::Object, value) => {
                let object = match text {
                    Some(text) => serde_json::from_str(&text).ok(),
                    None => Some(value),
                };
                let object = object.filter(Value::is_object);
                object.ok_or("must be an object, or a text that is one as JSON")
            }
            (Self::List, value) => {
                let list = match text.as_deref() {
                    Some("") => Value::Array(Vec::new()),
                    Some(text) => text.split(',').collect(),
                    None => value,
                };
                let is_of_texts =
                    |list: &Value| list.as_array().is_some_and(|list| list.iter().all(Value::is_string));
                Some(list)
                    .filter(is_of_texts)
                    .ok_or("must be a list of texts, or a text with commas between them")
            }
        }
    }
}

/// The meanings of the fields, and their types, by name.
pub(super) fn maps<S: serde::Serializer>(
    fields: &&'static [Field],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let meanings: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.about.into())).collect();
    let types: BTreeMap<_, _> = fields.iter().map(|field| (field.name, field.takes)).collect();
    #[derive(Serialize)]
    struct Maps<'a> {
        fields: Map<String, Value>,
        types: BTreeMap<&'a str, FieldType>,
    }
    Maps { fields: meanings, types }.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_type_takes_its_json_and_its_text() {
        use FieldType::*;
        for (takes, value, read) in [
            (Flag, json!(true), Some(json!(true))),
            (Flag, json!("true"), Some(json!(true))),
            (Flag, json!("false"), Some(json!(false))),
            (Flag, json!("yes"), None),
            (Flag, json!(1), None),
            (Flag, json!(null), Some(json!(null))),
            (Number, json!("12"), Some(json!(12))),
            (Number, json!(1.5), None),
            (Number, json!(true), None),
            (Text, json!(7), Some(json!("7"))),
            (Text, json!("true"), Some(json!("true"))),
            (Text, json!(true), None),
            (Duration, json!("5s"), Some(json!("5s"))),
            (Duration, json!(5), None),
            (Object, json!("{\"a\":1}"), Some(json!({ "a": 1 }))),
            (Object, json!("[]"), None),
            (List, json!("a,b"), Some(json!(["a", "b"]))),
            (List, json!(""), Some(json!([]))),
            (List, json!([1]), None),
        ] {
            assert_eq!(takes.read(value.clone()).ok(), read, "{takes:?} {value}");
        }
    }
}

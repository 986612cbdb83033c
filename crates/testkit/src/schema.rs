//! Checks a value against a JSON schema, with the keywords of the documents only.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex_lite::Regex;
use serde_json::{Map, Value};

/// Keywords that do not restrict values.
const WORDS: [&str; 7] = ["description", "title", "default", "examples", "format", "const", "x-event"];

/// The schemas of a document.
#[derive(Clone, Copy)]
pub(crate) struct Schemas<'d> {
    /// The targets of references.
    pub document: &'d Value,
    /// Whether an object may have only the fields that its schema names.
    pub strict: bool,
}

type Verdict = Result<(), String>;

impl Schemas<'_> {
    /// The place and the reason of an invalid value.
    pub(crate) fn check(self, schema: &Value, value: &Value) -> Verdict {
        self.at("", schema, value)
    }

    fn at(self, place: &str, schema: &Value, value: &Value) -> Verdict {
        let Value::Object(schema) = schema else {
            let any = *schema == Value::Bool(true);
            return if any { Ok(()) } else { wrong(place, value, "anything", schema) };
        };
        if let Some(constant) = schema.get("const").filter(|constant| *constant != value) {
            return wrong(place, value, "const", constant);
        }
        for (keyword, rule) in schema {
            if !WORDS.contains(&keyword.as_str()) && !keyword.starts_with("x-") {
                self.keyword(place, schema, keyword, rule, value)?;
            }
        }
        self.unnamed(place, schema, value)
    }

    fn keyword(
        self,
        place: &str,
        schema: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
    ) -> Verdict {
        let chars = value.as_str().map(|text| text.chars().count() as f64);
        let items = value.as_array().map(|items| items.len() as f64);
        let number = value.as_f64();
        let limit = rule.as_f64().unwrap_or_default();
        let right = match keyword {
            "$ref" => {
                let reference = rule.as_str().unwrap_or_default();
                let found = self.document.pointer(reference.trim_start_matches('#'));
                return self.at(place, found.unwrap_or(&Value::Bool(false)), value);
            }
            "type" => match rule {
                Value::Array(names) => names.iter().any(|name| is_type(name, value)),
                name => is_type(name, value),
            },
            "enum" => rule.as_array().is_some_and(|values| values.contains(value)),
            "minimum" => number.is_none_or(|number| number >= limit),
            "maximum" => number.is_none_or(|number| number <= limit),
            "minLength" => chars.is_none_or(|chars| chars >= limit),
            "maxLength" => chars.is_none_or(|chars| chars <= limit),
            "minItems" => items.is_none_or(|items| items >= limit),
            "maxItems" => items.is_none_or(|items| items <= limit),
            "maxProperties" => value.as_object().is_none_or(|fields| fields.len() as f64 <= limit),
            "pattern" => value.as_str().is_none_or(|text| matches(rule.as_str().unwrap_or_default(), text)),
            "required" => value.as_object().is_none_or(|fields| {
                rule.as_array()
                    .into_iter()
                    .flatten()
                    .all(|name| fields.contains_key(name.as_str().unwrap_or("")))
            }),
            "propertyNames" => {
                let mut names = value.as_object().into_iter().flatten().map(|(name, _)| name);
                return names.try_for_each(|name| self.at(place, rule, &Value::from(name.as_str())));
            }
            "properties" => return self.properties(place, rule, value),
            "additionalProperties" => return self.additional(place, schema, rule, value),
            "items" => return self.items(place, rule, value),
            "allOf" => {
                return rule.as_array().into_iter().flatten().try_for_each(|s| self.at(place, s, value));
            }
            "anyOf" => {
                rule.as_array().is_some_and(|all| all.iter().any(|s| self.at(place, s, value).is_ok()))
            }
            "oneOf" => rule.as_array().is_some_and(|all| {
                all.iter().filter(|schema| self.at(place, schema, value).is_ok()).count() == 1
            }),
            other => panic!(
                "the documents use {other}, which is not checked yet: teach it to testkit/src/schema.rs"
            ),
        };
        if right { Ok(()) } else { wrong(place, value, keyword, rule) }
    }

    fn properties(self, place: &str, rule: &Value, value: &Value) -> Verdict {
        let both =
            rule.as_object().into_iter().flatten().filter_map(|(name, s)| Some((name, s, value.get(name)?)));
        both.into_iter()
            .try_for_each(|(name, schema, value)| self.at(&format!("{place}/{name}"), schema, value))
    }

    fn additional(self, place: &str, schema: &Map<String, Value>, rule: &Value, value: &Value) -> Verdict {
        let named = |name: &str| schema.get("properties").is_some_and(|fields| fields.get(name).is_some());
        let fields = value.as_object().into_iter().flatten().filter(|(name, _)| !named(name));
        fields.into_iter().try_for_each(|(name, value)| self.at(&format!("{place}/{name}"), rule, value))
    }

    fn items(self, place: &str, rule: &Value, value: &Value) -> Verdict {
        let items = value.as_array().into_iter().flatten().enumerate();
        items.into_iter().try_for_each(|(index, item)| self.at(&format!("{place}/{index}"), rule, item))
    }

    /// Fields that the schema does not name are invalid, unless the schema describes further fields.
    fn unnamed(self, place: &str, schema: &Map<String, Value>, value: &Value) -> Verdict {
        let open = !self.strict || schema.contains_key("additionalProperties");
        let (Some(fields), Some(named)) = (value.as_object(), schema.get("properties")) else {
            return Ok(());
        };
        match fields.keys().find(|name| named.get(*name).is_none()) {
            Some(name) if !open => Err(format!("{place}/{name} is not documented")),
            _ => Ok(()),
        }
    }
}

fn wrong(place: &str, value: &Value, keyword: &str, rule: &Value) -> Verdict {
    Err(format!("{} is {value}, against {keyword} {rule}", if place.is_empty() { "/" } else { place }))
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    // There are few patterns. Compiling one takes much longer than matching it, and each is matched thousands
    // of times.
    static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let compile = || Regex::new(pattern).expect("a pattern of the documents is a regular expression");
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled.entry(pattern.to_owned()).or_insert_with(compile).is_match(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_against_schemas() {
        let document =
            json!({ "components": { "schemas": { "Id": { "type": "string", "pattern": "^[a-z]+$" } } } });
        let item = json!({ "type": "object", "required": ["id"], "properties": {
            "id": { "$ref": "#/components/schemas/Id" },
            "size": { "type": ["integer", "null"], "minimum": 1, "maximum": 5 },
        } });
        let list = json!({ "type": "array", "items": item, "maxItems": 2 });
        let either = json!({ "oneOf": [{ "const": 1 }, { "type": "string", "maxLength": 2, "enum": ["가나", "다"] }] });
        let map = json!({ "type": "object", "additionalProperties": { "type": "string" },
            "propertyNames": { "maxLength": 1 } });
        for (schema, value, strict, loose) in [
            (&item, json!({ "id": "a", "size": 5 }), true, true),
            (&item, json!({ "id": "a", "size": null }), true, true),
            (&item, json!({ "id": "a", "size": 6 }), false, false),
            (&item, json!({ "id": "a", "size": 1.5 }), false, false),
            (&item, json!({ "id": "A" }), false, false),
            (&item, json!({ "size": 1 }), false, false),
            (&item, json!({ "id": "a", "more": 1 }), false, true),
            (&item, json!([]), false, false),
            (&list, json!([{ "id": "a" }, { "id": "b" }]), true, true),
            (&list, json!([{ "id": "a" }, { "id": 1 }]), false, false),
            (&list, json!([{ "id": "a" }, { "id": "b" }, { "id": "c" }]), false, false),
            (&either, json!(1), true, true),
            (&either, json!("가나"), true, true),
            (&either, json!("라"), false, false),
            (&map, json!({ "a": "b" }), true, true),
            (&map, json!({ "a": 1 }), false, false),
            (&map, json!({ "ab": "b" }), false, false),
        ] {
            for (strict, expected) in [(true, strict), (false, loose)] {
                let schemas = Schemas { document: &document, strict };
                let verdict = schemas.check(schema, &value);
                assert_eq!(verdict.is_ok(), expected, "{value} (strict: {strict}): {verdict:?}");
            }
        }
        let schemas = Schemas { document: &document, strict: true };
        let wrong = schemas.check(&list, &json!([{ "id": "a" }, { "id": "b", "more": 1 }]));
        assert_eq!(wrong, Err("/1/more is not documented".to_owned()));
    }
}

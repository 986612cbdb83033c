//! Turns the fields of a form into the JSON of a call of the API.
//!
//! A dot in a field's name leads into an object: `match.path`. A suffix gives the type: `nth:number`,
//! `anonymous:flag`. A field with `@` counts only if the form has chosen it: `do.status:number@status`
//! with the field `_choice=status`. Empty fields, and other fields with a leading `_`, are left out.

use serde_json::{Map, Value};

/// The field of the choice.
const CHOICE: &str = "_choice";

/// The JSON object of a form's fields, in their order.
pub(super) fn to_json(fields: &[(String, String)]) -> Map<String, Value> {
    let choice = fields.iter().find(|(name, _)| name == CHOICE).map(|(_, value)| value.as_str());
    let mut object = Map::new();
    for (name, value) in fields {
        let (name, chosen_by) =
            name.split_once('@').map_or((name.as_str(), None), |(name, by)| (name, Some(by)));
        let is_chosen = chosen_by.is_none_or(|by| choice == Some(by));
        if name.starts_with('_') || value.is_empty() || !is_chosen {
            continue;
        }
        let (path, kind) = name.split_once(':').unwrap_or((name, "text"));
        put(&mut object, path, typed(kind, value));
    }
    object
}

/// The path with a form's fields as its query. Empty fields and those with a leading `_` are left out.
pub(super) fn with_query(path: &str, fields: &[(String, String)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields.iter().filter(|(name, value)| !name.starts_with('_') && !value.is_empty()));
    format!("{path}?{}", query.finish())
}

/// A value that does not fit its type stays a text, which the API refuses by its name.
fn typed(kind: &str, value: &str) -> Value {
    let parsed = match kind {
        "number" | "json" => serde_json::from_str(value.trim()).ok(),
        "flag" => Some(Value::Bool(matches!(value, "on" | "true"))),
        _ => None,
    };
    parsed.unwrap_or_else(|| Value::from(value))
}

fn put(object: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        object.insert(path.to_owned(), value);
        return;
    };
    let inner = object.entry(first).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(inner) = inner {
        put(inner, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_become_an_object_with_types() {
        for (fields, expected) in [
            (vec![("message", "hello"), ("from", ""), ("_title", "x")], json!({ "message": "hello" })),
            (
                vec![("match.path", "/a"), ("match.user", "b"), ("nth:number", "2"), ("p:number", "0.5")],
                json!({ "match": { "path": "/a", "user": "b" }, "nth": 2, "p": 0.5 }),
            ),
            (vec![("anonymous:flag", "on"), ("a:flag", "no")], json!({ "anonymous": true, "a": false })),
            (
                vec![("_choice", "status"), ("do.status:number@status", "429"), ("do.delay@delay", "2s")],
                json!({ "do": { "status": 429 } }),
            ),
            (vec![("nth:number", "many"), ("a", "1"), ("a.b", "2")], json!({ "nth": "many", "a": "1" })),
            (
                vec![("do.truncate:json", "true"), ("b:json", "{")],
                json!({ "do": { "truncate": true }, "b": "{" }),
            ),
        ] {
            let fields: Vec<_> =
                fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
            assert_eq!(Value::Object(to_json(&fields)), expected, "{fields:?}");
        }
    }
}

//! Masks secrets before they are recorded: `***` and the last 4 characters.

use serde_json::{Map, Value};

/// The names of fields and parameters that hold a secret, in lower case.
const SECRET_NAMES: [&str; 14] = [
    "accesstoken",
    "auth",
    "authorization",
    "clientsecret",
    "code",
    "cookie",
    "operatorkey",
    "password",
    "refreshtoken",
    "secret",
    "sid",
    "streamkey",
    "token",
    "webhooksecret",
];
/// Number of characters at the end of a secret that stay readable.
const READABLE_CHARS: usize = 4;
/// Minimum length of a secret with a readable end, in characters.
const READABLE_CHARS_MIN: usize = 16;

/// Masks the secrets of a JSON value, also those in the queries of its URLs.
pub(crate) fn json(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if is_secret(name) => *text = masked(text),
                    value => json(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(json),
        Value::String(text) => {
            if let Some(masked) = url(text) {
                *text = masked;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The parameters of a query, with masked secrets.
pub(crate) fn query(query: &str) -> Map<String, Value> {
    let parameters = form_urlencoded::parse(query.as_bytes());
    let masked = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
        let value = if is_secret(&name) { masked(&value) } else { value.into_owned() };
        (name.into_owned(), Value::String(value))
    };
    parameters.map(masked).collect()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    SECRET_NAMES.contains(&name.as_str())
}

fn masked(secret: &str) -> String {
    let chars = secret.chars().count();
    let hidden = if chars < READABLE_CHARS_MIN { chars } else { chars - READABLE_CHARS };
    format!("***{}", secret.chars().skip(hidden).collect::<String>())
}

/// A URL with masked secrets in its query; `None` if there is none.
fn url(text: &str) -> Option<String> {
    let (base, query) = text.split_once('?')?;
    let mut found = false;
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, value)) if is_secret(name) => {
                found = true;
                format!("{name}={}", masked(value))
            }
            _ => parameter.to_owned(),
        })
        .collect();
    found.then(|| format!("{base}?{}", parameters.join("&")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_at_any_depth() {
        let mut value = json!({
            "code": 200,
            "content": {
                "accessToken": "abcdefghijklmnopqrstuvwxyz",
                "url": "http://a/?auth=abcdefghijklmnopqrstuvwxyz&state=s",
                "list": [{ "client_secret": "short", "message": "why? because" }],
            },
        });
        json(&mut value);
        let expected = json!({
            "code": 200,
            "content": {
                "accessToken": "***wxyz",
                "url": "http://a/?auth=***wxyz&state=s",
                "list": [{ "client_secret": "***", "message": "why? because" }],
            },
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_query_keeps_what_is_no_secret() {
        let masked = query("code=abcdefghijklmnopqrst&state=s%20t&EIO=4");
        assert_eq!(Value::Object(masked), json!({ "code": "***qrst", "state": "s t", "EIO": "4" }));
    }
}

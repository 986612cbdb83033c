//! The values of a scenario, and `${…}` in its texts.

use std::collections::BTreeMap;

use domain::Timestamp;
use domain::span::parse_span;
use serde_json::{Map, Value};

/// The named values of a run.
#[derive(Clone, Debug, Default)]
pub struct Values {
    named: BTreeMap<String, Value>,
    /// The time of the sandbox when the step begins.
    now: Option<Timestamp>,
}

impl Values {
    /// Gives a value a name.
    pub fn set(&mut self, name: &str, value: Value) {
        self.named.insert(name.to_owned(), value);
    }

    /// Sets the time.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = Some(now);
    }

    /// The value of a name. A dot leads into an object.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.named.get(name).or_else(|| {
            let (first, rest) = name.split_once('.')?;
            rest.split('.').try_fold(self.named.get(first)?, |value, name| value.get(name))
        })
    }

    /// A JSON value with each `${…}` replaced.
    ///
    /// # Errors
    /// A name is unknown.
    pub fn fill(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => self.fill_text(text)?,
            Value::Array(values) => {
                Value::Array(values.iter().map(|value| self.fill(value)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => Value::Object(self.fill_fields(fields)?),
            other => other.clone(),
        })
    }

    /// Fields with each `${…}` replaced.
    ///
    /// # Errors
    /// A name is unknown.
    pub fn fill_fields(&self, fields: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        fields.iter().map(|(name, value)| Ok((name.clone(), self.fill(value)?))).collect()
    }

    /// A text with each `${…}` replaced, as a text.
    ///
    /// # Errors
    /// A name is unknown.
    pub fn text(&self, text: &str) -> Result<String, String> {
        Ok(plain(&self.fill_text(text)?))
    }

    /// A text for people: known names but `n` are replaced, and others stay.
    pub fn shown(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let filled = after.split_once('}').filter(|(name, _)| *name != "n");
            match filled.and_then(|(name, after)| Some((self.resolve(name).ok()?, after))) {
                Some((value, after)) => {
                    out.push_str(&plain(&value));
                    rest = after;
                }
                None => {
                    out.push_str("${");
                    rest = after;
                }
            }
        }
        out + rest
    }

    /// A text that is nothing but one `${…}` becomes the value itself, so that numbers stay numbers.
    fn fill_text(&self, text: &str) -> Result<Value, String> {
        let whole = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        if let Some(name) = whole.filter(|name| !name.contains("${")) {
            return self.resolve(name);
        }
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or_else(|| format!("{text}: a }} is missing"))?;
            out.push_str(before);
            out.push_str(&plain(&self.resolve(name)?));
            rest = after;
        }
        Ok(Value::String(out + rest))
    }

    fn resolve(&self, name: &str) -> Result<Value, String> {
        let offset = match name.strip_prefix("now") {
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix('+').and_then(parse_span).map(|span| span.as_millis()),
            None => None,
        };
        if let (Some(offset), Some(now)) = (offset, self.now) {
            let offset = i64::try_from(offset).unwrap_or(i64::MAX);
            return Ok(Value::String(now.plus_ms(offset).rfc3339()));
        }
        self.get(name).cloned().ok_or_else(|| {
            let known = self.named.keys().cloned().collect::<Vec<_>>().join(", ");
            format!("${{{name}}} is not known. Known are now, now+DURATION, {known}")
        })
    }
}

/// A value without the quotes of a text.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a value is as a condition says: equal, or `>=` and a number.
pub fn fulfils(value: &Value, condition: &Value) -> bool {
    let text = plain(condition);
    match text.strip_prefix(">=").map(|number| number.trim().parse::<f64>()) {
        Some(Ok(least)) => plain(value).parse().is_ok_and(|value: f64| value >= least),
        _ => plain(value) == text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_replaced_in_texts_at_any_depth() {
        let mut values = Values::default();
        values.set("n", json!(3));
        values.set("bot", json!({ "accessToken": "abc" }));
        values.set_now(Timestamp::from_millis(0));
        let filled =
            json!({ "amount": "${n}", "list": ["no ${n}.", "${bot.accessToken}$"], "at": "${now+1d}" });
        let expected = json!({ "amount": 3, "list": ["no 3.", "abc$"], "at": "1970-01-02T00:00:00.000Z" });
        assert_eq!(values.fill(&filled), Ok(expected));
        for (text, part) in
            [("${m}", "m"), ("a ${n", "missing"), ("${now+x}", "now+x"), ("${bot.no}", "bot.no")]
        {
            assert!(values.fill(&json!(text)).expect_err(text).contains(part), "{text}");
        }
    }

    #[test]
    fn a_text_for_people_keeps_what_is_not_known() {
        let mut values = Values::default();
        values.set("channel", json!("sol"));
        values.set("n", json!(3));
        let shown = values.shown("${channel} ${n} ${unknown} ${channel");
        assert_eq!(shown, "sol ${n} ${unknown} ${channel");
    }

    #[test]
    fn a_condition_is_a_value_or_a_least_number() {
        for (value, condition, expected) in [
            (json!(3), json!(">=3"), true),
            (json!(2), json!(">= 3"), false),
            (json!("3"), json!(3), true),
            (json!("a"), json!("b"), false),
            (json!(null), json!(">=0"), false),
        ] {
            assert_eq!(fulfils(&value, &condition), expected, "{value} {condition}");
        }
    }
}

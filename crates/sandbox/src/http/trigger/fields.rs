//! The given fields of a trigger, in the forms of [`FieldType::read`](super::FieldType::read).

use std::time::Duration;

use domain::chat::Emojis;
use domain::{Invalid, Language};
use serde_json::{Map, Value};

use crate::http::answer::Problem;
use crate::time_text;

/// The fields of one call.
pub(crate) struct GivenFields(pub Map<String, Value>);

impl GivenFields {
    /// A text.
    pub(super) fn text(&self, field: &str) -> Option<String> {
        self.0.get(field).and_then(Value::as_str).map(str::to_owned)
    }

    /// A whole number.
    pub(super) fn integer(&self, field: &str) -> Option<i64> {
        self.0.get(field).and_then(Value::as_i64)
    }

    /// `true` or `false`; `false` if it is left out.
    pub(super) fn flag(&self, field: &str) -> bool {
        self.given_flag(field).unwrap_or_default()
    }

    /// `true` or `false`.
    pub(super) fn given_flag(&self, field: &str) -> Option<bool> {
        self.0.get(field).and_then(Value::as_bool)
    }

    /// A duration.
    pub(super) fn span(&self, field: &str) -> Option<Duration> {
        time_text::parse_span(self.0.get(field)?.as_str()?)
    }

    /// A duration up to a maximum, which the rule names.
    pub(super) fn span_within(
        &self,
        field: &str,
        max: Duration,
        rule: &str,
    ) -> Result<Option<Duration>, Problem> {
        match self.span(field) {
            Some(span) if span > max => Err(Problem::invalid(field, rule)),
            span => Ok(span),
        }
    }

    /// An object.
    pub(super) fn object(&self, field: &str) -> Option<Map<String, Value>> {
        self.0.get(field).and_then(Value::as_object).cloned()
    }

    /// Emoji identifiers, each with the address of its picture; none if the field is left out.
    pub(super) fn emojis(&self, field: &str) -> Result<Emojis, Problem> {
        let emojis = self.object(field).unwrap_or_default().into_iter();
        let emoji = |(id, url)| match url {
            Value::String(url) => Ok((id, url)),
            _ => Err(Problem::invalid(&format!("{field}.{id}"), "must be a text")),
        };
        let emojis: Emojis = emojis.map(emoji).collect::<Result<_, _>>()?;
        domain::chat::check_emojis(&emojis).map_err(|error| wrong(&error, &[]))?;
        Ok(emojis)
    }

    /// A list of texts.
    pub(super) fn list(&self, field: &str) -> Option<Vec<String>> {
        let list = self.0.get(field)?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// A text as another type.
    pub(super) fn parsed<T>(
        &self,
        field: &str,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
    ) -> Result<Option<T>, Problem> {
        let parsed = self.text(field).map(|text| parse(&text)).transpose();
        parsed.map_err(|invalid| wrong(&invalid, &[(invalid.field, field)]))
    }
}

/// The refusal of a value. A field is named as the trigger spells it: each pair of `names` is the service's
/// name and the trigger's.
pub(super) fn wrong(invalid: &Invalid, names: &[(&str, &str)]) -> Problem {
    let spelled = names.iter().find(|(name, _)| *name == invalid.field).map(|(_, spelled)| *spelled);
    Problem::invalid(spelled.unwrap_or(invalid.field), invalid.rule.text(Language::English))
}

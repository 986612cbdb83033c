//! Finds records by their kind and their fields.

use std::borrow::Cow;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::log::{Record, RecordKind};

/// Maximum number of conditions of a filter.
const CONDITIONS_MAX: usize = 16;
/// Maximum length of a condition, in characters.
const CONDITION_CHARS_MAX: usize = 512;
/// Maximum size of a compiled regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 256 * 1024;

/// Which records are meant: all those of the kind that fulfil every condition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    kind: Option<RecordKind>,
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug)]
struct Condition {
    field: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Equals(String),
    Matches(Regex),
    AtLeast(f64),
}

/// A wrong kind or condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongFilter {
    /// The field.
    pub field: String,
    /// What it must be.
    pub rule: String,
}

impl Filter {
    /// Parses the name of a kind, and conditions: a field, and its value, `~regex` or `>=number`.
    pub fn parse(kind: Option<&str>, conditions: &[(String, String)]) -> Result<Self, WrongFilter> {
        let wrong = |field: &str, rule: String| WrongFilter { field: field.to_owned(), rule };
        let kind = kind.map(|kind| serde_json::from_value(kind.into())).transpose();
        let kind = kind.map_err(|error| wrong("kind", error.to_string()))?;
        if conditions.len() > CONDITIONS_MAX {
            return Err(wrong("where", format!("must be at most {CONDITIONS_MAX} conditions")));
        }
        let condition = |(field, text): &(String, String)| {
            let test = Test::parse(text).map_err(|rule| wrong(field, rule))?;
            Ok(Condition { field: field.clone(), test })
        };
        Ok(Self { kind, conditions: conditions.iter().map(condition).collect::<Result<_, _>>()? })
    }

    /// Whether a record is meant.
    pub fn finds(&self, record: &Record) -> bool {
        self.is_of_kind(record) && self.conditions.iter().all(|condition| condition.holds(record))
    }

    /// Number of conditions that a record of the kind fulfils, and the fields of the others; `None` for a
    /// record of another kind.
    pub fn nearness(&self, record: &Record) -> Option<(usize, Vec<&str>)> {
        let fails = |condition: &&Condition| !condition.holds(record);
        let failed: Vec<&str> = self.conditions.iter().filter(fails).map(|c| c.field.as_str()).collect();
        self.is_of_kind(record).then(|| (self.conditions.len() - failed.len(), failed))
    }

    /// Whether every record is meant.
    pub fn finds_all(&self) -> bool {
        self.kind.is_none() && self.conditions.is_empty()
    }

    /// The fields of conditions that none of the records has.
    pub fn unknown_fields<'r>(
        &self,
        records: impl IntoIterator<Item = &'r Arc<Record>> + Clone,
    ) -> Vec<&str> {
        if records.clone().into_iter().next().is_none() {
            return Vec::new();
        }
        let is_unknown =
            |field: &&str| records.clone().into_iter().all(|record| find(record, field).is_none());
        self.conditions.iter().map(|condition| condition.field.as_str()).filter(is_unknown).collect()
    }

    fn is_of_kind(&self, record: &Record) -> bool {
        self.kind.is_none_or(|kind| kind == record.kind)
    }
}

impl Test {
    fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() > CONDITION_CHARS_MAX {
            return Err(format!("must be at most {CONDITION_CHARS_MAX} characters"));
        }
        if let Some(pattern) = text.strip_prefix('~') {
            let regex = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build();
            return regex
                .map(Self::Matches)
                .map_err(|error| format!("must be a regular expression: {error}"));
        }
        if let Some(number) = text.strip_prefix(">=") {
            let number = number.trim().parse().map_err(|_| "must have a number after >=".to_owned())?;
            return Ok(Self::AtLeast(number));
        }
        Ok(Self::Equals(text.to_owned()))
    }
}

impl Condition {
    fn holds(&self, record: &Record) -> bool {
        let Some(value) = find(record, &self.field) else { return false };
        match &self.test {
            Test::Equals(text) => text_of(value) == text.as_str(),
            Test::Matches(regex) => regex.is_match(&text_of(value)),
            Test::AtLeast(number) => value.as_f64().is_some_and(|value| value >= *number),
        }
    }
}

/// The value of a field. A dot leads into an object. A name that the record does not have is looked up in the
/// body of the request, then in the answer, then in the payload of the event.
fn find<'a>(record: &'a Record, field: &str) -> Option<&'a Value> {
    let own = || {
        let mut names = field.split('.');
        let first = record.fields.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    };
    let inside = |part: &'a Value| field.split('.').try_fold(part, |value, name| value.get(name));
    let body = || inside(record.fields.get("body")?);
    let answer = || {
        let answer = record.fields.get("answer")?;
        answer.get("content").and_then(inside).or_else(|| inside(answer))
    };
    let payload = || inside(record.fields.get("payload")?);
    own().or_else(body).or_else(answer).or_else(payload)
}

fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use serde_json::json;

    use super::*;

    fn filter(kind: Option<&str>, conditions: &[(&str, &str)]) -> Result<Filter, WrongFilter> {
        let owned = |(field, text): &(&str, &str)| ((*field).to_owned(), (*text).to_owned());
        Filter::parse(kind, &conditions.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_record_is_found_by_its_kind_and_its_fields() {
        let fields = json!({ "path": "/a", "status": 200, "body": { "message": "hello" },
                             "answer": { "code": 200, "content": { "messageId": "m" } } });
        let record = Record {
            mark: 1,
            at: Timestamp::from_millis(0),
            kind: RecordKind::Request,
            fields: fields.as_object().expect("an object").clone(),
        };
        for (kind, conditions, found) in [
            (None, vec![], true),
            (Some("request"), vec![("path", "/a"), ("status", "200")], true),
            (Some("event"), vec![], false),
            (None, vec![("message", "~^hel")], true),
            (None, vec![("body.message", "hello")], true),
            (None, vec![("messageId", "m")], true),
            (None, vec![("status", ">=200")], true),
            (None, vec![("status", ">=201")], false),
            (None, vec![("unknown", "~.*")], false),
        ] {
            let filter = filter(kind, &conditions).expect("a filter");
            assert_eq!(filter.finds(&record), found, "{conditions:?}");
        }
        let near = filter(None, &[("path", "/b"), ("status", "200")]).expect("a filter");
        assert_eq!(near.nearness(&record), Some((1, vec!["path"])));
    }

    #[test]
    fn a_wrong_filter_is_refused_by_its_field() {
        let long = "x".repeat(CONDITION_CHARS_MAX + 1);
        for (kind, field, text) in [
            (Some("requests"), "kind", ""),
            (None, "path", "~("),
            (None, "path", long.as_str()),
            (None, "status", ">=many"),
        ] {
            let wrong = filter(kind, &[(field, text)]).expect_err("a wrong filter");
            assert_eq!(wrong.field, field);
        }
    }
}

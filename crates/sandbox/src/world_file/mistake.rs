//! A mistake in a world file, and the rules that several entries share.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;

use domain::{Invalid, Language, Timestamp};

use super::position::position;

/// Minimum length of a secret and of a token in a world file, in characters.
const SECRET_CHARS_MIN: usize = 16;
/// Maximum length of them.
const SECRET_CHARS_MAX: usize = 512;

/// A mistake in a world file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct WorldFileError {
    /// The field, as in `people[0].login`; empty if the text cannot be read.
    pub path: String,
    /// The rule. It continues the sentence that begins with the field.
    pub rule: String,
    /// Line and column, from 1.
    pub position: Option<(u64, u64)>,
}

impl fmt::Display for WorldFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.rule)
    }
}

impl WorldFileError {
    /// A value that breaks a rule.
    pub(super) fn new(path: impl Into<String>, rule: impl fmt::Display) -> Self {
        Self { path: path.into(), rule: rule.to_string(), position: None }
    }

    /// A text that is no world file.
    pub(super) fn unreadable(error: &serde_saphyr::Error) -> Self {
        let position = error.location().map(|place| (place.line(), place.column()));
        // The message ends with the position.
        let text = error.to_string();
        let end = text.rfind(" at line ").filter(|_| position.is_some()).unwrap_or(text.len());
        let rule = match &text[..end] {
            "expected sequence start" => "must be a list, whose entries begin with `- `",
            "expected mapping start" => "must be fields, as in `name: value`",
            rule => rule,
        };
        Self { path: String::new(), rule: rule.to_owned(), position }
    }

    /// The error with its position in a text.
    pub fn located_in(self, text: &str) -> Self {
        Self { position: position(text, &self.path), ..self }
    }

    /// A refusal of the service about the entry at `path`.
    pub(super) fn refused(path: &str, error: &service::Error) -> Self {
        match error.refusal() {
            domain::Refusal::Invalid(invalid) => Self::broken(path, &invalid),
            refusal => Self::new(path, refusal.message(Language::English)),
        }
    }

    pub(super) fn broken(path: &str, invalid: &Invalid) -> Self {
        Self::new(format!("{path}.{}", invalid.field), invalid.rule.text(Language::English))
    }
}

/// An entry as the service takes it, or the mistake.
pub(super) type Converted<T> = Result<T, WorldFileError>;

/// The entries of a list with their paths.
pub(super) fn listed<'a, T>(list: &'a str, entries: &'a [T]) -> impl Iterator<Item = (String, &'a T)> {
    entries.iter().enumerate().map(move |(index, entry)| (format!("{list}[{index}]"), entry))
}

/// A value of the entry at `path` that a rule of the service checked.
pub(super) fn id<T>(path: &str, checked: Result<T, Invalid>) -> Converted<T> {
    checked.map_err(|invalid| WorldFileError::broken(path, &invalid))
}

pub(super) fn date(path: &str, field: &str, text: Option<&str>) -> Converted<Option<Timestamp>> {
    let rule = || WorldFileError::new(format!("{path}.{field}"), "must be a time as in 2027-01-01T00:00:00Z");
    text.map(|text| Timestamp::parse_rfc3339(text).ok_or_else(rule)).transpose()
}

/// A time that has to be given.
pub(super) fn needed_date(path: &str, field: &str, text: &str) -> Converted<Timestamp> {
    Ok(date(path, field, Some(text))?.unwrap_or_default())
}

pub(super) fn secret_text(path: &str, text: &str) -> Result<(), WorldFileError> {
    let fits = (SECRET_CHARS_MIN..=SECRET_CHARS_MAX).contains(&text.len());
    if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let rule =
        format!("must be {SECRET_CHARS_MIN} to {SECRET_CHARS_MAX} printable ASCII characters without spaces");
    Err(WorldFileError::new(path, rule))
}

pub(super) fn unique<T: Hash + Eq + fmt::Display>(
    list: &str,
    field: &str,
    values: impl Iterator<Item = T>,
) -> Result<(), WorldFileError> {
    let mut seen = HashMap::new();
    for (index, value) in values.enumerate() {
        let rule = |first: &usize| format!("is that of {list}[{first}], too");
        if let Some(rule) = seen.get(&value).map(rule) {
            return Err(WorldFileError::new(format!("{list}[{index}].{field}"), rule));
        }
        seen.insert(value, index);
    }
    Ok(())
}

pub(super) fn set<'a>(ids: impl Iterator<Item = &'a str>) -> HashSet<&'a str> {
    ids.collect()
}

pub(super) fn known(
    names: &HashSet<&str>,
    what: &str,
    path: &str,
    name: Option<&str>,
) -> Result<(), WorldFileError> {
    match name {
        Some(name) if !names.contains(name) => Err(WorldFileError::new(path, unknown(what, name))),
        _ => Ok(()),
    }
}

pub(super) fn unknown(what: &str, name: &str) -> String {
    format!("there is no {what} {name} in this file")
}

pub(super) fn unknown_scope(name: &str) -> String {
    format!("there is no scope {name}: see docs/spec/authorization.md")
}

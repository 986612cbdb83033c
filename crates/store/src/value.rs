//! Parameters, rows, and the three column types that both engines share.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;

use crate::StoreError;

/// A parameter or a column: TEXT, BIGINT, BOOLEAN or NULL. A parameter may be an array. `Debug` hides text,
/// which may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// BIGINT.
    Int(i64),
    /// BOOLEAN.
    Bool(bool),
    /// TEXT, without the NUL character.
    Text(Cow<'a, str>),
    /// A parameter with many BIGINT, on PostgreSQL.
    Ints(Vec<Option<i64>>),
    /// A parameter with many BOOLEAN, on PostgreSQL.
    Bools(Vec<bool>),
    /// A parameter with many TEXT, on PostgreSQL.
    Texts(Vec<Cow<'a, str>>),
}

impl Value<'_> {
    /// The type's name, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Int(_) => "bigint",
            Self::Bool(_) => "boolean",
            Self::Text(_) => "text",
            Self::Ints(_) => "bigint[]",
            Self::Bools(_) => "boolean[]",
            Self::Texts(_) => "text[]",
        }
    }

    /// Whether it is an array.
    pub(crate) fn is_array(&self) -> bool {
        matches!(self, Self::Ints(_) | Self::Bools(_) | Self::Texts(_))
    }

    /// Whether a text has the NUL character.
    pub(crate) fn has_nul(&self) -> bool {
        let has_nul = |text: &str| memchr(0, text.as_bytes()).is_some();
        match self {
            Self::Text(text) => has_nul(text),
            Self::Texts(texts) => texts.iter().any(|text| has_nul(text)),
            Self::Null | Self::Int(_) | Self::Bool(_) | Self::Ints(_) | Self::Bools(_) => false,
        }
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "Int({value})"),
            Self::Bool(value) => write!(f, "Bool({value})"),
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Ints(values) => write!(f, "Ints({})", values.len()),
            Self::Bools(values) => write!(f, "Bools({})", values.len()),
            Self::Texts(texts) => write!(f, "Texts({})", texts.len()),
            Self::Null => f.write_str("Null"),
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

/// An integer literal.
impl From<i32> for Value<'_> {
    fn from(value: i32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(value: &'a Option<String>) -> Self {
        value.as_deref().into()
    }
}

/// Parameters for a statement: `params![id, now, None::<&str>]` is a `&[Value]`, `$1` first.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::Value::from($value)),*] as &[$crate::Value<'_>]
    };
}

/// A row of an answer. It outlives its statement and its transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(Vec<Value<'static>>);

impl Row {
    pub(crate) fn new(values: Vec<Value<'static>>) -> Self {
        Self(values)
    }

    pub(crate) fn values(&self) -> &[Value<'static>] {
        &self.0
    }

    /// The value in this column, counted from 0, as `i64`, `u32`, `u64`, `bool`, `String`, `&str` or an
    /// `Option` of one. Fails with [`StoreError::Decode`] if the column holds another type, NULL without an
    /// `Option`, a number out of range, or does not exist.
    pub fn get<'r, T: FromValue<'r>>(&'r self, column: usize) -> Result<T, StoreError> {
        let decode = |found: &str| StoreError::Decode { column, wanted: T::WANTED, found: found.to_owned() };
        let value = self.0.get(column).ok_or_else(|| decode("no such column"))?;
        T::from_value(value).ok_or_else(|| decode(value.kind()))
    }
}

/// A type that [`Row::get`] can give.
pub trait FromValue<'r>: Sized {
    /// The type's name, for errors.
    const WANTED: &'static str;
    /// The value as this type, or `None` if it is another or out of range.
    fn from_value(value: &'r Value<'static>) -> Option<Self>;
}

impl FromValue<'_> for i64 {
    const WANTED: &'static str = "bigint";
    fn from_value(value: &Value<'static>) -> Option<Self> {
        match value {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }
}

impl FromValue<'_> for u64 {
    const WANTED: &'static str = "bigint from 0";
    fn from_value(value: &Value<'static>) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue<'_> for u32 {
    const WANTED: &'static str = "bigint from 0 below 2^32";
    fn from_value(value: &Value<'static>) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue<'_> for bool {
    const WANTED: &'static str = "boolean";
    fn from_value(value: &Value<'static>) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(*value),
            // SQLite has no boolean type.
            Value::Int(0) => Some(false),
            Value::Int(1) => Some(true),
            _ => None,
        }
    }
}

impl<'r> FromValue<'r> for &'r str {
    const WANTED: &'static str = "text";
    fn from_value(value: &'r Value<'static>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl FromValue<'_> for String {
    const WANTED: &'static str = "text";
    fn from_value(value: &Value<'static>) -> Option<Self> {
        <&str>::from_value(value).map(str::to_owned)
    }
}

impl<'r, T: FromValue<'r>> FromValue<'r> for Option<T> {
    const WANTED: &'static str = T::WANTED;
    fn from_value(value: &'r Value<'static>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

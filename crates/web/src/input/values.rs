//! The allowed values of a field: the reader and the description for the documents, together.

use std::collections::{BTreeMap, HashSet};

use domain::{Invalid, Rule, Timestamp};

use super::Fields;
use super::shape::{self, Kind};

/// The allowed values of a field: a reader and a schema. The schema is built only for the documents.
#[derive(Clone, Copy)]
pub struct Value<R, K> {
    pub(super) reader: R,
    kind: K,
}

impl<R, K: Fn() -> Kind> Value<R, K> {
    pub(super) const fn new(reader: R, kind: K) -> Self {
        Self { reader, kind }
    }

    pub(super) fn kind(&self) -> Kind {
        (self.kind)()
    }

    /// Adds a rule that a schema cannot express, as text.
    pub fn about(self, text: &'static str) -> Value<R, impl Fn() -> Kind> {
        self.with(move |kind| kind.about(text))
    }

    /// Adds rules to the schema that the reader does not check. They are checked elsewhere.
    pub fn with(self, more: impl Fn(Kind) -> Kind) -> Value<R, impl Fn() -> Kind> {
        Value::new(self.reader, move || more((self.kind)()))
    }
}

impl<K: Fn() -> Kind> Value<Text, K> {
    /// Restricts to these texts.
    pub fn one_of(self, names: &'static [&'static str]) -> Value<Text, impl Fn() -> Kind> {
        self.with(move |kind| kind.one_of(names))
    }

    /// Parses the text with this function.
    pub fn parsed<T, F>(self, parse: F) -> Value<Parsed<F>, K>
    where
        F: Fn(&str) -> Result<T, Invalid>,
    {
        Value::new(Parsed(parse), self.kind)
    }
}

/// Reads the value of a field.
pub trait Reader {
    /// The type of the result.
    type Out;
}

/// Reads a field of a JSON object.
pub trait InJson: Reader {
    /// The value of the field; `None` if it is absent.
    ///
    /// # Errors
    /// `Invalid` naming the field.
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<Self::Out>, Invalid>;

    /// Whether the field is present. Checks nothing but its type.
    ///
    /// # Errors
    /// `Invalid` naming the field if it has another type.
    fn is_there(&self, name: &'static str, fields: &Fields<'_>) -> Result<bool, Invalid> {
        Ok(self.read(name, fields)?.is_some())
    }
}

/// Reads a parameter of a query.
pub trait InQuery: Reader {
    /// The value of the parameter's text.
    ///
    /// # Errors
    /// `Invalid` naming the parameter.
    fn parse(&self, name: &'static str, text: &str) -> Result<Self::Out, Invalid>;
}

/// Any text without NUL.
pub fn text() -> Value<Text, impl Fn() -> Kind> {
    Value::new(Text, shape::text)
}

/// A text of `min` to `max` code points. The domain or the service checks the length.
pub fn chars(min: usize, max: usize) -> Value<Text, impl Fn() -> Kind> {
    Value::new(Text, move || shape::chars(min, max))
}

/// A text that is not empty.
pub fn non_empty_text() -> Value<Text, impl Fn() -> Kind> {
    Value::new(Text, shape::non_empty_text)
}

/// An `http` or `https` address. The service checks it.
pub fn web_address() -> Value<Text, impl Fn() -> Kind> {
    Value::new(Text, shape::web_address)
}

/// A cursor from the previous page.
pub fn cursor() -> Value<Text, impl Fn() -> Kind> {
    Value::new(Text, shape::cursor)
}

/// A cursor from the previous page, or the empty text of the last page.
pub fn cursor_or_empty() -> Value<Text, impl Fn() -> Kind> {
    Value::new(Text, shape::cursor_or_empty)
}

/// An id that a caller chose, parsed by a function of its type.
pub fn id<T, F>(parse: F) -> Value<Id<F>, impl Fn() -> Kind>
where
    F: Fn(&'static str, &str) -> Result<T, Invalid>,
{
    Value::new(Id(parse), shape::id)
}

/// One item of a comma-separated list in a query.
pub fn item() -> Value<Text, impl Fn() -> Kind> {
    Value::new(Text, shape::item)
}

/// An RFC 3339 date.
pub fn date() -> Value<Date, impl Fn() -> Kind> {
    Value::new(Date, shape::date)
}

/// One of these names. The error for another value lists them.
pub fn name(names: &'static [&'static str]) -> Value<Name, impl Fn() -> Kind> {
    Value::new(Name(names), move || shape::one_of(names))
}

/// One of these numbers.
pub fn one_of_numbers(numbers: &'static [i64]) -> Value<Number, impl Fn() -> Kind> {
    Value::new(Number(numbers), move || shape::one_of_numbers(numbers))
}

/// An integer in a range.
pub fn integer(min: i64, max: i64) -> Value<Integer, impl Fn() -> Kind> {
    Value::new(Integer { min, max }, move || shape::integer(min, max))
}

/// `true` or `false`.
pub fn flag() -> Value<Flag, impl Fn() -> Kind> {
    Value::new(Flag, shape::flag)
}

/// A list of texts, each parsed by a function. The domain or the service checks the length.
pub fn list<R, K: Fn() -> Kind>(
    items: Value<R, K>,
    min: usize,
    max: usize,
) -> Value<List<R>, impl Fn() -> Kind> {
    Value::new(List(items.reader), move || shape::list((items.kind)(), min, max))
}

/// A list of texts in which repeated items count once, so a schema cannot express the maximum.
pub fn texts<R, K: Fn() -> Kind>(items: Value<R, K>, min: usize) -> Value<List<R>, impl Fn() -> Kind> {
    Value::new(List(items.reader), move || shape::texts((items.kind)(), min))
}

/// A map from texts to texts.
pub fn text_map<R, S, K: Fn() -> Kind, L: Fn() -> Kind>(
    names: Value<R, K>,
    values: Value<S, L>,
    max: usize,
) -> Value<TextMap, impl Fn() -> Kind> {
    Value::new(TextMap, move || shape::map((names.kind)(), (values.kind)(), max))
}

macro_rules! readers {
    ($($(#[$doc:meta])* $reader:ty => $out:ty;)+) => {$(
        impl Reader for $reader {
            type Out = $out;
        }
    )+};
}
readers! {
    Text => String;
    Date => Timestamp;
    Name => &'static str;
    Number => i64;
    Integer => i64;
    Flag => bool;
    TextMap => BTreeMap<String, String>;
}

/// Reads a text.
#[derive(Clone, Copy)]
pub struct Text;

impl InJson for Text {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<String>, Invalid> {
        fields.optional_text(name)
    }
}

impl InQuery for Text {
    fn parse(&self, _: &'static str, text: &str) -> Result<String, Invalid> {
        Ok(text.to_owned())
    }
}

/// Reads a text and parses it.
#[derive(Clone, Copy)]
pub struct Parsed<F>(F);

impl<T, F: Fn(&str) -> Result<T, Invalid>> Reader for Parsed<F> {
    type Out = T;
}

impl<T, F: Fn(&str) -> Result<T, Invalid>> InJson for Parsed<F> {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<T>, Invalid> {
        fields.optional_str(name)?.map(&self.0).transpose()
    }

    fn is_there(&self, name: &'static str, fields: &Fields<'_>) -> Result<bool, Invalid> {
        Text.is_there(name, fields)
    }
}

impl<T, F: Fn(&str) -> Result<T, Invalid>> InQuery for Parsed<F> {
    fn parse(&self, _: &'static str, text: &str) -> Result<T, Invalid> {
        (self.0)(text)
    }
}

/// Reads an id.
#[derive(Clone, Copy)]
pub struct Id<F>(F);

impl<T, F: Fn(&'static str, &str) -> Result<T, Invalid>> Reader for Id<F> {
    type Out = T;
}

impl<T, F: Fn(&'static str, &str) -> Result<T, Invalid>> InJson for Id<F> {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<T>, Invalid> {
        fields.optional_str(name)?.map(|text| (self.0)(name, text)).transpose()
    }

    fn is_there(&self, name: &'static str, fields: &Fields<'_>) -> Result<bool, Invalid> {
        Text.is_there(name, fields)
    }
}

impl<T, F: Fn(&'static str, &str) -> Result<T, Invalid>> InQuery for Id<F> {
    fn parse(&self, name: &'static str, text: &str) -> Result<T, Invalid> {
        (self.0)(name, text)
    }
}

/// Reads an RFC 3339 date.
#[derive(Clone, Copy)]
pub struct Date;

impl InJson for Date {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<Timestamp>, Invalid> {
        fields.optional_date(name)
    }
}

impl InQuery for Date {
    fn parse(&self, name: &'static str, text: &str) -> Result<Timestamp, Invalid> {
        Timestamp::parse_rfc3339(text).ok_or(Invalid::new(name, Rule::Date))
    }
}

/// Reads one of a few names.
#[derive(Clone, Copy)]
pub struct Name(&'static [&'static str]);

impl InJson for Name {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<&'static str>, Invalid> {
        let given = fields.optional_name(name, self.0)?;
        Ok(given.and_then(|given| self.0.iter().copied().find(|known| *known == given)))
    }
}

/// Reads one of a few numbers.
#[derive(Clone, Copy)]
pub struct Number(&'static [i64]);

impl InJson for Number {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<i64>, Invalid> {
        fields.optional_number(name, self.0)
    }
}

/// Reads an integer in a range.
#[derive(Clone, Copy)]
pub struct Integer {
    min: i64,
    max: i64,
}

impl InJson for Integer {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<i64>, Invalid> {
        fields.optional_integer(name, self.min, self.max)
    }
}

impl InQuery for Integer {
    fn parse(&self, name: &'static str, text: &str) -> Result<i64, Invalid> {
        let Self { min, max } = *self;
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && (min..=max).contains(number));
        number.ok_or(Invalid::new(name, Rule::Integer { min, max }))
    }
}

/// Reads `true` or `false`.
#[derive(Clone, Copy)]
pub struct Flag;

impl InJson for Flag {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<bool>, Invalid> {
        fields.optional_flag(name)
    }
}

impl InQuery for Flag {
    fn parse(&self, name: &'static str, text: &str) -> Result<bool, Invalid> {
        text.parse().map_err(|_| Invalid::new(name, Rule::Boolean))
    }
}

/// Reads a list of texts, each with the reader of its items.
#[derive(Clone, Copy)]
pub struct List<R>(pub(super) R);

impl<R: Reader> Reader for List<R> {
    type Out = Vec<R::Out>;
}

impl<R: InQuery> InJson for List<R> {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<Vec<R::Out>>, Invalid> {
        let Some(texts) = fields.optional_texts(name)? else { return Ok(None) };
        texts.iter().map(|text| self.0.parse(name, text)).collect::<Result<_, _>>().map(Some)
    }

    fn is_there(&self, name: &'static str, fields: &Fields<'_>) -> Result<bool, Invalid> {
        Ok(fields.optional_texts(name)?.is_some())
    }
}

/// Reads a map from texts to texts.
#[derive(Clone, Copy)]
pub struct TextMap;

impl InJson for TextMap {
    fn read(
        &self,
        name: &'static str,
        fields: &Fields<'_>,
    ) -> Result<Option<BTreeMap<String, String>>, Invalid> {
        fields.text_map(name).map(Some)
    }
}

/// The distinct items, in the order of their first occurrence.
pub fn distinct<T: Clone + Eq + std::hash::Hash>(mut items: Vec<T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.retain(|item| seen.insert(item.clone()));
    items
}

//! The fields of a JSON object.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use domain::{Invalid, Rule, Timestamp};
use memchr::memchr;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The fields of a JSON object, in their order. Texts without escapes are borrowed. `null` means absent, and
/// unknown fields are ignored.
#[derive(Clone)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, FieldValue<'a>)>);

/// The value of a field.
#[derive(Clone)]
enum FieldValue<'a> {
    Text(Cow<'a, str>),
    /// Any value but a text.
    Other(Value),
}

/// Shows only the names of the fields, because some values are secrets.
impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl<'a> Fields<'a> {
    /// # Errors
    /// `Invalid` naming `body` if the text is not a JSON object.
    pub fn parse(text: &'a str) -> Result<Self, Invalid> {
        serde_json::from_str(text).map_err(|_| {
            let is_json = serde_json::from_str::<Value>(text).is_ok();
            Invalid::new("body", if is_json { Rule::Object } else { Rule::Json })
        })
    }

    /// The same fields, without a borrow of the text.
    pub fn into_owned(self) -> Fields<'static> {
        let owned = |(name, field): (Cow<'a, str>, FieldValue<'a>)| {
            let field = match field {
                FieldValue::Text(text) => FieldValue::Text(text.into_owned().into()),
                FieldValue::Other(value) => FieldValue::Other(value),
            };
            (name.into_owned().into(), field)
        };
        Fields(self.0.into_iter().map(owned).collect())
    }

    /// All fields but one, as JSON. Equal fields give equal JSON, regardless of their spelling in the text.
    pub fn without(&self, field: &str) -> String {
        let others = self.0.iter().filter(|(name, _)| name != field);
        let fields: Map<String, Value> =
            others.map(|(name, field)| (name.to_string(), field.clone().into())).collect();
        Value::Object(fields).to_string()
    }

    /// Of several fields with one name, the last one counts.
    fn get(&self, field: &str) -> Option<&FieldValue<'a>> {
        let (_, found) = self.0.iter().rfind(|(name, _)| name == field)?;
        (!matches!(found, FieldValue::Other(Value::Null))).then_some(found)
    }

    /// The refusal of a required field that is missing.
    pub(super) fn missing(&self, field: &'static str) -> Invalid {
        Invalid::missing(field, |name| self.get(name).is_some())
    }

    /// An optional text.
    pub fn optional_text(&self, field: &'static str) -> Result<Option<String>, Invalid> {
        Ok(self.optional_str(field)?.map(str::to_owned))
    }

    /// A required text, borrowed.
    pub fn str(&self, field: &'static str) -> Result<&str, Invalid> {
        self.optional_str(field)?.ok_or_else(|| self.missing(field))
    }

    /// An optional text, borrowed.
    pub fn optional_str(&self, field: &'static str) -> Result<Option<&str>, Invalid> {
        match self.get(field) {
            None => Ok(None),
            Some(FieldValue::Text(text)) if memchr(0, text.as_bytes()).is_none() => Ok(Some(text)),
            Some(FieldValue::Text(_)) => Err(Invalid::new(field, Rule::NoNul)),
            Some(_) => Err(Invalid::new(field, Rule::Text)),
        }
    }

    /// An optional RFC 3339 date.
    pub fn optional_date(&self, field: &'static str) -> Result<Option<Timestamp>, Invalid> {
        let text = self.optional_text(field)?;
        let date = |text: String| Timestamp::parse_rfc3339(&text).ok_or(Invalid::new(field, Rule::Date));
        text.map(date).transpose()
    }

    /// An optional list of texts.
    pub fn optional_texts(&self, field: &'static str) -> Result<Option<Vec<String>>, Invalid> {
        let wrong = || Invalid::new(field, Rule::TextList);
        let Some(found) = self.get(field) else { return Ok(None) };
        let text = |item: &Value| match item.as_str() {
            Some(text) if text.contains('\0') => Err(Invalid::new(field, Rule::NoNul)),
            text => text.map(str::to_owned).ok_or_else(wrong),
        };
        found.as_array().ok_or_else(wrong)?.iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// A required list of JSON objects.
    pub fn objects(&self, field: &'static str) -> Result<Vec<Fields<'static>>, Invalid> {
        let wrong = || Invalid::new(field, Rule::ObjectList);
        let value = self.get(field).ok_or_else(|| self.missing(field))?;
        let object = |item: &Value| item.as_object().cloned().map(Fields::from).ok_or_else(wrong);
        value.as_array().ok_or_else(wrong)?.iter().map(object).collect()
    }

    /// An optional list of objects.
    pub fn optional_objects(&self, field: &'static str) -> Result<Option<Vec<Fields<'static>>>, Invalid> {
        self.get(field).map(|_| self.objects(field)).transpose()
    }

    /// An optional `true` or `false`.
    pub fn optional_flag(&self, field: &'static str) -> Result<Option<bool>, Invalid> {
        self.get(field).map(|value| value.as_bool().ok_or(Invalid::new(field, Rule::Boolean))).transpose()
    }

    /// An optional name from a list.
    pub fn optional_name(
        &self,
        field: &'static str,
        names: &'static [&'static str],
    ) -> Result<Option<&str>, Invalid> {
        let known = |value: &FieldValue<'_>| value.as_str().is_some_and(|name| names.contains(&name));
        match self.get(field) {
            None => Ok(None),
            Some(value) if known(value) => Ok(value.as_str()),
            Some(_) => Err(Invalid::new(field, Rule::OneOf(names))),
        }
    }

    /// An optional number from a list.
    pub fn optional_number(
        &self,
        field: &'static str,
        numbers: &'static [i64],
    ) -> Result<Option<i64>, Invalid> {
        let known = |value: &FieldValue<'_>| value.as_i64().filter(|number| numbers.contains(number));
        let wrong = || Invalid::new(field, Rule::OneOfNumbers(numbers));
        self.get(field).map(|value| known(value).ok_or_else(wrong)).transpose()
    }

    /// An optional integer in a range.
    pub fn optional_integer(&self, field: &'static str, min: i64, max: i64) -> Result<Option<i64>, Invalid> {
        let within = |value: &FieldValue<'_>| value.as_i64().filter(|number| (min..=max).contains(number));
        let wrong = Invalid::new(field, Rule::Integer { min, max });
        self.get(field).map(|value| within(value).ok_or(wrong)).transpose()
    }

    /// A map from text to text; an absent map is empty.
    pub fn text_map(&self, field: &'static str) -> Result<BTreeMap<String, String>, Invalid> {
        let wrong = || Invalid::new(field, Rule::Object);
        let Some(value) = self.get(field) else { return Ok(BTreeMap::new()) };
        let entry =
            |(key, value): (&String, &Value)| Ok((key.clone(), value.as_str().ok_or_else(wrong)?.to_owned()));
        value.as_object().ok_or_else(wrong)?.iter().map(entry).collect()
    }
}

impl From<Map<String, Value>> for Fields<'static> {
    fn from(fields: Map<String, Value>) -> Self {
        let field = |(name, value): (String, Value)| {
            let field = match value {
                Value::String(text) => FieldValue::Text(text.into()),
                value => FieldValue::Other(value),
            };
            (name.into(), field)
        };
        Self(fields.into_iter().map(field).collect())
    }
}

impl From<FieldValue<'_>> for Value {
    fn from(field: FieldValue<'_>) -> Self {
        match field {
            FieldValue::Text(text) => Value::String(text.into_owned()),
            FieldValue::Other(value) => value,
        }
    }
}

impl FieldValue<'_> {
    fn other(&self) -> Option<&Value> {
        match self {
            Self::Text(_) => None,
            Self::Other(value) => Some(value),
        }
    }

    fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(_) => None,
        }
    }

    fn as_bool(&self) -> Option<bool> {
        self.other()?.as_bool()
    }

    fn as_i64(&self) -> Option<i64> {
        self.other()?.as_i64()
    }

    fn as_array(&self) -> Option<&Vec<Value>> {
        self.other()?.as_array()
    }

    fn as_object(&self) -> Option<&Map<String, Value>> {
        self.other()?.as_object()
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ReadFields)
    }
}

struct ReadFields;

impl<'de> Visitor<'de> for ReadFields {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(FIELDS_USUAL);
        while let Some((name, field)) = object.next_entry()? {
            let FieldValue::Text(name) = name else { return Err(Error::custom("a name is a text")) };
            fields.push((name, field));
        }
        Ok(Fields(fields))
    }
}

/// Initial capacity: most objects have no more fields.
const FIELDS_USUAL: usize = 8;

impl<'de> Deserialize<'de> for FieldValue<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ReadField)
    }
}

struct ReadField;

macro_rules! other {
    ($($method:ident: $type:ty),*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<Self::Value, E> {
            Ok(FieldValue::Other(value.into()))
        })*
    };
}

impl<'de> Visitor<'de> for ReadField {
    type Value = FieldValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(FieldValue::Text(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(FieldValue::Text(text.to_owned().into()))
    }

    other!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(FieldValue::Other(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(list)).map(FieldValue::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(object)).map(FieldValue::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_not_a_json_object_is_refused() {
        for text in [
            "",
            "null",
            "[]",
            "\"\"",
            "{",
            r#"{"a":"\ud800"}"#,
            &format!("{}{}", "[".repeat(500), "]".repeat(500)),
        ] {
            assert!(Fields::parse(text).is_err(), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
        for text in [r#"["\ud800"]"#, "[1e400]", &deep, &format!(r#"{{"a":{}}}"#, &deep)] {
            assert_eq!(Fields::parse(text).err(), Some(Invalid::new("body", Rule::Json)), "{text}");
        }
    }

    #[test]
    fn escapes_are_decoded_and_the_last_of_several_fields_counts() {
        let text = r#"{"\u0061":"x\ny","b":"first","b":2,"c":[{"b":"\ud83d\ude00"}],"b":null,"b":"last"}"#;
        let fields = Fields::parse(text).expect("an object").into_owned();
        assert_eq!(fields.str("a"), Ok("x\ny"));
        assert_eq!(fields.str("b"), Ok("last"));
        assert_eq!(fields.objects("c").expect("objects")[0].str("b"), Ok("😀"));
        assert_eq!(fields.without("a"), r#"{"b":"last","c":[{"b":"😀"}]}"#);
    }

    #[test]
    fn json_of_every_kind_is_read_as_serde_json_reads_it() {
        for value in
            ["-1", "18446744073709551615", "1.5e3", "true", "null", "[1,[2,{}]]", r#"{"x":[null]}"#, r#""t""#]
        {
            let text = format!(r#"{{"a":{value}}}"#);
            let expected: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(Fields::parse(&text).expect("an object").without(""), expected.to_string());
            if value.starts_with('{') {
                continue;
            }
            assert_eq!(Fields::parse(value).err(), Some(Invalid::new("body", Rule::Object)), "{value}");
        }
    }
}

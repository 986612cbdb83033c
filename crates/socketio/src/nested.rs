//! Writes a value as JSON inside a JSON string, in one pass.
//!
//! An event's argument is a text that holds JSON. Written the plain way it is escaped twice, byte by byte; this knows both
//! escapes, and copies what needs neither in runs.

use std::io::Write;

use serde::ser::{self, Error as _, Serialize, Serializer};

use crate::json::push_escaped_twice;

/// Why a value cannot be written.
type Error = serde_json::Error;
type Done = Result<(), Error>;

/// Appends a quoted JSON string whose content is `value` as JSON, without writing that JSON first. What serde_json alone
/// knows how to write (a `RawValue`) is not for this.
pub(crate) fn push_nested<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    out.push(b'"');
    // Nothing that is sent has keys other than texts, and memory takes every byte: there is nothing to go wrong.
    let _ = value.serialize(Nested(out));
    out.push(b'"');
}

/// Takes one value.
struct Nested<'o>(&'o mut Vec<u8>);

impl<'o> Nested<'o> {
    fn text(self, text: &str) {
        self.0.extend_from_slice(br#"\""#);
        push_escaped_twice(self.0, text);
        self.0.extend_from_slice(br#"\""#);
    }

    /// What is the same within a string as without.
    fn plain(self, value: impl std::fmt::Display) -> Done {
        write!(self.0, "{value}").map_err(Error::io)
    }

    fn list(self) -> Parts<'o> {
        self.0.push(b'[');
        Parts { out: self.0, is_first: true, end: b"]" }
    }

    fn object(self) -> Parts<'o> {
        self.0.push(b'{');
        Parts { out: self.0, is_first: true, end: b"}" }
    }

    /// What an enum's variant holds, under its name.
    fn variant(self, name: &str, begin: u8, end: &'static [u8]) -> Parts<'o> {
        self.0.push(b'{');
        Nested(self.0).text(name);
        self.0.extend_from_slice(&[b':', begin]);
        Parts { out: self.0, is_first: true, end }
    }
}

macro_rules! plain {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, value: $type) -> Done {
            self.plain(value)
        })*
    };
}

impl<'o> Serializer for Nested<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'o>;
    type SerializeTuple = Parts<'o>;
    type SerializeTupleStruct = Parts<'o>;
    type SerializeTupleVariant = Parts<'o>;
    type SerializeMap = Parts<'o>;
    type SerializeStruct = Parts<'o>;
    type SerializeStructVariant = Parts<'o>;

    plain! {
        serialize_bool: bool,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
    }

    fn serialize_f32(self, value: f32) -> Done {
        self.plain(serde_json::to_string(&value)?)
    }

    fn serialize_f64(self, value: f64) -> Done {
        self.plain(serde_json::to_string(&value)?)
    }

    fn serialize_char(self, value: char) -> Done {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Done {
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Done {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Done {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        let mut object = self.object();
        object.entry(variant, value)?;
        object.finish()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'o>, Error> {
        Ok(self.list())
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'o>, Error> {
        Ok(self.list())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'o>, Error> {
        Ok(self.list())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'o>, Error> {
        Ok(self.variant(variant, b'[', b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'o>, Error> {
        Ok(self.object())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'o>, Error> {
        Ok(self.object())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'o>, Error> {
        Ok(self.variant(variant, b'{', b"}}"))
    }
}

/// Takes the parts of a value that has some.
struct Parts<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
    end: &'static [u8],
}

impl Parts<'_> {
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.separate();
        value.serialize(Nested(self.out))
    }

    fn key(&mut self, key: &str) {
        self.separate();
        Nested(self.out).text(key);
        self.out.push(b':');
    }

    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Done {
        self.key(key);
        value.serialize(Nested(self.out))
    }

    fn finish(self) -> Done {
        self.out.extend_from_slice(self.end);
        Ok(())
    }
}

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        match serde_json::to_value(key)? {
            serde_json::Value::String(key) => self.key(&key),
            _ => return Err(Error::custom("a key is a text")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(Nested(self.out))
    }

    fn end(self) -> Done {
        self.finish()
    }
}

macro_rules! parts {
    (items: $($trait:ident $method:ident),*; fields: $($of_fields:ident),* $(,)?) => {
        $(impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
                self.item(value)
            }

            fn end(self) -> Done {
                self.finish()
            }
        })*
        $(impl ser::$of_fields for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Done {
                self.entry(key, value)
            }

            fn end(self) -> Done {
                self.finish()
            }
        })*
    };
}

parts! {
    items: SerializeSeq serialize_element, SerializeTuple serialize_element,
        SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field;
    fields: SerializeStruct, SerializeStructVariant,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::json;

    use super::*;
    use crate::json::push_string;

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct Newtype(f32);

    #[derive(Serialize)]
    struct Tuple(char, Option<u8>);

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    enum Variant {
        Nothing,
        One(&'static str),
        Pair(u8, i128),
        Named { an_entry: Vec<Tuple>, empty: () },
    }

    fn nested<T: Serialize>(value: &T) -> String {
        let mut out = Vec::new();
        push_nested(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    fn check<T: Serialize>(value: T) {
        let mut twice = Vec::new();
        push_string(&mut twice, &serde_json::to_string(&value).unwrap());
        assert_eq!(nested(&value), String::from_utf8(twice).unwrap());
    }

    #[test]
    fn nested_json_is_what_writing_it_twice_gives() {
        let every_character: String = (0..0x300).chain(0xd7f0..0xe010).filter_map(char::from_u32).collect();
        check(json!(null));
        check(json!({ "a": [1, -2.5, true, {}], "b\"\\\n한": "😀 /\u{7f}", "": [] }));
        check(json!([every_character, "", "plain"]));
    }

    #[test]
    fn every_kind_of_value_is_written_as_serde_json_does() {
        check((Unit, Newtype(0.1), Newtype(f32::NAN), f64::MAX, (i8::MIN, u128::MAX)));
        check([Variant::Nothing, Variant::One("\""), Variant::Pair(1, i128::MIN)]);
        let an_entry = vec![Tuple('한', None), Tuple('\u{1f}', Some(7))];
        check(BTreeMap::from([("key", Variant::Named { an_entry, empty: () })]));
        check(Variant::Named { an_entry: Vec::new(), empty: () });
    }

    #[test]
    fn a_key_that_is_no_text_is_refused() {
        assert!(BTreeMap::from([(1, 2)]).serialize(Nested(&mut Vec::new())).is_err());
    }
}

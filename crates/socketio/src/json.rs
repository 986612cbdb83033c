//! Writes JSON strings in pure ASCII.
//!
//! Clients of Socket.IO 1.x and 2.x disagree on the length of a packet that has other characters, and some
//! decode UTF-8 wrongly. On ASCII all clients agree.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Compact JSON in which every non-ASCII character is escaped as `\u` and its UTF-16 units.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(wide) = rest.find(|ch: char| !ch.is_ascii()) {
            let (plain, tail) = rest.split_at(wide);
            out.write_all(plain.as_bytes())?;
            let end = tail.find(|ch: char| ch.is_ascii()).unwrap_or(tail.len());
            for unit in tail[..end].encode_utf16() {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &tail[end..];
        }
        out.write_all(rest.as_bytes())
    }
}

/// Appends `text` as a quoted JSON string.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    // Writing a text into memory cannot fail.
    let _ = text.serialize(&mut Serializer::with_formatter(out, Ascii));
}

/// Appends a quoted JSON string whose content is `value` as JSON. A value that JSON cannot express, such as a
/// map with lists as keys, becomes the empty string.
pub(crate) fn push_nested<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    push_string(out, &serde_json::to_string(value).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn quotes_backslashes_controls_and_wide_characters_are_escaped() {
        for (text, expected) in [
            ("", r#""""#),
            ("plain text", r#""plain text""#),
            (r#"{"a":"b\\c"}"#, r#""{\"a\":\"b\\\\c\"}""#),
            ("\n\r\t\u{8}\u{1f}\u{7f}", "\"\\n\\r\\t\\b\\u001f\u{7f}\""),
            ("한글 ok", r#""\ud55c\uae00 ok""#),
            ("a😀\u{2028}", r#""a\ud83d\ude00\u2028""#),
        ] {
            assert_eq!(written(|out| push_string(out, text)), expected);
        }
    }

    #[test]
    fn every_character_is_encoded_as_ascii_and_decodes() {
        let text: String = (0..0x300)
            .chain(0xd7f0..0xe010)
            .chain([0x1_0000, 0x10_ffff])
            .filter_map(char::from_u32)
            .collect();
        let string = written(|out| push_string(out, &text));
        assert!(string.is_ascii());
        assert_eq!(serde_json::from_str::<String>(&string).expect("JSON"), text);
    }

    #[test]
    fn nested_json_is_a_string_of_json() {
        let value = json!({ "a": [1, -2.5, true, null, {}], "b\"\\\n한": "😀 /\u{8}" });
        assert_eq!(
            written(|out| push_nested(out, &value)),
            r#""{\"a\":[1,-2.5,true,null,{}],\"b\\\"\\\\\\n\ud55c\":\"\ud83d\ude00 /\\b\"}""#
        );
    }

    #[test]
    fn a_value_that_json_cannot_express_becomes_the_empty_string() {
        let value = std::collections::BTreeMap::from([([1], 2)]);
        assert_eq!(written(|out| push_nested(out, &value)), r#""""#);
    }
}

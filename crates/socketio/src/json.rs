//! Writes JSON strings in pure ASCII.
//!
//! Clients of Socket.IO 1.x and 2.x disagree on the length of a packet that holds anything else, and some decode
//! UTF-8 wrongly; in ASCII they all agree.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

const HEX: &[u8; 16] = b"0123456789abcdef";
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Appends a quoted JSON string whose content is `value` as JSON, without writing that JSON first.
pub(crate) fn push_nested<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    out.push(b'"');
    // Nothing that is sent has keys other than texts, and memory takes every byte: there is nothing to go wrong.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut *out, Nested));
    out.push(b'"');
}

/// JSON as the inside of a JSON string: what the outer string would escape is escaped while it is written.
struct Nested;

impl Formatter for Nested {
    fn begin_string<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(br#"\""#)
    }

    fn end_string<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(br#"\""#)
    }

    /// A part of a string without quotes, backslashes and control characters.
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.is_ascii() {
            return out.write_all(fragment.as_bytes());
        }
        self.write_raw_fragment(out, fragment)
    }

    fn write_char_escape<W: Write + ?Sized>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        out.write_all(match escape {
            CharEscape::Quote => br#"\\\""#,
            CharEscape::ReverseSolidus => br"\\\\",
            CharEscape::Solidus => br"\\/",
            CharEscape::Backspace => br"\\b",
            CharEscape::FormFeed => br"\\f",
            CharEscape::LineFeed => br"\\n",
            CharEscape::CarriageReturn => br"\\r",
            CharEscape::Tab => br"\\t",
            CharEscape::AsciiControl(byte) => {
                let digit = |shift: u8| HEX[usize::from(byte >> shift & 0xf)];
                return out.write_all(&[b'\\', b'\\', b'u', b'0', b'0', digit(4), digit(0)]);
            }
        })
    }

    /// JSON that was written elsewhere.
    fn write_raw_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        // A character of three bytes is six when it is escaped.
        let mut escaped = Vec::with_capacity(2 * fragment.len());
        push_escaped(&mut escaped, fragment);
        out.write_all(&escaped)
    }
}

/// Appends `text` as a quoted JSON string.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends `text` as the inside of a JSON string: quotes, backslashes, control characters and everything that is not
/// ASCII are escaped.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let plain = plain_run(&bytes[at..]);
        out.extend_from_slice(&bytes[at..at + plain]);
        at += plain;
        let Some(&special) = bytes.get(at) else { break };
        if special.is_ascii() {
            push_special(out, special);
            at += 1;
        } else {
            at += push_wide_run(out, &text[at..]);
        }
    }
}

/// Number of leading bytes that need no escape.
fn plain_run(bytes: &[u8]) -> usize {
    let mut at = 0;
    for word in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let hits = specials(word);
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|&&byte| !is_special(byte)).count()
}

fn is_special(byte: u8) -> bool {
    !matches!(byte, 0x20..0x80) || byte == b'"' || byte == b'\\'
}

/// Looks at eight bytes at once. The lowest set bit lies in the first byte that needs an escape; bits above it may be
/// false, because a borrow runs upwards only.
fn specials(word: u64) -> u64 {
    let below_space = word.wrapping_sub(ONES * 0x20);
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    // The first byte of a character that is not ASCII is 0xc2 or more: less the space, its high bit is still set.
    (below_space | quote | backslash) & HIGHS
}

fn push_special(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => push_unit(out, u16::from(byte)),
    }
}

/// Appends the leading characters that are not ASCII; says how many bytes of `text` they took.
fn push_wide_run(out: &mut Vec<u8>, text: &str) -> usize {
    let mut taken = 0;
    for ch in text.chars().take_while(|ch| !ch.is_ascii()) {
        for unit in ch.encode_utf16(&mut [0; 2]) {
            push_unit(out, *unit);
        }
        taken += ch.len_utf8();
    }
    taken
}

fn push_unit(out: &mut Vec<u8>, unit: u16) {
    let digit = |shift: u16| HEX[usize::from(unit >> shift & 0xf)];
    out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        push_escaped(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quotes_backslashes_controls_and_wide_characters_are_escaped() {
        for (text, expected) in [
            ("", ""),
            ("plain text, longer than a word", "plain text, longer than a word"),
            (r#"{"a":"b\\c"}"#, r#"{\"a\":\"b\\\\c\"}"#),
            ("\n\r\t\u{8}\u{1f}\u{7f}", "\\n\\r\\t\\u0008\\u001f\u{7f}"),
            ("한글 ok", "\\ud55c\\uae00 ok"),
            ("😀\u{2028}", "\\ud83d\\ude00\\u2028"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }

    #[test]
    fn nested_json_is_what_writing_it_twice_gives() {
        let every_character: String = (0..0x300).chain(0xd7f0..0xe010).filter_map(char::from_u32).collect();
        for value in [
            serde_json::json!(null),
            serde_json::json!({ "a": [1, -2.5, true, {}], "b\"\\\n한": "😀 /\u{7f}", "": [] }),
            serde_json::json!([every_character, "", "plain"]),
        ] {
            let (mut nested, mut twice) = (Vec::new(), Vec::new());
            push_nested(&mut nested, &value);
            push_string(&mut twice, &value.to_string());
            assert_eq!(String::from_utf8(nested), String::from_utf8(twice));
            let raw = serde_json::value::to_raw_value(&value).unwrap();
            let mut nested = Vec::new();
            push_nested(&mut nested, &raw);
            let text: String = serde_json::from_slice(&nested).unwrap();
            assert_eq!(text, raw.get());
        }
    }

    #[test]
    fn every_special_byte_is_found_at_every_place_in_a_word() {
        for code in (0..=0xff_u32).chain([0x100, 0x7ff, 0xd7ff, 0xe000, 0x10ffff]) {
            let ch = char::from_u32(code).unwrap();
            let alone = escaped(&ch.to_string());
            for place in 0..20 {
                let (head, tail) = ("!".repeat(place), "~".repeat(20 - place));
                assert_eq!(escaped(&format!("{head}{ch}{tail}")), format!("{head}{alone}{tail}"), "{code:x}");
            }
        }
    }
}

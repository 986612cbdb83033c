//! Writes JSON strings in pure ASCII.
//!
//! Clients of Socket.IO 1.x and 2.x disagree on the length of a packet that holds anything else, and some decode
//! UTF-8 wrongly; in ASCII they all agree.

const HEX: &[u8; 16] = b"0123456789abcdef";
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Appends `text` as a quoted JSON string.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends `text` as the inside of a JSON string: quotes, backslashes, control characters and everything that is not
/// ASCII are escaped.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    push_with(out, text, push_special);
}

/// Appends `text` as the inside of a JSON string that stands, as JSON, inside a JSON string.
pub(crate) fn push_escaped_twice(out: &mut Vec<u8>, text: &str) {
    push_with(out, text, push_special_twice);
}

/// What is not ASCII is escaped by one of two strings: the inner one may hold it.
fn push_with(out: &mut Vec<u8>, text: &str, push_special: impl Fn(&mut Vec<u8>, u8)) {
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
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let hits = specials(*word);
        if hits != 0 {
            return at * 8 + hits.trailing_zeros() as usize / 8;
        }
    }
    // Names are short, so the rest is looked at in one go too: with what needs no escape behind it.
    let mut word = [b' '; 8];
    word[..rest.len()].copy_from_slice(rest);
    bytes.len() - rest.len() + rest.len().min(specials(word).trailing_zeros() as usize / 8)
}

/// Looks at eight bytes at once. The lowest set bit lies in the first byte that needs an escape; bits above it may be
/// false, because a borrow runs upwards only.
fn specials(word: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(word);
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

fn push_special_twice(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => out.extend_from_slice(br#"\\\""#),
        b'\\' => out.extend_from_slice(br"\\\\"),
        0x08 => out.extend_from_slice(br"\\b"),
        0x0c => out.extend_from_slice(br"\\f"),
        _ => {
            // Its escape holds nothing to be escaped but the backslash that it begins with.
            out.push(b'\\');
            push_special(out, byte);
        }
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
    fn every_special_byte_is_found_at_every_place_in_a_word() {
        for code in (0..=0xff_u32).chain([0x100, 0x7ff, 0xd7ff, 0xe000, 0x10ffff]) {
            let ch = char::from_u32(code).unwrap();
            let alone = escaped(&ch.to_string());
            let (mut inner, mut twice) = (serde_json::to_string(&ch).unwrap(), Vec::new());
            inner = escaped(&inner[1..inner.len() - 1]);
            push_escaped_twice(&mut twice, &ch.to_string());
            assert_eq!(String::from_utf8(twice).unwrap(), inner, "{code:x}");
            for place in 0..20 {
                let (head, tail) = ("!".repeat(place), "~".repeat(20 - place));
                assert_eq!(escaped(&format!("{head}{ch}{tail}")), format!("{head}{alone}{tail}"), "{code:x}");
            }
        }
    }
}

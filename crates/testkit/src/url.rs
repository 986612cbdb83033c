//! Percent-encoding, independent of the server's.

/// `text` with everything but unreserved characters percent-encoded.
pub fn encode(text: &str) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Decodes a percent-encoded text.
///
/// # Panics
/// When it is malformed.
pub fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        if first == b'%' {
            bytes.push(u8::from_str_radix(&rest[1..3], 16).expect("two hexadecimal digits follow a %"));
            rest = &rest[3..];
        } else {
            bytes.push(first);
            rest = &rest[1..];
        }
    }
    String::from_utf8(bytes).expect("UTF-8 behind the percent-encoding")
}

/// The decoded value of a parameter of an address; `None` if it is missing.
pub fn query_value(address: &str, name: &str) -> Option<String> {
    let (_, query) = address.split_once('?')?;
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
        .map(|(_, v)| decode(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_comes_back() {
        let text = "한글 &=#+%?/\u{1f44b}";
        assert_eq!(decode(&encode(text)), text);
        assert_eq!(encode("a b~"), "a%20b~");
        assert_eq!(query_value("http://a/?x=1&y=%26", "y"), Some("&".to_owned()));
        assert_eq!(query_value("http://a/", "y"), None);
    }
}

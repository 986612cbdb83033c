//! The sign-in pages as a browser without scripts parses them: hidden inputs, cookies, and the query of the
//! redirect.

/// The hidden inputs of a page, each name once.
pub(crate) fn hidden_inputs(html: &str) -> Vec<(String, String)> {
    let mut inputs: Vec<(String, String)> = Vec::new();
    for tag in html.split("<input").skip(1).filter_map(|rest| rest.split('>').next()) {
        if attribute(tag, "type").as_deref() != Some("hidden") {
            continue;
        }
        if let (Some(name), Some(value)) = (attribute(tag, "name"), attribute(tag, "value"))
            && inputs.iter().all(|(known, _)| *known != name)
        {
            inputs.push((name, value));
        }
    }
    inputs
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    let value = tag[start..].split('"').next()?;
    Some(unescape(value))
}

/// Decodes the character references that template engines write.
fn unescape(text: &str) -> String {
    const REFERENCES: [(&str, &str); 10] = [
        ("&lt;", "<"),
        ("&#60;", "<"),
        ("&gt;", ">"),
        ("&#62;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&#38;", "&"),
        ("&amp;", "&"),
    ];
    REFERENCES.iter().fold(text.to_owned(), |text, (reference, meant)| text.replace(reference, meant))
}

/// Encodes a form's body, or a query.
pub(crate) fn encode(pairs: &[(&str, &str)]) -> String {
    let encoded =
        pairs.iter().map(|(name, value)| format!("{}={}", percent_encode(name), percent_encode(value)));
    encoded.collect::<Vec<_>>().join("&")
}

fn percent_encode(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The value of `name` in the query of `url`.
pub(crate) fn query_value(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    percent_decode(value)
}

fn percent_decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// The `name=value` of a `Set-Cookie`.
pub(crate) fn cookie(set_cookie: &str) -> &str {
    set_cookie.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_inputs_are_found_once_each() {
        let html = r#"<form><input type="hidden" name="lang" value="ko">
            <input type="text" name="login" value="x"><input name="csrf" type="hidden" value="a&amp;&#34;b&quot;">
            </form><form><input type="hidden" name="lang" value="en"><input type="hidden" name="broken">"#;
        let expected =
            [("lang", "ko"), ("csrf", "a&\"b\"")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(hidden_inputs(html), expected);
        assert!(hidden_inputs("no form <input").is_empty());
    }

    #[test]
    fn forms_and_queries_are_encoded_and_decoded() {
        let body = encode(&[("a b", "1&2=3%"), ("한", "글/~")]);
        assert_eq!(body, "a%20b=1%262%3D3%25&%ED%95%9C=%EA%B8%80%2F~");
        assert_eq!(query_value(&format!("http://x/?{body}"), "a%20b").as_deref(), Some("1&2=3%"));
        assert_eq!(query_value("http://x/?code=a-b&state=s", "state").as_deref(), Some("s"));
        assert_eq!(query_value("http://x/?acode=1", "code"), None);
        for bad in ["http://x/?a=%", "http://x/?a=%4", "http://x/?a=%zz", "http://x/?a=%ff", "http://x/"] {
            assert_eq!(query_value(bad, "a"), None, "{bad}");
        }
    }

    #[test]
    fn a_cookie_ends_before_its_attributes() {
        assert_eq!(cookie("name=value; Path=/; HttpOnly"), "name=value");
        assert_eq!(cookie("name=value"), "name=value");
    }
}

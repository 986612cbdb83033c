//! A request as a program in three languages.

/// A command of a shell.
pub(super) fn curl(method: &str, url: &str, headers: &[(&str, String)], body: &str) -> String {
    let mut command = match method {
        "GET" => format!("curl {}", shell(url)),
        _ => format!("curl -X {method} {}", shell(url)),
    };
    for (name, value) in headers {
        command.push_str(&format!(" \\\n  -H {}", shell(&format!("{name}: {value}"))));
    }
    if !body.is_empty() {
        // `-d` drops line ends, which separate the objects of NDJSON.
        command.push_str(&format!(" \\\n  --data-binary {}", shell(body)));
    }
    command
}

/// JavaScript, for browsers and Node.js.
pub(super) fn javascript(method: &str, url: &str, headers: &[(&str, String)], body: &str) -> String {
    let mut options = Vec::new();
    if method != "GET" {
        options.push(format!("  method: {},", quoted(method)));
    }
    if !headers.is_empty() {
        let header = |(name, value): &(&str, String)| format!("    {}: {},\n", quoted(name), quoted(value));
        let lines: String = headers.iter().map(header).collect();
        options.push(format!("  headers: {{\n{lines}  }},"));
    }
    if !body.is_empty() {
        options.push(match is_json(body) {
            true => format!("  body: JSON.stringify({}),", indented(body, "  ")),
            false => format!("  body: {},", quoted_lines(body, " +\n    ")),
        });
    }
    let call = match options.is_empty() {
        true => format!("fetch({})", quoted(url)),
        false => format!("fetch({}, {{\n{}\n}})", quoted(url), options.join("\n")),
    };
    format!("const response = await {call};\nconsole.log(response.status, await response.text());")
}

/// Python, with the library requests.
pub(super) fn python(method: &str, url: &str, headers: &[(&str, String)], body: &str) -> String {
    let mut arguments = vec![format!("    {},", quoted(url))];
    let own = |name: &str| name != "Content-Type" || !is_json(body);
    let header = |(name, value): &(&str, String)| format!("        {}: {},\n", quoted(name), quoted(value));
    let lines: String = headers.iter().filter(|(name, _)| own(name)).map(header).collect();
    if !lines.is_empty() {
        arguments.push(format!("    headers={{\n{lines}    }},"));
    }
    if !body.is_empty() {
        arguments.push(match is_json(body) {
            true => format!("    json={},", indented(&python_literal(body), "    ")),
            false => format!("    data=({}).encode(),", quoted_lines(body, "\n        ")),
        });
    }
    arguments.push("    timeout=10,".to_owned());
    let (function, arguments) = (method.to_lowercase(), arguments.join("\n"));
    format!(
        "import requests\n\nresponse = requests.{function}(\n{arguments}\n)\n\
         print(response.status_code, response.text)"
    )
}

/// Whether a body is one JSON text, and not one on each line.
fn is_json(body: &str) -> bool {
    !body.ends_with('\n')
}

fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text in double quotes, for JavaScript and Python.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Each line as a text of its own.
fn quoted_lines(body: &str, between: &str) -> String {
    body.lines().map(|line| quoted(&format!("{line}\n"))).collect::<Vec<_>>().join(between)
}

/// The text with its later lines moved to the right.
fn indented(text: &str, by: &str) -> String {
    text.replace('\n', &format!("\n{by}"))
}

/// JSON as Python writes it.
fn python_literal(json: &str) -> String {
    outside_strings(json, |part| {
        part.replace("true", "True").replace("false", "False").replace("null", "None")
    })
}

/// Changes the parts of a JSON text that are in no string.
fn outside_strings(json: &str, change: impl Fn(&str) -> String) -> String {
    let mut changed = String::with_capacity(json.len());
    let (mut rest, mut inside) = (json, false);
    while let Some(at) = next_quote(rest) {
        let (part, after) = rest.split_at(at + 1);
        changed.push_str(&if inside { part.to_owned() } else { change(part) });
        (rest, inside) = (after, !inside);
    }
    changed + &change(rest)
}

/// The next quote that is not escaped.
fn next_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let found = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        found
    })
}

/// A JSON text on several lines. The order of its keys stays.
pub fn pretty(json: &str) -> String {
    let mut lines = String::with_capacity(json.len() * 2);
    let (mut depth, mut inside, mut is_escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        if inside {
            lines.push(character);
            inside = character != '"' || is_escaped;
            is_escaped = character == '\\' && !is_escaped;
            continue;
        }
        match character {
            '"' => {
                inside = true;
                lines.push(character);
            }
            '{' | '[' => {
                lines.push(character);
                let is_empty = characters.peek().is_some_and(|next| matches!(next, '}' | ']'));
                if is_empty {
                    lines.extend(characters.next());
                } else {
                    depth += 1;
                    new_line(&mut lines, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut lines, depth);
                lines.push(character);
            }
            ',' => {
                lines.push(character);
                new_line(&mut lines, depth);
            }
            ':' => lines.push_str(": "),
            _ if character.is_whitespace() => {}
            _ => lines.push(character),
        }
    }
    lines
}

fn new_line(lines: &mut String, depth: usize) {
    lines.push('\n');
    lines.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer() -> Vec<(&'static str, String)> {
        vec![("Authorization", "Bearer TOKEN".to_owned())]
    }

    #[test]
    fn a_request_without_a_body() {
        let headers = bearer();
        assert_eq!(
            curl("GET", "https://a/b?c=d", &headers, ""),
            "curl 'https://a/b?c=d' \\\n  -H 'Authorization: Bearer TOKEN'"
        );
        assert_eq!(
            javascript("GET", "https://a/b", &headers, ""),
            "const response = await fetch(\"https://a/b\", {\n  headers: {\n    \"Authorization\": \"Bearer TOKEN\",\n  },\n});\n\
             console.log(response.status, await response.text());"
        );
        assert_eq!(
            python("GET", "https://a/b", &headers, ""),
            "import requests\n\nresponse = requests.get(\n    \"https://a/b\",\n    headers={\n        \"Authorization\": \"Bearer TOKEN\",\n    },\n    \
             timeout=10,\n)\nprint(response.status_code, response.text)"
        );
    }

    #[test]
    fn words_of_json_become_words_of_python_outside_texts_only() {
        let json = r#"{"a": true, "null": ["false \" true", null]}"#;
        assert_eq!(python_literal(json), r#"{"a": True, "null": ["false \" true", None]}"#);
    }

    #[test]
    fn a_quote_in_a_shell_ends_the_text_for_a_moment() {
        assert_eq!(shell("it's"), r"'it'\''s'");
    }

    #[test]
    fn lines_are_sent_with_their_ends() {
        let made = python("POST", "https://a", &[], "{\"a\": 1}\n{\"b\": 2}\n");
        assert!(
            made.contains("data=(\"{\\\"a\\\": 1}\\n\"\n        \"{\\\"b\\\": 2}\\n\").encode(),"),
            "{made}"
        );
        let made = javascript("POST", "https://a", &[], "{\"a\": 1}\n{\"b\": 2}\n");
        assert!(made.contains("body: \"{\\\"a\\\": 1}\\n\" +\n    \"{\\\"b\\\": 2}\\n\","), "{made}");
    }

    #[test]
    fn pretty_keeps_keys_and_texts() {
        let json = r#"{"z":[],"a":{"b":"c,{\"}:"},"n":[1,null]}"#;
        assert_eq!(
            pretty(json),
            "{\n  \"z\": [],\n  \"a\": {\n    \"b\": \"c,{\\\"}:\"\n  },\n  \"n\": [\n    1,\n    null\n  ]\n}"
        );
    }
}

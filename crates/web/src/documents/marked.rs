//! Short texts with code between backticks.

use std::fmt::Write;

/// The text as HTML: escaped, with `code` between backticks.
pub fn marked(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + 16);
    for (index, part) in text.split('`').enumerate() {
        match index % 2 {
            0 => html.push_str(&escaped(part)),
            _ => drop(write!(html, "<code>{}</code>", escaped(part))),
        }
    }
    html
}

/// The text with the characters that mean something in HTML replaced.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

/// The text without its marks.
pub fn plain(text: &str) -> String {
    text.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_marked_and_everything_is_escaped() {
        assert_eq!(marked("a `<b>` & 'c'"), "a <code>&lt;b&gt;</code> &amp; &#39;c&#39;");
    }
}

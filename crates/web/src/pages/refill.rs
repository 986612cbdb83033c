//! Shows a form again with what was typed, although its page was made anew: puts the values into the fields
//! of the page's HTML, and says above the page why.
//!
//! It knows only the HTML that our own templates make: attributes in double quotes, texts escaped.

/// What was typed into a form, and what is said about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Typed<'a> {
    /// The path that the form posts to.
    pub action: &'a str,
    /// Names and values of its fields.
    pub fields: &'a [(String, String)],
    /// What stands above the page.
    pub notice: &'a str,
    /// What is wrong with the field of this name.
    pub wrong: Option<(&'a str, &'a str)>,
}

/// The page with these fields filled in.
pub(crate) fn refill(html: &str, typed: &Typed<'_>) -> String {
    let mut out = String::with_capacity(html.len() + 1_024);
    let (head, mut rest) = split_behind(html, "<main", ">");
    out.push_str(head);
    out.push_str(&format!(
        "\n<p class=\"notice warn\" role=\"alert\" tabindex=\"-1\"><span>{}</span></p>",
        escape(typed.notice)
    ));
    let mut is_filled = false;
    while let Some(start) = rest.find("<form") {
        let end = rest[start..].find("</form>").map_or(rest.len(), |end| start + end);
        let (before, form) = (&rest[..start], &rest[start..end]);
        out.push_str(before);
        if !is_filled && typed.is_of(form) {
            is_filled = true;
            open_unclosed(&mut out);
            fill(form, typed, &mut out);
        } else {
            out.push_str(form);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// The beginning of every sentence at a wrong field.
const WRONG: &str = "<p class=\"wrong\"";

/// The page with each fold open that holds a wrong field.
pub(crate) fn open_folds(html: String) -> String {
    if !html.contains(WRONG) {
        return html;
    }
    let mut out = String::with_capacity(html.len() + 64);
    for (index, part) in html.split(WRONG).enumerate() {
        if index > 0 {
            open_unclosed(&mut out);
            out.push_str(WRONG);
        }
        out.push_str(part);
    }
    out
}

/// Opens the folds that are not closed at the end of this part of a page.
fn open_unclosed(html: &mut String) {
    const NAME: &str = "details";
    let (mut end, mut closed) = (html.len(), 0);
    while let Some(at) = html[..end].rfind(NAME) {
        end = at;
        if html[..at].ends_with("</") {
            closed += 1;
        } else if html[..at].ends_with('<') && closed > 0 {
            closed -= 1;
        } else if html[..at].ends_with('<') {
            let behind = at + NAME.len();
            let tag = html[behind..].split('>').next().unwrap_or_default();
            if !tag.ends_with(" open") {
                html.insert_str(behind + tag.len(), " open");
            }
        }
    }
}

impl Typed<'_> {
    /// Whether a form of the page is the one: same target, and the same hidden fields, because a list has a
    /// form for each of its items.
    fn is_of(&self, form: &str) -> bool {
        let tag = form.split('>').next().unwrap_or_default();
        let action = attribute(tag, "action").unwrap_or_default();
        let path = action.split('?').next().unwrap_or_default();
        path == escape(self.action)
            && form.split("<input").skip(1).all(|input| {
                let tag = input.split('>').next().unwrap_or_default();
                let (name, value) = (attribute(tag, "name"), attribute(tag, "value").unwrap_or_default());
                let is_hidden = attribute(tag, "type") == Some("hidden");
                !is_hidden || name.is_none_or(|name| IGNORED.contains(&name) || self.has(name, value))
            })
    }

    /// Whether a field has this value, or was not posted at all. The value is escaped.
    fn has(&self, name: &str, value: &str) -> bool {
        let mut values = self.values(name).peekable();
        values.peek().is_none() || values.any(|one| escape(one) == value)
    }

    fn values<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

/// Hidden fields whose values differ from page to page.
const IGNORED: [&str; 3] = ["csrf", "lang", "once"];

/// Fills the fields of a form in.
fn fill(form: &str, typed: &Typed<'_>, out: &mut String) {
    let mut rest = form;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let end = rest[start..].find('>').map_or(rest.len(), |end| start + end + 1);
        let tag = &rest[start..end];
        rest = &rest[end..];
        let name = attribute(tag, "name").unwrap_or_default();
        let is_wrong = typed.wrong.is_some_and(|(field, _)| !name.is_empty() && field == name);
        if tag.starts_with("<input") && !name.is_empty() {
            out.push_str(&marked(&input(tag, name, typed), is_wrong));
        } else if tag.starts_with("<textarea") {
            let end = rest.find("</textarea>").unwrap_or(rest.len());
            out.push_str(&marked(tag, is_wrong));
            match typed.values(name).next() {
                Some(value) => out.push_str(&escape(value)),
                None => out.push_str(&rest[..end]),
            }
            rest = rest[end..].strip_prefix("</textarea>").unwrap_or(&rest[end..]);
            out.push_str("</textarea>");
        } else if tag.starts_with("<select") {
            let end = rest.find("</select>").unwrap_or(rest.len());
            out.push_str(tag);
            out.push_str(&options(&rest[..end], name, typed));
            rest = &rest[end..];
        } else {
            out.push_str(tag);
        }
        if let Some((_, text)) = typed.wrong.filter(|_| is_wrong) {
            out.push_str(&format!("<p class=\"wrong\" role=\"alert\"><span>{}</span></p>", escape(text)));
        }
    }
    out.push_str(rest);
}

/// An input with what was typed. Passwords and files are never filled in.
fn input(tag: &str, name: &str, typed: &Typed<'_>) -> String {
    let kind = attribute(tag, "type").unwrap_or("text");
    match kind {
        "checkbox" | "radio" => {
            let value = attribute(tag, "value").unwrap_or("on");
            let is_chosen = typed.values(name).any(|one| escape(one) == value);
            // Of a form that was not read to its end, nothing is unchecked.
            if kind == "radio" && typed.values(name).next().is_none() || typed.fields.is_empty() {
                return tag.to_owned();
            }
            let plain = tag.replace(" checked", "");
            if is_chosen { plain.replacen("<input", "<input checked", 1) } else { plain }
        }
        "hidden" | "file" | "password" | "submit" => tag.to_owned(),
        _ => match (typed.values(name).next(), attribute(tag, "value")) {
            (Some(typed), Some(shown)) if !tag.contains(" readonly") => {
                let (before, after) =
                    (format!(" value=\"{shown}\""), format!(" value=\"{}\"", escape(typed)));
                tag.replacen(&before, &after, 1)
            }
            _ => tag.to_owned(),
        },
    }
}

/// The options of a list, with the chosen one.
fn options(html: &str, name: &str, typed: &Typed<'_>) -> String {
    let Some(chosen) = typed.values(name).next().map(escape) else { return html.to_owned() };
    if !html.contains(&format!("value=\"{chosen}\"")) {
        return html.to_owned();
    }
    let of = format!("<option value=\"{chosen}\"");
    html.replace(" selected", "").replacen(&of, &format!("{of} selected"), 1)
}

fn marked(tag: &str, is_wrong: bool) -> String {
    match tag.split_once(' ') {
        Some((start, rest)) if is_wrong && !tag.contains(" aria-invalid") => {
            format!("{start} aria-invalid=\"true\" {rest}")
        }
        _ => tag.to_owned(),
    }
}

/// The value of an attribute, escaped as it stands.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()
}

/// Splits a text behind the first `end` after the first `start`.
fn split_behind<'t>(text: &'t str, start: &str, end: &str) -> (&'t str, &'t str) {
    let at = text.find(start).and_then(|from| Some(from + text[from..].find(end)? + end.len()));
    text.split_at(at.unwrap_or(0))
}

/// As the templates escape.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("&#34;"),
            '&' => escaped.push_str("&#38;"),
            '\'' => escaped.push_str("&#39;"),
            '<' => escaped.push_str("&#60;"),
            '>' => escaped.push_str("&#62;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<main id=\"main\"><form action=\"/other\"><input name=\"a\" type=\"text\" value=\"\"></form>\
        <form method=\"post\" action=\"/a?x=1\"><input type=\"hidden\" name=\"csrf\" value=\"new\">\
        <input type=\"hidden\" name=\"id\" value=\"1\"><input id=\"f\" name=\"a\" type=\"text\" value=\"old\">\
        <input name=\"p\" type=\"password\" value=\"\"><input type=\"checkbox\" name=\"s\" value=\"1\" checked>\
        <input type=\"checkbox\" name=\"s\" value=\"2\"><textarea name=\"t\" rows=\"2\">old</textarea>\
        <select name=\"o\"><option value=\"x\" selected>X</option><option value=\"y\">Y</option></select></form></main>";

    fn typed(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_form_has_what_was_typed_and_no_secret() {
        let fields = typed(&[
            ("id", "1"),
            ("a", "\"<b>"),
            ("p", "secret"),
            ("s", "2"),
            ("t", "</textarea>"),
            ("o", "y"),
        ]);
        let page = refill(PAGE, &Typed { action: "/a", fields: &fields, notice: "a & b", wrong: None });
        assert!(page.contains("<span>a &#38; b</span>"));
        assert!(page.contains("value=\"&#34;&#60;b&#62;\""), "{page}");
        assert!(page.contains("<input type=\"checkbox\" name=\"s\" value=\"1\">"), "{page}");
        assert!(page.contains("<input checked type=\"checkbox\" name=\"s\" value=\"2\">"));
        assert!(page.contains(">&#60;/textarea&#62;</textarea>"));
        assert!(page.contains("<option value=\"x\">") && page.contains("<option value=\"y\" selected>"));
        assert!(!page.contains("secret") && page.contains("name=\"csrf\" value=\"new\""));
        assert_eq!(page.matches("value=\"\"").count(), 2, "the other form is as it was");
    }

    #[test]
    fn the_form_of_another_item_is_left_alone() {
        let fields = typed(&[("id", "2"), ("a", "typed")]);
        let page = refill(PAGE, &Typed { action: "/a", fields: &fields, notice: "", wrong: None });
        assert!(!page.contains("typed"));
        let elsewhere = refill(PAGE, &Typed { action: "/b", fields: &fields, notice: "", wrong: None });
        assert!(!elsewhere.contains("typed"));
    }

    #[test]
    fn a_fold_with_a_wrong_field_or_a_form_that_is_shown_again_is_open() {
        let wrong = "<p class=\"wrong\">w</p>";
        let page = |form: &str| {
            format!(
                "<main><details class=\"fold\"><summary>other</summary></details><details class=\"fold\">\
                 <details class=\"fold\" open><summary>a</summary>{form}</details></details>\
                 <details class=\"later\"></details></main>"
            )
        };
        let open = |html: &str| {
            html.split("<details")
                .skip(1)
                .map(|part| part.split('>').next().is_some_and(|tag| tag.ends_with(" open")))
                .collect::<Vec<_>>()
        };
        assert_eq!(open(&open_folds(page(wrong))), [false, true, true, false]);
        assert_eq!(open_folds(page("right")), page("right"));
        let form = page("<form action=\"/a\"><input name=\"a\" type=\"text\" value=\"\"></form>");
        let typed = Typed { action: "/a", fields: &[], notice: "n", wrong: Some(("a", "too large")) };
        assert_eq!(open(&refill(&form, &typed)), [false, true, true, false]);
    }

    #[test]
    fn a_field_says_what_is_wrong_with_it() {
        for field in ["a", "t"] {
            let wrong = Some((field, "too large"));
            let page = refill(PAGE, &Typed { action: "/a", fields: &[], notice: "n", wrong });
            assert_eq!(page.matches("too large").count(), 1);
            assert_eq!(page.matches("aria-invalid").count(), 1, "{page}");
            assert!(page.contains("value=\"1\" checked"), "nothing was read, so nothing is unchecked");
        }
        assert!(
            refill("no page", &Typed { action: "/a", fields: &[], notice: "n", wrong: None })
                .contains("no page")
        );
    }
}

//! The forms of a page, parsed like in a browser: decoded attributes, hidden fields, buttons.

/// A form and its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Its target.
    pub action: String,
    /// Its method, in lower case.
    pub method: String,
    /// Its fields, in order, with their values.
    pub fields: Vec<(String, String)>,
    /// Its buttons, of which one is sent.
    pub buttons: Vec<(String, String)>,
}

impl Form {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Fills a field in.
    ///
    /// # Panics
    /// When the form has no such field.
    pub fn fill(mut self, name: &str, value: &str) -> Self {
        let field = self.fields.iter_mut().find(|(key, _)| key == name);
        value.clone_into(&mut field.unwrap_or_else(|| panic!("no field {name}")).1);
        self
    }

    /// Presses a button.
    ///
    /// # Panics
    /// When the form has no such button.
    pub fn press(mut self, name: &str, value: &str) -> Self {
        let pair = (name.to_owned(), value.to_owned());
        assert!(self.buttons.contains(&pair), "no button {name}={value}: {:?}", self.buttons);
        self.fields.push(pair);
        self
    }

    /// Removes a field, which no browser does.
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(key, _)| key != name);
        self
    }

    /// The body of the request.
    pub fn body(&self) -> String {
        let pair =
            |(name, value): &(String, String)| format!("{}={}", crate::encode(name), crate::encode(value));
        self.fields.iter().map(pair).collect::<Vec<_>>().join("&")
    }
}

/// All forms of a page.
pub(crate) fn forms(page: &str) -> Vec<Form> {
    let mut forms = Vec::new();
    for part in page.split("<form").skip(1) {
        let inside = part.split("</form>").next().unwrap_or_default();
        let (tag, inside) = inside.split_once('>').unwrap_or((inside, ""));
        let mut form = Form {
            action: attribute(tag, "action").unwrap_or_default(),
            method: attribute(tag, "method").unwrap_or_else(|| "get".to_owned()).to_ascii_lowercase(),
            ..Form::default()
        };
        for element in inside.split('<') {
            let tag = element.split('>').next().unwrap_or_default();
            let Some(name) = attribute(tag, "name") else { continue };
            let pair = (name, attribute(tag, "value").unwrap_or_default());
            match tag.split_whitespace().next() {
                // A list is sent empty, unless a test fills it.
                Some("input" | "select") => form.fields.push(pair),
                Some("button") => form.buttons.push(pair),
                _ => {}
            }
        }
        forms.push(form);
    }
    forms
}

/// The value of an attribute; the pages quote all of them with double quotes, and write no `<` or `>` inside.
pub(crate) fn attribute(tag: &str, name: &str) -> Option<String> {
    let start = format!(" {name}=\"");
    let tag = tag.replace('\n', " ");
    let from = tag.find(&start)? + start.len();
    Some(resolve(tag[from..].split('"').next().unwrap_or_default()))
}

/// Character references, numbered and the few named ones.
fn resolve(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let end = rest[at..].find(';').expect("a reference ends with a semicolon") + at;
        out.push(character(&rest[at + 1..end]));
        rest = &rest[end + 1..];
    }
    out + rest
}

fn character(reference: &str) -> char {
    let numbered = reference.strip_prefix("#x").map(|digits| u32::from_str_radix(digits, 16));
    let numbered = numbered.or_else(|| reference.strip_prefix('#').map(str::parse));
    match (numbered, reference) {
        (Some(Ok(number)), _) => char::from_u32(number).expect("a character"),
        (None, "amp") => '&',
        (None, "lt") => '<',
        (None, "gt") => '>',
        (None, "quot") => '"',
        (None, "apos") => '\'',
        _ => panic!("unknown reference &{reference};"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_what_it_sends() {
        let page = r#"<form class="x" method="POST" action="/a?b=1&#38;c=2"><input type="hidden" name="t" value="&quot;1&#x27;">
            <button type="submit" name="go" value="yes">Go</button></form><form action="/b"></form>"#;
        let [form, other] = forms(page).try_into().expect("two forms");
        assert_eq!((form.action.as_str(), form.method.as_str()), ("/a?b=1&c=2", "post"));
        assert_eq!(form.field("t"), Some("\"1'"));
        assert_eq!(form.fill("t", "가").press("go", "yes").body(), "t=%EA%B0%80&go=yes");
        assert_eq!((other.action.as_str(), other.method.as_str()), ("/b", "get"));
    }
}

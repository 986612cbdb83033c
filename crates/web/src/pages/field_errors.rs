//! What is wrong with the fields of a form.

use domain::{Invalid, Rule};

use super::Lang;

/// Sentences at the fields of a form that is shown again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldErrors(Vec<(&'static str, String)>);

impl FieldErrors {
    /// Adds a sentence at a field, or the part of one that follows its subject.
    pub fn add(&mut self, field: &'static str, text: impl Into<String>) {
        self.0.push((field, sentence(text.into())));
    }

    /// Adds what the rules of the service say about a field.
    pub fn add_invalid(&mut self, invalid: &Invalid, lang: Lang) {
        self.add(invalid.field, rule_for_people(&invalid.rule, lang));
    }

    /// The value of a field, or the rule that it breaks, which is added.
    pub fn keep<T>(&mut self, value: Result<T, Invalid>, lang: Lang) -> Option<T> {
        value.inspect_err(|invalid| self.add_invalid(invalid, lang)).ok()
    }

    /// The first sentence at a field.
    pub fn of(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == field).map(|(_, text)| text.as_str())
    }

    /// Whether every field is right.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A whole sentence. The field stands above it, so that its label, which may be a phrase of any form, is not
/// repeated.
fn sentence(text: String) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    match first {
        "must" | "is" | "has" | "needs" | "cannot" | "signs" => format!("This {text}"),
        // The scheme of an address keeps its letters.
        _ if first.starts_with(|letter: char| letter.is_ascii_lowercase()) && !first.starts_with("http") => {
            text[..1].to_ascii_uppercase() + &text[1..]
        }
        _ => text,
    }
}

/// A rule without what only programs can do wrong.
fn rule_for_people(rule: &Rule, lang: Lang) -> String {
    match (rule, lang) {
        (Rule::Chars { min: 0, max }, Lang::Ko) => format!("{max}자 이하여야 합니다."),
        (Rule::Chars { min: 0, max }, Lang::En) => format!("must have at most {max} characters."),
        (Rule::Chars { min, max }, Lang::Ko) => {
            format!("{min}자 이상 {max}자 이하여야 하며, 공백만 있으면 안 됩니다.")
        }
        (Rule::Chars { min, max }, Lang::En) => {
            format!("must have {min} to {max} characters, and not only spaces.")
        }
        (Rule::OtherChannel, Lang::Ko) => "자기 자신은 지정할 수 없습니다.".to_owned(),
        (Rule::OtherChannel, Lang::En) => "You cannot choose yourself.".to_owned(),
        _ => rule.text(lang.into()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_rule_stands_at_its_field() {
        let mut errors = FieldErrors::default();
        assert_eq!(errors.keep(Ok(1), Lang::En), Some(1));
        assert!(errors.is_empty());
        assert_eq!(errors.keep::<()>(Err(Invalid::new("homepageUrl", Rule::HttpsUrl)), Lang::En), None);
        errors.add("homepageUrl", "another");
        let expected = "This must be an https address, without user information.";
        assert_eq!(errors.of("homepageUrl"), Some(expected));
        assert_eq!(errors.of("name"), None);
    }

    #[test]
    fn every_error_is_a_whole_sentence_whatever_the_label() {
        for (rule, expected) in [
            (Rule::Email, "This must be an e-mail address."),
            (Rule::SameName, "This must be the name of the application."),
            (Rule::Taken, "This is taken already."),
            (Rule::OtherChannel, "You cannot choose yourself."),
            (Rule::Chars { min: 1, max: 50 }, "This must have 1 to 50 characters, and not only spaces."),
            (
                Rule::NoOtherPendingSecret,
                "Another one is pending already: activate or delete that one first.",
            ),
        ] {
            let mut errors = FieldErrors::default();
            errors.add_invalid(&Invalid::new("name", rule), Lang::En);
            assert_eq!(errors.of("name"), Some(expected));
        }
        let mut errors = FieldErrors::default();
        errors.add_invalid(&Invalid::new("name", Rule::Chars { min: 1, max: 50 }), Lang::Ko);
        assert_eq!(errors.of("name"), Some("1자 이상 50자 이하여야 하며, 공백만 있으면 안 됩니다."));
    }
}

//! What is wrong with the fields of a form.

use domain::Invalid;

use super::Lang;

/// Sentences at the fields of a form that is shown again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldErrors(Vec<(&'static str, String)>);

impl FieldErrors {
    /// Adds a sentence at a field.
    pub fn add(&mut self, field: &'static str, text: impl Into<String>) {
        self.0.push((field, text.into()));
    }

    /// Adds what the rules of the service say about a field.
    pub fn add_invalid(&mut self, invalid: &Invalid, lang: Lang) {
        self.add(invalid.field, invalid.rule.text(lang.into()).into_owned());
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

#[cfg(test)]
mod tests {
    use domain::Rule;

    use super::*;

    #[test]
    fn a_broken_rule_stands_at_its_field() {
        let mut errors = FieldErrors::default();
        assert_eq!(errors.keep(Ok(1), Lang::En), Some(1));
        assert!(errors.is_empty());
        assert_eq!(errors.keep::<()>(Err(Invalid::new("homepageUrl", Rule::HttpsUrl)), Lang::En), None);
        errors.add("homepageUrl", "another");
        assert_eq!(errors.of("homepageUrl"), Some("must be an https address, without user information."));
        assert_eq!(errors.of("name"), None);
    }
}

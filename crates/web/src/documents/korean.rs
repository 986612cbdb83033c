//! The descriptions of fields in both languages.
//!
//! The English comes from the doc comments of the serialized types and from the values of the forms.
//! `korean.txt` has the Korean of each. `names.txt` describes fields that have no description there.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::figures::fill;
use crate::pages::Lang;

/// Pairs of lines: the English and its Korean, with an empty line between the pairs.
const TEXT: &str = include_str!("korean.txt");
/// Blocks of three lines: the name of a field, its description in English and in Korean.
const NAMES: &str = include_str!("names.txt");

static KOREAN: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| pairs(TEXT).collect());
static OF_NAMES: LazyLock<HashMap<&'static str, (&'static str, &'static str)>> = LazyLock::new(|| {
    pairs(NAMES).filter_map(|(name, texts)| Some((name, texts.split_once('\n')?))).collect()
});

fn pairs(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("\n\n").filter_map(|pair| pair.trim().split_once('\n'))
}

/// The description of a field in a language. Without a translation it stays English, which a test forbids.
pub fn described(name: &str, english: Option<&str>, lang: Lang) -> String {
    let own = match (english, lang) {
        (None, _) => OF_NAMES.get(name).map(|(english, korean)| lang.pick(korean, english)),
        (Some(english), Lang::Ko) => KOREAN.get(english).copied().or(Some(english)),
        (english, Lang::En) => english,
    };
    fill(own.unwrap_or_default(), lang)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_translated_twice() {
        assert_eq!(pairs(TEXT).count(), KOREAN.len());
        assert_eq!(pairs(NAMES).count(), OF_NAMES.len());
        for (english, korean) in pairs(TEXT) {
            assert!(!korean.contains('\n') && korean != english, "{english}");
        }
    }
}

//! Categories, lives and broadcast settings (spec sections 2 and 4.3).

use crate::limits::{LIVE_TITLE_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX};
use crate::{Invalid, Rule, invalid};

/// `categoryType`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CategoryType {
    /// A game.
    Game,
    /// A sport.
    Sports,
    /// Anything else.
    Etc,
}

impl CategoryType {
    /// The names on the wire.
    pub const NAMES: &'static [&'static str] = &["GAME", "SPORTS", "ETC"];

    /// The name on the wire and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Game => "GAME",
            Self::Sports => "SPORTS",
            Self::Etc => "ETC",
        }
    }

    /// # Errors
    /// `Invalid` naming `categoryType`.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        match name {
            "GAME" => Ok(Self::Game),
            "SPORTS" => Ok(Self::Sports),
            "ETC" => Ok(Self::Etc),
            _ => Err(Invalid::new("categoryType", Rule::OneOf(Self::NAMES))),
        }
    }
}

/// Checks a title: not blank, at most 100 characters.
///
/// # Errors
/// `Invalid` naming `field`.
pub fn check_title(field: &'static str, title: &str) -> Result<(), Invalid> {
    invalid::text(field, title, 1, LIVE_TITLE_CHARS_MAX)
}

/// Checks tags: at most 20 of at most 20 characters, each made of letters, marks and digits of any script; spaces and
/// special characters are not allowed (spec 4.3; decisions 1).
///
/// # Errors
/// `Invalid` naming `tags`.
pub fn check_tags(tags: &[String]) -> Result<(), Invalid> {
    if tags.len() > TAGS_MAX {
        return Err(Invalid::new("tags", Rule::Items { min: 0, max: TAGS_MAX }));
    }
    if tags.iter().all(|tag| is_tag(tag)) { Ok(()) } else { Err(Invalid::new("tags", Rule::Tag)) }
}

fn is_tag(tag: &str) -> bool {
    (1..=TAG_CHARS_MAX).contains(&tag.chars().count())
        && tag.chars().all(|c| c.is_alphanumeric() || is_mark(c))
}

/// Combining marks outside what `char::is_alphanumeric` counts as alphabetic: accents, viramas, tone and vowel signs of
/// the scripts in living use. Variation selectors and joiners belong to emojis, which are no tags.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036F}' | '\u{0483}'..='\u{0489}' | '\u{0591}'..='\u{05BD}' | '\u{05BF}'
        | '\u{05C1}' | '\u{05C2}' | '\u{05C4}' | '\u{05C5}' | '\u{05C7}' | '\u{0610}'..='\u{061A}'
        | '\u{064B}'..='\u{065F}' | '\u{0670}' | '\u{06D6}'..='\u{06DC}' | '\u{06DF}'..='\u{06E4}'
        | '\u{093C}' | '\u{094D}' | '\u{0951}'..='\u{0954}' | '\u{09BC}' | '\u{09CD}' | '\u{0A3C}' | '\u{0A4D}'
        | '\u{0ABC}' | '\u{0ACD}' | '\u{0B3C}' | '\u{0B4D}' | '\u{0BCD}' | '\u{0C4D}' | '\u{0CBC}' | '\u{0CCD}'
        | '\u{0D4D}' | '\u{0DCA}' | '\u{0E3A}' | '\u{0E47}'..='\u{0E4E}' | '\u{0EC8}'..='\u{0ECE}'
        | '\u{0F39}' | '\u{1037}' | '\u{1039}' | '\u{103A}' | '\u{17C9}'..='\u{17D3}' | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20DC}' | '\u{302A}'..='\u{302F}' | '\u{3099}' | '\u{309A}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_any_script_without_spaces_or_special_characters() {
        let check = |tag: &str, ok| assert_eq!(check_tags(&[tag.to_owned()]).is_ok(), ok, "{tag:?}");
        check("게임", true);
        check("게임", true); // decomposed
        check("café", true);
        check("cafe\u{301}", true);
        check("हिन्दी", true);
        check("tag1", true);
        check(&"가".repeat(20), true);
        check(&"가".repeat(21), false);
        check("", false);
        check("two words", false);
        check("#tag", false);
        check("a_b", false);
        check("👋", false);
        check("a\0", false);
        check("a\u{200d}b", false);
    }

    #[test]
    fn at_most_twenty_tags() {
        let tags = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>();
        assert!(check_tags(&tags(20)).is_ok());
        assert!(check_tags(&tags(21)).is_err());
        assert!(check_tags(&[]).is_ok());
    }
}

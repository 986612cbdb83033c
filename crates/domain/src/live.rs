//! Categories, lives and broadcast settings (`docs/spec/lives.md`).

use crate::chat::check_web_address;
use crate::distinct::distinct_up_to;
use crate::limits::{LIVE_TITLE_CHARS_MAX, NAME_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX};
use crate::{CategoryId, Invalid, Rule, invalid};

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

impl CategoryType {
    /// The type of that name in the store.
    pub fn stored(name: &str) -> Option<Self> {
        Self::parse(name).ok()
    }

    /// A list with only this type's name, for a refusal.
    const fn only_name(self) -> &'static [&'static str] {
        match self {
            Self::Game => &["GAME"],
            Self::Sports => &["SPORTS"],
            Self::Etc => &["ETC"],
        }
    }
}

/// A category of lives (`docs/spec/lives.md#categories`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Category {
    /// Its id.
    pub category_id: CategoryId,
    /// Its type.
    pub category_type: CategoryType,
    /// Its name.
    pub category_value: String,
    /// The address of its picture.
    pub poster_image_url: Option<String>,
}

impl Category {
    /// Checks the name (1 to 100 characters) and the picture's address.
    ///
    /// # Errors
    /// `Invalid` naming the wrong field.
    pub fn check(&self) -> Result<(), Invalid> {
        invalid::text("categoryValue", &self.category_value, 1, NAME_CHARS_MAX)?;
        self.poster_image_url.as_deref().map_or(Ok(()), |url| check_web_address("posterImageUrl", url))
    }
}

/// The category of a broadcast in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CategoryChoice {
    /// The request has no `categoryId`: the category stays.
    Unsaid,
    /// `categoryId` is empty: the broadcast has no category.
    None,
    /// `categoryId` names this category.
    Of(CategoryId),
}

impl CategoryChoice {
    /// Parses `categoryId`. A text that cannot be an id names no category.
    ///
    /// # Errors
    /// `Invalid` naming `categoryId`.
    pub fn parse(id: Option<&str>) -> Result<Self, Invalid> {
        match id {
            None => Ok(Self::Unsaid),
            Some("") => Ok(Self::None),
            Some(id) => CategoryId::parse("categoryId", id)
                .map(Self::Of)
                .map_err(|_| Invalid::new("categoryId", Rule::KnownCategory)),
        }
    }
}

/// Checks `categoryType` against the category of a broadcast setting. Callers repeat the category's own type
/// there, so both must agree. The refusal names that type, or asks for a category if there is none
/// (`docs/spec/lives.md#broadcast-setting`).
///
/// # Errors
/// `Invalid` naming `categoryType`.
pub fn check_category_type(
    given: Option<CategoryType>,
    choice: &CategoryChoice,
    category: Option<&Category>,
) -> Result<(), Invalid> {
    let Some(given) = given else { return Ok(()) };
    let own = category.map(|category| category.category_type);
    let rule = match (choice, own) {
        (CategoryChoice::None, _) => return Ok(()),
        (_, Some(own)) if own == given => return Ok(()),
        (_, Some(own)) => Rule::OneOf(own.only_name()),
        (_, None) => Rule::Together("categoryId"),
    };
    Err(Invalid::new("categoryType", rule))
}

/// Checks a title: not blank, at most 100 characters.
///
/// # Errors
/// `Invalid` naming `field`.
pub fn check_title(field: &'static str, title: &str) -> Result<(), Invalid> {
    invalid::text(field, title, 1, LIVE_TITLE_CHARS_MAX)
}

/// The distinct tags, in their order: at most 20 of at most 20 characters, each made of letters, marks and
/// digits of any script. Spaces and special characters are not allowed
/// (`docs/spec/lives.md#broadcast-setting`).
///
/// # Errors
/// `Invalid` naming `tags`.
pub fn distinct_tags(given: &[String]) -> Result<Vec<String>, Invalid> {
    let tags = distinct_up_to(TAGS_MAX, given.iter().map(String::as_str));
    if !tags.iter().copied().all(is_tag) {
        return Err(Invalid::new("tags", Rule::Tag));
    }
    if tags.len() > TAGS_MAX {
        return Err(Invalid::new("tags", Rule::Items { min: 0, max: TAGS_MAX }));
    }
    Ok(tags.into_iter().map(str::to_owned).collect())
}

fn is_tag(tag: &str) -> bool {
    (1..=TAG_CHARS_MAX).contains(&tag.chars().count())
        && tag.chars().all(|c| c.is_alphanumeric() || is_mark(c))
}

/// Combining marks that `char::is_alphanumeric` does not count as alphabetic: accents, viramas, tone and
/// vowel signs of the scripts in living use. Variation selectors and joiners belong to emojis, which are no
/// tags.
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
        let check = |tag: &str, ok| assert_eq!(distinct_tags(&[tag.to_owned()]).is_ok(), ok, "{tag:?}");
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
    fn at_most_twenty_distinct_tags_in_their_order() {
        let tags = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>();
        assert_eq!(distinct_tags(&tags(20)), Ok(tags(20)));
        assert!(distinct_tags(&tags(21)).is_err());
        assert_eq!(distinct_tags(&[tags(20), tags(20)].concat()), Ok(tags(20)));
        assert!(distinct_tags(&[tags(20), vec!["one more".to_owned()]].concat()).is_err());
        assert_eq!(distinct_tags(&[]), Ok(vec![]));
    }

    #[test]
    fn a_category_type_must_match_the_category() {
        use CategoryType::{Etc, Game};
        let category = Category {
            category_id: CategoryId::stored("talk".to_owned()),
            category_type: Etc,
            category_value: "토크".to_owned(),
            poster_image_url: None,
        };
        let (unsaid, none) = (CategoryChoice::Unsaid, CategoryChoice::None);
        let talk = CategoryChoice::parse(Some("talk")).expect("an id");
        let refused = |rule| Err(Invalid::new("categoryType", rule));
        for (given, choice, of, expected) in [
            (None, &unsaid, None, Ok(())),
            (None, &talk, Some(&category), Ok(())),
            (Some(Etc), &talk, Some(&category), Ok(())),
            (Some(Game), &talk, Some(&category), refused(Rule::OneOf(&["ETC"]))),
            (Some(Game), &none, Some(&category), Ok(())),
            (Some(Etc), &unsaid, Some(&category), Ok(())),
            (Some(Game), &unsaid, Some(&category), refused(Rule::OneOf(&["ETC"]))),
            (Some(Game), &unsaid, None, refused(Rule::Together("categoryId"))),
        ] {
            assert_eq!(check_category_type(given, choice, of), expected, "{given:?} {choice:?}");
        }
        assert_eq!(CategoryChoice::parse(Some("")), Ok(none));
        assert_eq!(CategoryChoice::parse(None), Ok(unsaid));
        assert!(CategoryChoice::parse(Some("없는 것")).is_err());
    }
}

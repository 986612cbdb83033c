//! The language of a page.

use domain::Language;

use super::texts::{EN, KO, Texts};

/// A language in which the pages exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    /// Korean, the service's own language.
    #[default]
    Ko,
    /// English.
    En,
}

impl Lang {
    /// Every language.
    pub const ALL: [Self; 2] = [Self::Ko, Self::En];

    /// Chooses the language: the first of `wanted` that exists (form, query, cookie), else the preference of
    /// the `Accept-Language` header, else Korean. Invalid values are ignored.
    pub fn choose(wanted: [Option<&str>; 3], accept_language: Option<&str>) -> Self {
        let wanted = wanted.into_iter().flatten().find_map(Language::from_tag);
        wanted.or_else(|| accept_language.and_then(Language::preferred)).map_or(Self::Ko, Self::from)
    }

    /// Whether a language has this tag.
    pub fn exists(tag: &str) -> bool {
        Language::from_tag(tag).is_some()
    }

    /// The text in this language.
    pub const fn pick(self, ko: &'static str, en: &'static str) -> &'static str {
        match self {
            Self::Ko => ko,
            Self::En => en,
        }
    }

    /// The language tag, as in `<html lang>` and in the query parameter `lang`.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Ko => "ko",
            Self::En => "en",
        }
    }

    /// The target of the page's language link.
    pub const fn other(self) -> Self {
        match self {
            Self::Ko => Self::En,
            Self::En => Self::Ko,
        }
    }

    /// The language's name in the language itself.
    pub const fn own_name(self) -> &'static str {
        match self {
            Self::Ko => "한국어",
            Self::En => "English",
        }
    }

    /// All texts of the pages in this language.
    pub(super) const fn texts(self) -> &'static Texts {
        match self {
            Self::Ko => &KO,
            Self::En => &EN,
        }
    }
}

impl From<Lang> for Language {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Ko => Self::Korean,
            Lang::En => Self::English,
        }
    }
}

impl From<Language> for Lang {
    fn from(language: Language) -> Self {
        language.pick(Self::Ko, Self::En)
    }
}

/// The address of the page at `path` in language `to`. The other parameters of `raw_query` stay byte for
/// byte, so switching the language keeps the request.
///
/// `path` is always treated as a path on this origin: `//host` does not become another host.
pub fn language_href(path: &str, raw_query: Option<&str>, to: Lang) -> String {
    let path = path.trim_start_matches(['/', '\\', '\t', '\n', '\r']);
    let mut href = format!("/{path}?");
    for pair in raw_query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let names_language =
            form_urlencoded::parse(pair.as_bytes()).next().is_some_and(|(key, _)| key == "lang");
        if !names_language {
            href.push_str(pair);
            href.push('&');
        }
    }
    href.push_str("lang=");
    href.push_str(to.tag());
    href
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_requested_then_the_preferred_then_korean() {
        use Lang::{En, Ko};
        for (query, header, expected) in [
            (None, None, Ko),
            (Some("en"), Some("ko"), En),
            (Some("ko"), Some("en"), Ko),
            (Some("EN-gb"), None, En),
            (Some("fr"), Some("en"), En),
            (Some(""), Some("en-US,en;q=0.9"), En),
            (None, Some("fr, de;q=0.9"), Ko),
            (None, Some("en;q=0.5, ko;q=0.8"), Ko),
            (None, Some("ko;q=0.5, en-US ; q=0.8"), En),
            (None, Some("en, ko"), En),
            (None, Some("en;q=0"), Ko),
            (None, Some("en;q=NaN, ko;q=inf"), Ko),
            (None, Some("en;q=2"), Ko),
            (None, Some(",;;=,,"), Ko),
            (None, Some("english"), Ko),
        ] {
            assert_eq!(Lang::choose([None, query, None], header), expected, "{query:?} {header:?}");
        }
        assert_eq!(Lang::choose([None, None, Some("en")], Some("ko")), En);
        assert_eq!(Lang::choose([None, Some("ko"), Some("en")], None), Ko);
        assert_eq!(Lang::choose([Some("en"), Some("ko"), None], None), En);
    }

    #[test]
    fn switching_the_language_keeps_the_request_and_stays_on_this_origin() {
        for (path, query, expected) in [
            ("/account-interlock", None, "/account-interlock?lang=en"),
            ("/a", Some("clientId=1&state=a%26b"), "/a?clientId=1&state=a%26b&lang=en"),
            ("/a", Some("lang=ko&x=1&la%6Eg=ko&lang"), "/a?x=1&lang=en"),
            ("/a", Some("&&language=1"), "/a?language=1&lang=en"),
            ("//evil.example/", None, "/evil.example/?lang=en"),
            ("/\\evil.example", None, "/evil.example?lang=en"),
            ("javascript:alert(1)", None, "/javascript:alert(1)?lang=en"),
        ] {
            assert_eq!(language_href(path, query, Lang::En), expected);
        }
    }
}

//! The words of the field that takes any id.

use web::pages::Lang;

/// The words of the field.
#[derive(Debug)]
pub(crate) struct FindWords {
    pub label: &'static str,
    pub button: &'static str,
}

/// The words in this language.
pub(crate) const fn find_words(lang: Lang) -> &'static FindWords {
    const KO: FindWords = FindWords { label: "ID로 찾기", button: "찾기" };
    const EN: FindWords = FindWords { label: "Find by id", button: "Find" };
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

//! The search of the documentation. Its index is built once for the process, and a search has a bounded
//! number of words, so that its cost does not depend on what is asked.

mod entries;
mod index;
mod words;

use std::sync::LazyLock;

use askama::Template;

use super::frame::Navigation;
use super::texts::DocsTexts;
use crate::pages::{Lang, Shell, filters};
use entries::entries;
use index::{Index, Match};

pub use entries::Found;

/// Maximum number of characters of a search that are used.
pub const ASKED_CHARS_MAX: usize = 100;
/// Maximum number of results.
const RESULTS_MAX: usize = 20;
/// Length of the part of a text that is shown, in characters.
const EXCERPT_CHARS: usize = 160;

/// The page with the results.
#[derive(Template)]
#[template(path = "pages/docs/search.html")]
pub struct SearchPage<'a> {
    /// The layout.
    pub shell: Shell<'a>,
    /// The navigation, with what is searched for.
    pub nav: Navigation,
    /// The words.
    pub t: &'static DocsTexts,
    /// What was found.
    pub results: Vec<Found>,
}

impl SearchPage<'_> {
    fn title(&self) -> &'static str {
        self.t.results
    }
}

static INDEX: LazyLock<[Index; 2]> = LazyLock::new(|| Lang::ALL.map(|lang| Index::of(entries(lang))));

/// What matches words of a search, the best first. The first search builds the index, so this may hold the
/// thread for some 50 ms.
pub fn search(asked: &str, lang: Lang) -> Vec<Found> {
    let asked: String = asked.chars().take(ASKED_CHARS_MAX).collect();
    let [korean, english] = &*INDEX;
    let index = if lang == Lang::Ko { korean } else { english };
    index.find(&asked, RESULTS_MAX).iter().map(shown).collect()
}

fn shown(found: &Match<'_>) -> Found {
    Found { excerpt: excerpt(&found.entry.found.excerpt, &found.places), ..found.entry.found.clone() }
}

/// The part of a text with the most different words of a search. It begins with the text where they are near
/// its beginning, or else with a sentence. `places` says where which word is, in bytes.
fn excerpt(text: &str, places: &[(usize, usize)]) -> String {
    let reach =
        |from: usize| text[from..].char_indices().nth(EXCERPT_CHARS).map_or(text.len(), |(at, _)| from + at);
    let mut best = (0, 0);
    for (index, (from, _)) in places.iter().enumerate() {
        let end = reach(*from);
        let mut seen: Vec<usize> = Vec::new();
        for (_, word) in places[index..].iter().take_while(|(at, _)| *at < end) {
            if !seen.contains(word) {
                seen.push(*word);
            }
        }
        if seen.len() > best.0 {
            best = (seen.len(), *from);
        }
    }
    let (before, _) = text.split_at(best.1);
    let near = before.char_indices().rev().nth(EXCERPT_CHARS / 2).map_or(0, |(at, _)| at);
    let ends = [". ", "? ", "! ", "\n"].iter().filter_map(|end| Some(before.rfind(end)? + end.len()));
    let sentence = if near == 0 { 0 } else { ends.max().unwrap_or(0) };
    let from = match sentence < near {
        true => before[near..].find(' ').map_or(best.1, |at| near + at + 1),
        false => sentence,
    };
    let until = reach(from);
    let until = match until < text.len() {
        true => text[from..until].rfind(' ').map_or(until, |at| from + at),
        false => until,
    };
    let starts = if from > sentence { "… " } else { "" };
    let ends = if until < text.trim_end().len() { " …" } else { "" };
    let words = text[from..until].split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{starts}{words}{ends}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_around_the_words() {
        let text = format!("{}needle {}", "한글 ".repeat(200), "글자 ".repeat(200));
        let at = text.find("needle").expect("it is there");
        let part = excerpt(&text, &[(3, 0), (at, 0), (at, 1)]);
        assert!(part.contains("needle") && part.starts_with("… ") && part.ends_with(" …"), "{part}");
        assert!(part.chars().count() <= EXCERPT_CHARS + 4);
        let around = |text: &str| excerpt(text, &[(text.find("needle").expect("it is there"), 0)]);
        assert_eq!(around("One. Two needle. Three."), "One. Two needle. Three.");
        for end in [". ", "? ", "! ", ".\n"] {
            assert_eq!(around(&format!("{}{end}Two needle.", "word ".repeat(20))), "Two needle.");
        }
        assert_eq!(excerpt("", &[]), "");
    }

    /// Blocks: the addresses that answer, then the searches that have to find one of them.
    const QUESTIONS: &str = include_str!("search/questions.txt");
    /// Among how many results the answer has to be.
    const AMONG: usize = 3;
    /// How many of a hundred searches have to find the answer first.
    const FIRST_OF_HUNDRED: usize = 91;

    #[test]
    fn the_first_results_answer_the_questions_of_readers_in_both_languages() {
        for lang in Lang::ALL {
            let (mut asked, mut first, mut late) = (0, 0, Vec::new());
            for block in QUESTIONS.split("\n\n") {
                let (answers, questions) = block.trim().split_once('\n').expect("addresses and searches");
                let answers: Vec<&str> = answers.split(' ').collect();
                for question in questions.lines() {
                    let found: Vec<String> = search(question, lang).into_iter().map(|it| it.href).collect();
                    let place = found.iter().position(|href| answers.contains(&href.as_str()));
                    asked += 1;
                    first += usize::from(place == Some(0));
                    if place.is_none_or(|place| place >= AMONG) {
                        late.push(format!("{question}: {place:?} of {found:?}"));
                    }
                }
            }
            println!("{}: {first} of {asked} first, {} late", lang.tag(), late.len());
            assert!(late.is_empty(), "{}", late.join("\n"));
            assert!(asked > 400 && first * 100 >= asked * FIRST_OF_HUNDRED, "{first} of {asked}");
        }
    }

    #[test]
    fn nothing_is_found_where_there_is_nothing_and_any_known_word_finds_something() {
        for lang in Lang::ALL {
            for nothing in ["", "  ", "zzzz qqqq", "?!", "뷁쀍", "how do i", "어떻게 하나요"] {
                assert!(search(nothing, lang).is_empty(), "{nothing}: {:?}", search(nothing, lang));
            }
            // The last four as they are typed.
            for known in ["zzzz token", "refre", "webho", "sessio", "/open/v1/chats/se"] {
                assert!(!search(known, lang).is_empty(), "{known}");
            }
            assert!(search(&"토큰을 signature 갱신 ".repeat(50), lang).len() <= RESULTS_MAX);
        }
    }

    #[test]
    fn an_excerpt_has_no_marks_and_no_placeholders() {
        for lang in Lang::ALL {
            for entry in entries(lang) {
                let text = entry.found.excerpt;
                for mark in ["](", "{=", "`", "**", "<!--", "|---", "##"] {
                    assert!(!text.contains(mark), "{}: {mark} in {text}", entry.found.href);
                }
                assert!(!entry.found.title.is_empty() && !entry.texts.is_empty());
                assert!(!text.trim().is_empty(), "{}", entry.found.href);
            }
        }
    }
}

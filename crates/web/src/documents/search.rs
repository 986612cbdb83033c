//! The search of the documentation: over pages, operations, paths, fields, events, reasons and guides, in
//! both languages.

use std::sync::LazyLock;

use askama::Template;

use super::events::event_views;
use super::figures::fill;
use super::frame::Navigation;
use super::groups::GROUPS;
use super::guides::GUIDES;
use super::marked::plain;
use super::notes::note;
use super::place::{DOCS, DocsPlace};
use super::reasons::reasons;
use super::reference::{OperationView, views};
use super::texts::DocsTexts;
use crate::pages::{Lang, Shell, filters};

/// Maximum number of characters of a search that are used.
pub const ASKED_CHARS_MAX: usize = 100;
/// Maximum number of words of a search that are used.
const WORDS_MAX: usize = 8;
/// Maximum number of results.
const RESULTS_MAX: usize = 30;
/// Number of characters of a text around its first match.
const EXCERPT_CHARS: usize = 120;

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

/// A result.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its address.
    pub href: String,
    /// Its heading.
    pub title: String,
    /// The page that it is on.
    pub page: &'static str,
    /// The method of an operation.
    pub method: &'static str,
    /// A text about it, or around the match.
    pub excerpt: String,
}

/// Something that can be found.
struct Entry {
    found: Found,
    /// The heading in lower case, in both languages, with names.
    title: String,
    /// Everything else in lower case.
    text: String,
}

/// The operations of each group in each language.
static VIEWS: LazyLock<Vec<[Vec<OperationView>; 2]>> =
    LazyLock::new(|| GROUPS.iter().map(|group| Lang::ALL.map(|lang| views(group, "", lang))).collect());

/// The texts of both languages are searched, whatever the language of the page.
static ENTRIES: LazyLock<[Vec<Entry>; 2]> = LazyLock::new(|| Lang::ALL.map(entries));

/// Builds the entries, once for the process.
pub(super) fn prepare() {
    LazyLock::force(&ENTRIES);
}

/// What matches all words of a search, the best first.
pub fn search(asked: &str, lang: Lang) -> Vec<Found> {
    let asked: String = asked.chars().take(ASKED_CHARS_MAX).collect::<String>().to_lowercase();
    let words: Vec<_> = asked.split_whitespace().take(WORDS_MAX).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let [korean, english] = &*ENTRIES;
    let entries = if lang == Lang::Ko { korean } else { english };
    let matches = entries.iter().filter_map(|entry| Some((entry.score(&words)?, entry)));
    let mut matches: Vec<_> = matches.collect();
    // Stable, so that entries of the same score stay in the order of the navigation.
    matches.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    matches.truncate(RESULTS_MAX);
    matches.into_iter().map(|(_, entry)| entry.shown(&words)).collect()
}

impl Entry {
    /// How well it matches; `None` if a word is missing.
    fn score(&self, words: &[&str]) -> Option<u32> {
        words.iter().try_fold(0, |score, word| {
            let is_whole =
                |text: &str| text.split(|c: char| c.is_whitespace() || c == '/').any(|part| part == *word);
            let points = match () {
                () if self.title == *word => 12,
                () if is_whole(&self.title) => 8,
                () if self.title.contains(word) => 5,
                () if is_whole(&self.text) => 2,
                () if self.text.contains(word) => 1,
                () => return None,
            };
            Some(score + points)
        })
    }

    fn shown(&self, words: &[&str]) -> Found {
        let excerpt = match words.iter().find(|word| self.found.excerpt.to_lowercase().contains(**word)) {
            Some(word) => excerpt(&self.found.excerpt, word),
            None => self.found.excerpt.chars().take(EXCERPT_CHARS).collect(),
        };
        Found { excerpt, ..self.found.clone() }
    }
}

/// The part of a text around a word.
fn excerpt(text: &str, word: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let lower: String = text.to_lowercase();
    let at = lower.find(word).map_or(0, |at| lower[..at].chars().count());
    let from = at.saturating_sub(EXCERPT_CHARS / 3).min(characters.len());
    let until = (from + EXCERPT_CHARS).min(characters.len());
    let part: String = characters[from..until].iter().collect();
    // A text that is cut off begins with a whole word.
    let part = if from > 0 { part.split_once(' ').map_or(part.as_str(), |(_, rest)| rest) } else { &part };
    let (before, after) = (if from > 0 { "…" } else { "" }, if until < characters.len() { "…" } else { "" });
    format!("{before}{}{after}", part.trim())
}

fn entries(lang: Lang) -> Vec<Entry> {
    let both =
        |text: fn(DocsPlace, Lang) -> &'static str, place| Lang::ALL.map(|lang| text(place, lang)).join(" ");
    let pages = DocsPlace::all().filter(|place| !matches!(place, DocsPlace::Guide(_))).map(|place| Entry {
        found: Found {
            href: place.href(),
            title: place.title(lang).to_owned(),
            page: "",
            method: "",
            excerpt: place.about(lang).to_owned(),
        },
        title: both(DocsPlace::title, place).to_lowercase(),
        text: both(DocsPlace::about, place).to_lowercase(),
    });
    let guides = GUIDES.iter().flat_map(|guide| guide_entries(guide, lang));
    pages
        .chain(guides)
        .chain(operation_entries(lang))
        .chain(event_entries(lang))
        .chain(reason_entries(lang))
        .collect()
}

/// An entry for each part of a guide.
fn guide_entries(guide: &'static super::guides::Guide, lang: Lang) -> Vec<Entry> {
    let parts = Lang::ALL.map(|lang| parts(&fill(guide.text(lang), lang)));
    let own = usize::from(lang == Lang::En);
    let href = DocsPlace::Guide(guide).href();
    let entry = |(index, (title, anchor, text)): (usize, &(String, String, String))| {
        let other = parts[1 - own].get(index);
        let other_text = other.map_or(String::new(), |(title, _, text)| format!("{title} {text}"));
        let title = if title.is_empty() { guide.title(lang).to_owned() } else { title.clone() };
        Entry {
            title: title.to_lowercase(),
            text: format!("{text} {other_text} {}", guide.title(lang)).to_lowercase(),
            found: Found {
                href: format!("{href}{anchor}"),
                title,
                page: guide.title(lang),
                method: "",
                excerpt: text.clone(),
            },
        }
    };
    parts[own].iter().enumerate().map(entry).collect()
}

/// The parts of a Markdown text: heading, anchor, plain text.
fn parts(markdown: &str) -> Vec<(String, String, String)> {
    let mut parts = vec![(String::new(), String::new(), String::new())];
    for line in markdown.lines().filter(|line| !line.starts_with("```") && !line.starts_with("<!--")) {
        if let Some(heading) = line.strip_prefix("## ") {
            let (title, anchor) = heading.split_once(" {").unwrap_or((heading, ""));
            parts.push((plain(title), anchor.trim_end_matches('}').to_owned(), String::new()));
        } else if let Some((_, _, text)) = parts.last_mut() {
            let line =
                line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(['-', '.', ' ']);
            text.push_str(&plain(line).replace("**", "").replace('|', " ").replace("---", ""));
            text.push(' ');
        }
    }
    parts
}

fn operation_entries(lang: Lang) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (group, [korean, english]) in GROUPS.iter().zip(&*VIEWS) {
        for (korean, english) in korean.iter().zip(english) {
            let own = if lang == Lang::Ko { korean } else { english };
            let fields = [korean, english].into_iter().flat_map(|view| {
                let tables = view.inputs.iter().chain([&view.content]);
                tables
                    .flat_map(|table| &table.rows)
                    .map(|row| format!("{} {} {}", row.name, row.values.join(" "), row.about))
            });
            let fields = fields.collect::<Vec<_>>().join(" ");
            let reasons = own.reasons.iter().map(|reason| reason.word).collect::<Vec<_>>().join(" ");
            let notes = Lang::ALL.map(|lang| plain(&fill(note(own.id, lang), lang)));
            let scope = own.scope.unwrap_or_default();
            entries.push(Entry {
                title: format!(
                    "{} {} {} {} {}",
                    own.id, own.method, own.path, korean.summary, english.summary
                )
                .to_lowercase(),
                text: format!("{} {scope} {fields} {reasons}", notes.join(" ")).to_lowercase(),
                found: Found {
                    href: format!("{DOCS}/{}#{}", group.slug, own.id),
                    title: own.path.to_owned(),
                    page: group.name(lang),
                    method: own.method,
                    excerpt: match plain(&fill(note(own.id, lang), lang)) {
                        note if note.is_empty() => own.summary.to_owned(),
                        note => note,
                    },
                },
            });
        }
    }
    entries
}

fn event_entries(lang: Lang) -> Vec<Entry> {
    let page = DocsPlace::Events.title(lang);
    let event = |view: super::events::EventView| {
        let fields = view.payload.rows.iter().map(|row| format!("{} {}", row.name, row.about));
        Entry {
            title: view.name.to_lowercase(),
            text: format!("{} {}", view.summary, fields.collect::<Vec<_>>().join(" ")).to_lowercase(),
            found: Found {
                href: format!("{DOCS}/events#{}", view.name),
                title: view.name.to_owned(),
                page,
                method: "",
                excerpt: view.summary.to_owned(),
            },
        }
    };
    event_views(lang).into_iter().map(event).collect()
}

fn reason_entries(lang: Lang) -> Vec<Entry> {
    let page = GUIDES.iter().find(|guide| guide.slug == "errors").map_or("", |guide| guide.title(lang));
    let entry = |reason: &super::reasons::ReasonText| {
        let text = plain(&format!("{} {}", reason.meaning, reason.remedy));
        Entry {
            title: reason.word.to_owned(),
            text: format!("{text} {}", reason.status).to_lowercase(),
            found: Found {
                href: format!("{DOCS}/guides/errors#{}", reason.word),
                title: reason.word.to_owned(),
                page,
                method: "",
                excerpt: text,
            },
        }
    };
    reasons(lang).iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(asked: &str, lang: Lang) -> String {
        search(asked, lang).first().map(|found| found.href.clone()).unwrap_or_default()
    }

    #[test]
    fn everything_is_found_in_both_languages() {
        for lang in Lang::ALL {
            for (asked, expected) in [
                ("sendChat", "/docs/chat#sendChat"),
                ("/open/v1/users/me", "/docs/channels#getMe"),
                ("token-reused", "/docs/guides/errors#token-reused"),
                ("DONATION", "/docs/events#DONATION"),
                ("chatSlowModeSec", "/docs/chat#getChatSettings"),
                ("스트림키", "/docs/lives#getStreamKey"),
                ("stream key", "/docs/lives#getStreamKey"),
            ] {
                assert_eq!(first(asked, lang), expected, "{asked}");
            }
            assert!(search("세션 URL", lang).len() > 2 && search("  ", lang).is_empty());
            assert!(search("zzzz token", lang).is_empty());
        }
    }

    #[test]
    fn an_excerpt_is_around_the_word() {
        let text = format!("{} needle {}", "한".repeat(200), "글".repeat(200));
        let part = excerpt(&text, "needle");
        assert!(part.contains("needle") && part.starts_with('…') && part.ends_with('…'));
        assert!(part.chars().count() <= EXCERPT_CHARS + 2);
        assert_eq!(excerpt("İ needle", "needle"), "İ needle");
    }
}

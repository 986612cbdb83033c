//! The words of the service: reasons, messages of refusals, close reasons, what becomes due. Their meanings
//! are those of the pages of the documentation.

use std::sync::LazyLock;

use domain::event::EventType;
use domain::system_message::SYSTEM;

const ERRORS: &str = include_str!("../../../../docs/errors.md");
const CLOSE_REASONS: &str = include_str!("../../../../docs/close-reasons.md");
const TIME: &str = include_str!("../../../../docs/sandbox/time.md");

/// A word and its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// The word.
    pub word: String,
    /// What kind of word it is.
    pub kind: &'static str,
    /// What it means.
    pub meaning: String,
    /// What to do about it.
    pub next: Option<String>,
    /// The heading above it in its page.
    section: String,
}

/// Every word.
static WORDS: LazyLock<Vec<Meaning>> = LazyLock::new(|| {
    let mut words = Vec::new();
    for (page, text) in [("errors", ERRORS), ("close-reasons", CLOSE_REASONS), ("sandbox", TIME)] {
        rows(text).for_each(|row| words.extend(row.meanings(page)));
    }
    words.extend(EventType::ALL.into_iter().map(event));
    words.push(Meaning {
        word: SYSTEM.to_owned(),
        kind: "event",
        meaning: "What a session is told about itself: connected, subscribed, unsubscribed, revoked"
            .to_owned(),
        next: Some("Every session receives it, without a subscription".to_owned()),
        section: String::new(),
    });
    words
});

/// The meaning of the name of an event.
fn event(event: EventType) -> Meaning {
    let (word, path) = (event.name().to_owned(), event.name().to_lowercase());
    let subscribe = format!("POST /open/v1/sessions/events/subscribe/{path}?sessionKey=…");
    Meaning {
        word,
        kind: "event",
        meaning: format!("An event of a channel, for the sessions that subscribed to it: {subscribe}"),
        next: Some(format!(
            "`stagedoor trigger {path}` lets one happen, `stagedoor logs --kind event` shows who received it"
        )),
        section: String::new(),
    }
}

/// The meanings of a word. A reason may have its details behind it, as in a header.
pub(crate) fn meanings(word: &str) -> Vec<Meaning> {
    let word = word.split(';').next().unwrap_or_default().trim();
    WORDS.iter().filter(|known| known.word.eq_ignore_ascii_case(word)).map(with_reasons).collect()
}

/// What to do about a close reason, or a reason of a refusal.
pub(crate) fn remedy(kind: &str, word: &str) -> Option<String> {
    meanings(word).into_iter().find(|meaning| meaning.kind == kind).and_then(|meaning| meaning.next)
}

/// A message of refusals with the reasons that its status has.
fn with_reasons(meaning: &Meaning) -> Meaning {
    let mut meaning = meaning.clone();
    if meaning.kind == "message" {
        let status = meaning.meaning.trim_start_matches("Status ").to_owned();
        let of_status = WORDS.iter().filter(|word| word.kind == "reason" && word.is_of_status(&status));
        let reasons = of_status.map(|word| word.word.as_str()).collect::<Vec<_>>().join(", ");
        if !reasons.is_empty() {
            meaning.meaning.push_str(&format!(". The header Stagedoor-Reason says which it was: {reasons}"));
        }
    }
    meaning
}

impl Meaning {
    fn is_of_status(&self, status: &str) -> bool {
        let (statuses, _) = self.section.split_once(':').unwrap_or((&self.section, ""));
        statuses.split(',').any(|listed| listed.trim() == status)
    }
}

/// A row of a table.
struct Row<'a> {
    /// The heading above the table.
    section: &'a str,
    /// The names of its columns.
    columns: Vec<&'a str>,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    /// The words that the row explains.
    fn meanings(&self, page: &str) -> Vec<Meaning> {
        let cell = |number: usize| self.cells.get(number).copied().unwrap_or_default();
        let (words, kind, meaning, next) = match (page, self.columns.as_slice()) {
            ("errors", ["Reason", "Meaning", "What to do"]) => {
                (cell(0), "reason", cell(1).to_owned(), cell(2))
            }
            ("errors", ["Status", "Message", "What to do"]) => {
                (cell(1), "message", format!("Status {}", cell(0)), cell(2))
            }
            ("errors", ["Name", "What is counted", "How much"]) => {
                (cell(0), "quota", format!("{}: {}", cell(1), cell(2)), "")
            }
            ("errors", ["Name", "Limit"]) => (cell(0), "cap", cell(1).to_owned(), ""),
            ("close-reasons", ["Reason", "Code", "When", "What the client should do", "Whose doing"]) => {
                let meaning = format!("{} Close code {}. Whose doing: {}", cell(2), cell(1), cell(4));
                (cell(0), "close reason", meaning, cell(3))
            }
            ("sandbox", ["Word", "What became due"]) => {
                (cell(0), "word of the clock", cell(1).to_owned(), "")
            }
            _ => return Vec::new(),
        };
        let words = words.split('`').skip(1).step_by(2);
        let meaning = |word: &str| Meaning {
            word: word.to_owned(),
            kind,
            meaning: plain(&meaning),
            next: Some(plain(next)).filter(|next| !next.is_empty()),
            section: self.section.to_owned(),
        };
        let mut found: Vec<Meaning> = words.map(meaning).collect();
        if kind == "close reason" {
            let of = |reason: &Meaning| Meaning {
                word: cell(1).to_owned(),
                kind: "close code",
                meaning: format!("{}: {}", reason.word, plain(cell(2))),
                ..reason.clone()
            };
            let codes: Vec<Meaning> = found.iter().map(of).collect();
            found.extend(codes);
        }
        if kind == "message" {
            let statuses = cell(0).split(',').map(|status| status.trim().to_owned());
            let of = |word| Meaning { word, kind: "status", meaning: plain(cell(1)), ..meaning("") };
            found.extend(statuses.map(of));
        }
        found
    }
}

/// The rows of the tables of a page.
fn rows(page: &'static str) -> impl Iterator<Item = Row<'static>> {
    let (mut section, mut columns) = ("", Vec::new());
    page.lines().filter_map(move |line| {
        if let Some(heading) = line.strip_prefix('#') {
            section = heading.trim_start_matches('#').trim();
        }
        let Some(inside) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            columns = Vec::new();
            return None;
        };
        let cells: Vec<&str> = inside.split('|').map(str::trim).collect();
        if cells.iter().all(|cell| !cell.is_empty() && cell.bytes().all(|byte| byte == b'-')) {
            return None;
        }
        if columns.is_empty() {
            columns = cells;
            return None;
        }
        Some(Row { section, columns: columns.clone(), cells })
    })
}

/// The text without links and emphasis of Markdown.
fn plain(markdown: &str) -> String {
    let mut out = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((text, after)) = link
            .split_once("](")
            .and_then(|(text, target)| target.split_once(')').map(|(_, after)| (text, after)))
        else {
            break;
        };
        out.push_str(before);
        out.push_str(text);
        rest = after;
    }
    out.push_str(rest);
    out.replace('*', "")
}

#[cfg(test)]
mod tests {
    use domain::Word;

    use super::*;

    #[test]
    fn every_reason_has_a_meaning_and_a_remedy() {
        for word in Word::ALL {
            let found = meanings(word.name());
            let reason = found.iter().find(|meaning| meaning.kind == "reason");
            let reason = reason.unwrap_or_else(|| panic!("{} is not explained", word.name()));
            assert!(!reason.meaning.is_empty() && reason.next.is_some(), "{reason:?}");
            assert!(!reason.meaning.contains(['[', ']']), "{reason:?}");
        }
    }

    #[test]
    fn a_word_is_found_in_the_page_that_explains_it() {
        let check = |word: &str, kind: &str, meaning: &str, next: Option<&str>| {
            let found = meanings(word);
            let found = found.iter().find(|found| found.kind == kind).unwrap_or_else(|| panic!("{word}"));
            assert!(found.meaning.contains(meaning), "{found:?}");
            match next {
                Some(next) => {
                    assert!(found.next.as_ref().is_some_and(|found| found.contains(next)), "{found:?}")
                }
                None => assert_eq!(found.next, None),
            }
        };
        check("session-url-used", "reason", "has opened a session", Some("new URL for each connection"));
        check("cap; name=user-sessions; limit=3", "reason", "as many as there may be (caps)", Some("Close"));
        check("INVALID_TOKEN", "message", "Status 401", Some("right credentials"));
        check("invalid_token", "message", "token-expired", Some("right credentials"));
        check("slow_consumer", "close reason", "reads too slowly", Some("Read faster"));
        check("429", "status", "TOO_MANY_REQUESTS", Some("Retry-After"));
        check("1013", "close code", "slow_consumer: ", Some("Read faster"));
        check("chat", "event", "subscribe/chat", Some("trigger chat"));
        check("SYSTEM", "event", "itself", Some("without a subscription"));
        check("evicted", "close reason", "1008", Some("ask the operator"));
        check("user-sessions", "cap", "3 connected sessions", None);
        check("chat-send", "quota", "20 in 30 seconds", None);
        check("webhook.dead", "word of the clock", "attempt to deliver", None);
        assert_eq!(meanings("nothing-like-this"), []);
        assert_eq!(remedy("close reason", "evicted").is_some(), remedy("reason", "busy").is_some());
    }
}

//! What a browser wants to see: the language, the channel, the filter of the recording.

use domain::Language;
use http::{HeaderMap, header};

use crate::filter::{Filter, WrongFilter};
use crate::http::access::cookie;

/// The cookie that remembers the language.
pub(super) const LANGUAGE_COOKIE: &str = "stagedoor_console_language";

/// What a browser wants to see.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub language: Language,
    /// Whether the language was chosen in this request, and has to be remembered.
    pub is_language_new: bool,
    /// The channel of the chat; empty for the first one.
    pub channel: String,
    /// The kind of the records; empty for all.
    pub kind: String,
    /// The conditions on records, as typed.
    pub conditions: String,
    /// The mark after which records are wanted.
    pub after: Option<u64>,
}

impl View {
    /// Reads a query, and the headers of the request. A wrong value is left out.
    pub fn of(query: &str, headers: &HeaderMap) -> Self {
        let find = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
        };
        let accepted = || headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok().and_then(Language::preferred);
        let chosen = find("lang").as_deref().and_then(Language::from_tag);
        let remembered = || cookie(headers, LANGUAGE_COOKIE).and_then(Language::from_tag);
        let last = headers.get("last-event-id").and_then(|mark| mark.to_str().ok()?.parse().ok());
        Self {
            language: chosen.or_else(remembered).or_else(accepted).unwrap_or(Language::Korean),
            is_language_new: chosen.is_some(),
            channel: find("channel").unwrap_or_default(),
            kind: find("kind").unwrap_or_default(),
            conditions: find("where").unwrap_or_default(),
            after: last.or_else(|| find("after")?.parse().ok()),
        }
    }

    /// The filter of the records: conditions like `path=/open/v1/lives`, with spaces between them.
    ///
    /// # Errors
    /// A kind or a condition is wrong.
    pub fn filter(&self) -> Result<Filter, WrongFilter> {
        let mut conditions = Vec::new();
        for part in self.conditions.split_whitespace() {
            let Some((field, value)) = part.split_once('=') else {
                let rule = "must be a field, = and a value".to_owned();
                return Err(WrongFilter { field: part.to_owned(), rule });
            };
            conditions.push((field.to_owned(), value.to_owned()));
        }
        Filter::parse(Some(self.kind.as_str()).filter(|kind| !kind.is_empty()), &conditions)
    }
}

//! What an operation does, in a few sentences more than its summary.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::pages::Lang;

/// Blocks of lines: the id of the operation, the text in English, the text in Korean, and where it has one a
/// line with further words by which the search finds it.
const TEXT: &str = include_str!("notes.txt");

static NOTES: LazyLock<HashMap<&'static str, [&'static str; 3]>> = LazyLock::new(|| {
    let block = |block: &'static str| {
        let mut lines = block.trim().lines();
        Some((lines.next()?, [lines.next()?, lines.next()?, lines.next().unwrap_or_default()]))
    };
    TEXT.split("\n\n").filter_map(block).collect()
});

/// The text about an operation; empty when its summary says all.
pub fn note(id: &str, lang: Lang) -> &'static str {
    NOTES.get(id).map_or("", |[english, korean, _]| lang.pick(korean, english))
}

/// Further words by which the search finds an operation.
pub fn also(id: &str) -> &'static str {
    NOTES.get(id).map_or("", |[.., also]| also)
}

/// The operations with a text.
#[cfg(test)]
pub fn noted() -> impl Iterator<Item = &'static str> {
    NOTES.keys().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_is_about_an_operation() {
        let operations = crate::router::operations();
        for id in noted() {
            assert!(operations.iter().any(|operation| operation.summary.id == id), "{id}");
        }
        assert_eq!(
            noted().count(),
            TEXT.trim().split("\n\n").count(),
            "a note is not whole, or stands twice"
        );
    }
}

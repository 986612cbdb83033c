//! What is known of a thing, before the records that mention it are added.

use serde_json::Value;

/// A thing, with an explanation.
pub(super) struct Thing {
    /// What kind of thing it is.
    pub kind: &'static str,
    /// What it is, as a sentence.
    pub summary: String,
    /// What is known of it, by name.
    pub facts: Value,
    /// What to do next.
    pub next: Vec<String>,
}

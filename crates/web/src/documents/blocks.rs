//! Programs of the pages in the folder `docs`, which tests run as they stand there.

/// The first block of code in this language after a mark; empty if there is none, which a test forbids.
pub fn block(markdown: &'static str, mark: &str, language: &str) -> &'static str {
    let fence = format!("```{language}\n");
    let found = || {
        let (_, after) = markdown.split_once(mark)?;
        let (_, code) = after.split_once(&fence)?;
        code.split_once("\n```").map(|(code, _)| code)
    };
    found().unwrap_or_default()
}

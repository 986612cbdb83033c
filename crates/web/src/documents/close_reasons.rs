//! Why sessions end, in both languages.

use std::sync::LazyLock;

use super::reasons::ReasonText;
use crate::pages::Lang;

/// Blocks of five lines: the reason and its code; meaning and remedy in English; the same in Korean.
const TEXT: &str = include_str!("close_reasons.txt");

static CLOSE_REASONS: LazyLock<[Vec<ReasonText>; 2]> =
    LazyLock::new(|| Lang::ALL.map(|lang| ReasonText::read(TEXT, lang)));

/// Every close reason. Its number is the code of the websocket's close frame.
pub fn close_reasons(lang: Lang) -> &'static [ReasonText] {
    let [korean, english] = &*CLOSE_REASONS;
    if lang == Lang::Ko { korean } else { english }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_close_reason_of_the_sockets_is_explained_in_both_languages() {
        let page = include_str!("../../../../docs/close-reasons.md");
        let row = |line: &'static str| {
            let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
            Some((name, rest.split(' ').next()?.parse::<u16>().ok()?))
        };
        let expected: Vec<_> = page.lines().filter_map(row).collect();
        assert!(expected.len() > 10);
        for lang in Lang::ALL {
            let own: Vec<_> = close_reasons(lang).iter().map(|reason| (reason.word, reason.status)).collect();
            assert_eq!(own, expected);
        }
    }
}

//! The words of a text, as the search compares them: without endings and particles, and one for all words
//! that mean the same in either language.
//!
//! A Korean word is cut at the words that are known (`same.txt`), so that `토큰의` and `액세스토큰` are found
//! by `토큰`. What remains of it is compared by pairs of syllables.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Lines of words that mean the same. The first one stands for all of them. `_` joins words of a phrase.
const SAME: &str = include_str!("same.txt");
/// Words that say nothing about what is asked, in both languages.
const STOP: &str = include_str!("stop.txt");
/// Words that are in questions about anything, such as `bot`. They say little beside others.
const COMMON: &str = include_str!("common.txt");
/// Methods of HTTP. In capitals they are no verbs.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// Maximum number of syllables of a known Korean word.
const SYLLABLES_MAX: usize = 8;
/// Maximum length of a name that is also compared as a whole, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Endings of Korean words, the longest first.
const ENDINGS: &[&str] = &[
    "했다고",
    "했어요",
    "했는데",
    "습니다",
    "습니까",
    "을까요",
    "이라고",
    "으로는",
    "에서도",
    "하였는지",
    "했는지",
    "하려면",
    "합니까",
    "합니다",
    "됩니까",
    "됩니다",
    "인가요",
    "있나요",
    "없나요",
    "할까요",
    "하나요",
    "되나요",
    "됐나요",
    "으로부터",
    "하는지",
    "하려고",
    "지나요",
    "는데",
    "인데",
    "네요",
    "까요",
    "려고",
    "라고",
    "다고",
    "해야",
    "하다",
    "에는",
    "지면",
    "지는",
    "려면",
    "으면",
    "나요",
    "는지",
    "져요",
    "어요",
    "아요",
    "해도",
    "면",
    "요",
    "에게서",
    "으로서",
    "에서는",
    "하세요",
    "이라는",
    "했나요",
    "하는",
    "하기",
    "하면",
    "하고",
    "해서",
    "해요",
    "하지",
    "되는",
    "되면",
    "되지",
    "까지",
    "부터",
    "에서",
    "에게",
    "으로",
    "이나",
    "처럼",
    "보다",
    "마다",
    "한테",
    "이란",
    "들을",
    "들이",
    "들의",
    "들은",
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "의",
    "에",
    "로",
    "와",
    "과",
    "도",
    "만",
];

static MEANINGS: LazyLock<HashMap<String, Vec<&'static str>>> = LazyLock::new(|| {
    let mut meanings: HashMap<String, Vec<&'static str>> = HashMap::new();
    for line in SAME.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            let word = word.split('_').map(base).collect::<Vec<_>>().join(" ");
            let meanings = meanings.entry(word).or_default();
            if !meanings.contains(&first) {
                meanings.push(first);
            }
        }
    }
    meanings
});
static STOPS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| STOP.split_whitespace().collect());
static COMMONS: LazyLock<HashSet<String>> =
    LazyLock::new(|| COMMON.split_whitespace().flat_map(words).map(|word| word.term).collect());

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// How it is compared.
    pub term: String,
    /// Where it begins in the text, in bytes.
    pub from: usize,
    /// What it is of the text.
    pub kind: WordKind,
}

/// What a word is of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A word.
    Whole,
    /// A name of several words, which stand for themselves, too.
    Name,
    /// A part of a word that is not known, or an unknown word of one syllable.
    Part,
    /// A word that says nothing beside others.
    Stop,
}

/// A run of letters and digits, all of them Korean or none.
struct Run<'t> {
    text: &'t str,
    from: usize,
    is_korean: bool,
    /// Nothing is between it and the run before.
    is_attached: bool,
}

/// The words of a text.
pub fn words(text: &str) -> Vec<Word> {
    let runs = runs(text);
    let mut words = names(text);
    let mut index = 0;
    while let Some(run) = runs.get(index) {
        let phrase = runs
            .get(index + 1)
            .filter(|next| is_near(text, run, next))
            .and_then(|next| MEANINGS.get(&format!("{} {}", base(run.text), base(next.text))));
        if let Some(meanings) = phrase {
            words.extend(meanings.iter().map(|meaning| word(meaning, run.from)));
            index += 2;
            continue;
        }
        match run.is_korean {
            true => korean(run, &mut words),
            false => latin(run, &mut words),
        }
        index += 1;
    }
    words
}

/// Whether questions about anything have this word.
pub fn is_common(term: &str) -> bool {
    COMMONS.contains(term)
}

fn word(term: &str, from: usize) -> Word {
    Word { term: term.to_owned(), from, kind: WordKind::Whole }
}

fn is_hangul(c: char) -> bool {
    ('가'..='힣').contains(&c)
}

fn runs(text: &str) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut open: Option<(usize, bool)> = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let kind = c.is_alphanumeric().then(|| is_hangul(c));
        if let Some((from, is_korean)) = open.filter(|(_, is_korean)| kind != Some(*is_korean)) {
            let is_attached = runs.last().is_some_and(|before| before.from + before.text.len() == from);
            runs.push(Run { text: &text[from..at], from, is_korean, is_attached });
            open = None;
        }
        open = open.or(kind.map(|is_korean| (at, is_korean)));
    }
    runs
}

/// Whether two runs may be a phrase: one sign is between them, or nothing.
fn is_near(text: &str, first: &Run<'_>, second: &Run<'_>) -> bool {
    matches!(&text[first.from + first.text.len()..second.from], "" | " " | "-" | "_" | ".")
}

/// Names such as `token-reused`, `slow_consumer`, `2.0.3` and `/open/v1/users/me`, as a whole.
fn names(text: &str) -> Vec<Word> {
    let joins = |c: char| matches!(c, '-' | '_' | '.' | '/' | '{' | '}');
    let parts = text.split(|c: char| !(joins(c) || (c.is_alphanumeric() && !is_hangul(c))));
    let name = |part: &str| {
        let name = part.trim_matches(joins);
        let from = name.as_ptr() as usize - text.as_ptr() as usize;
        let is_name = name.contains(joins) && name.len() <= NAME_BYTES_MAX;
        is_name.then(|| Word { term: name.to_lowercase(), from, kind: WordKind::Name })
    };
    parts.filter_map(name).collect()
}

/// A word that is not Korean, and the parts of a name such as `chatSlowModeSec`.
fn latin(run: &Run<'_>, words: &mut Vec<Word>) {
    if push_latin(run.text, run.from, words) {
        return;
    }
    let (mut from, mut was_small) = (0, false);
    for (at, c) in run.text.char_indices() {
        if c.is_uppercase() && was_small {
            push_latin(&run.text[from..at], run.from + from, words);
            from = at;
        }
        was_small = !c.is_uppercase();
    }
    if from > 0 {
        push_latin(&run.text[from..], run.from + from, words);
    }
}

/// Adds a word, and returns whether it is known.
fn push_latin(text: &str, from: usize, words: &mut Vec<Word>) -> bool {
    if METHODS.contains(&text) {
        words.push(word(text, from));
        return true;
    }
    let lower = text.to_lowercase();
    let base = stem(&lower);
    if STOPS.contains(lower.as_str()) || STOPS.contains(base.as_str()) {
        words.push(Word { kind: WordKind::Stop, ..word(&base, from) });
        return true;
    }
    if let Some(meanings) = MEANINGS.get(&base) {
        words.extend(meanings.iter().map(|meaning| word(meaning, from)));
        return true;
    }
    if base.len() > 1 {
        words.push(word(&base, from));
    }
    false
}

/// The parts of a Korean word.
fn korean(run: &Run<'_>, words: &mut Vec<Word>) {
    let bare = base(run.text);
    if STOPS.contains(run.text) || STOPS.contains(bare.as_str()) {
        words.push(Word { kind: WordKind::Stop, ..word(&bare, run.from) });
        return;
    }
    // A particle behind a word in other letters, as in `scope가`.
    if run.is_attached && ENDINGS.contains(&run.text) {
        return;
    }
    let bounds: Vec<usize> = run.text.char_indices().map(|(at, _)| at).chain([run.text.len()]).collect();
    let count = bounds.len() - 1;
    if bare.chars().count() == 1 {
        match MEANINGS.get(&bare) {
            Some(meanings) => words.extend(meanings.iter().map(|meaning| word(meaning, run.from))),
            None => words.push(Word { kind: WordKind::Part, ..word(&bare, run.from) }),
        }
        return;
    }
    let (mut at, mut rest) = (0, 0);
    while at < count {
        let known = (2..=SYLLABLES_MAX.min(count - at))
            .rev()
            .find_map(|length| Some((length, MEANINGS.get(&run.text[bounds[at]..bounds[at + length]])?)));
        match known {
            Some((length, meanings)) => {
                pairs(run, &bounds[rest..=at], words);
                words.extend(meanings.iter().map(|meaning| word(meaning, run.from + bounds[at])));
                at += length;
                rest = at;
            }
            None => at += 1,
        }
    }
    // What is behind a known word is mostly its ending, as in `끊어지면`.
    if rest == 0 || !ENDINGS.contains(&&run.text[bounds[rest]..]) {
        pairs(run, &bounds[rest..], words);
    }
}

/// The pairs of syllables of what is not a known word.
fn pairs(run: &Run<'_>, bounds: &[usize], words: &mut Vec<Word>) {
    let [first, .., last] = bounds else { return };
    let text = &run.text[*first..*last];
    let kept = base(text);
    if STOPS.contains(text) || STOPS.contains(kept.as_str()) || ENDINGS.contains(&text) {
        return;
    }
    for pair in bounds.windows(3).take_while(|pair| pair[2] - first <= kept.len()) {
        let part = word(&run.text[pair[0]..pair[2]], run.from + pair[0]);
        words.push(Word { kind: WordKind::Part, ..part });
    }
}

/// A word without its ending, in lower case.
fn base(text: &str) -> String {
    if !text.chars().any(is_hangul) {
        return stem(&text.to_lowercase());
    }
    let ending = |ending: &&str| {
        let left = text.strip_suffix(*ending)?.chars().count();
        // A particle of one syllable is easily a part of a short word, as in 속도.
        let is_app_or_key = left == 1 && MEANINGS_OF_ONE.iter().any(|word| text.starts_with(*word));
        (left >= 2 || is_app_or_key).then_some(text.len() - ending.len())
    };
    ENDINGS.iter().find_map(ending).map_or_else(|| text.to_owned(), |length| text[..length].to_owned())
}

/// Known words of one syllable.
const MEANINGS_OF_ONE: [&str; 5] = ["앱", "키", "봇", "밴", "왜"];

/// An English word without its ending.
fn stem(word: &str) -> String {
    if !word.is_ascii()
        || word.len() < 4
        || word.contains(' ')
        || word.bytes().any(|byte| byte.is_ascii_digit())
    {
        return word.to_owned();
    }
    let word = match word {
        _ if word.ends_with("ies") => format!("{}y", &word[..word.len() - 3]),
        _ if word.ends_with("sses") => word[..word.len() - 2].to_owned(),
        _ if word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) => {
            word[..word.len() - 1].to_owned()
        }
        _ => word.to_owned(),
    };
    let rest = ["ing", "ed"].iter().find_map(|ending| word.strip_suffix(ending));
    let is_word = |rest: &&str| rest.len() > 2 && rest.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let rest = rest.filter(is_word).unwrap_or(&word);
    let bytes = rest.as_bytes();
    let is_doubled =
        rest.len() < word.len() && matches!(bytes, [.., a, b] if a == b && !matches!(b, b'l' | b's' | b'z'));
    let rest = if is_doubled { &rest[..rest.len() - 1] } else { rest };
    let rest = rest.strip_suffix('e').filter(|rest| rest.len() > 2).unwrap_or(rest);
    match rest.strip_suffix('y') {
        Some(before) if before.len() > 1 => format!("{before}i"),
        _ => rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        words(text).into_iter().filter(|word| word.kind != WordKind::Stop).map(|word| word.term).collect()
    }

    #[test]
    fn words_of_one_meaning_are_one_word_in_both_languages() {
        for (left, right) in [
            ("access tokens", "액세스 토큰"),
            ("the access token's", "액세스토큰의"),
            ("refreshing", "리프레시는"),
            ("verify the signature", "서명을 검증하려면"),
            ("rate limit", "속도 제한"),
            ("rate limits", "할당량"),
            ("How long", "얼마나 오래"),
            ("apps", "앱이"),
            ("banned", "차단하기"),
            ("expired", "유효기간"),
            ("time out", "임시 제한하려면"),
            ("logging out", "로그아웃하면"),
            ("scopes", "scope가"),
            ("my session keeps getting closed", "세션이 자꾸 끊어지면"),
        ] {
            let sorted = |text| {
                let mut terms = terms(text);
                terms.sort();
                terms
            };
            assert_eq!(sorted(left), sorted(right), "{left}, {right}");
        }
        assert!(terms("how do I do it, please?").is_empty());
        assert!(terms("어떻게 해야 하나요").is_empty());
    }

    #[test]
    fn names_are_compared_as_a_whole_and_by_their_parts() {
        assert_eq!(terms("qqqRrrSss"), ["qqqrrrsss", "qqq", "rrr", "sss"]);
        assert_eq!(terms("qqq_rrr"), ["qqq_rrr", "qqq", "rrr"]);
        assert_eq!(terms("/qqq/{rrr}/"), ["qqq/{rrr", "qqq", "rrr"]);
        assert!(terms("socket.io-client 2.0.3").contains(&"2.0.3".to_owned()));
    }

    #[test]
    fn a_method_is_no_verb() {
        assert_eq!(terms("DELETE"), ["DELETE"]);
        assert_eq!(terms("delete"), terms("삭제"));
    }

    #[test]
    fn an_unknown_korean_word_is_found_by_its_syllables() {
        assert_eq!(terms("무지개를"), ["무지", "지개"]);
        assert_eq!(terms("무지개에서는"), terms("무지개"));
        let part = Word { kind: WordKind::Part, ..word("무지", "한 ".len()) };
        assert_eq!(words("한 무지개")[1], part);
    }

    #[test]
    fn every_text_has_words_without_a_panic() {
        for text in [
            "",
            "İstanbul",
            "é",
            "가",
            "a가b나",
            "---",
            "🙂 가나🙂다",
            "ﬀ",
            "A",
            "aA",
            "각하하하하하하하하하하",
        ] {
            for word in words(text) {
                assert!(text.is_char_boundary(word.from), "{text}: {word:?}");
            }
        }
    }
}

//! Ranks entries by the words of a search: Okapi BM25, in which a rare word counts for more than a frequent
//! one. What stands in a heading counts beside the text, however often the text has the word. Any word may
//! match.

use std::collections::{BTreeMap, HashMap};

use super::entries::{Entry, TextKind};
use super::words::{WordKind, is_common, words};

/// How soon further occurrences of a word stop to count.
const SATURATION: f32 = 1.6;
/// How much a long entry has to match more often than a short one.
const LENGTH_WEIGHT: f32 = 0.6;
/// Maximum number of words of a search that are used.
const TERMS_MAX: usize = 16;
/// Maximum number of known words that an unknown one may stand for.
const LIKENESSES_MAX: usize = 8;
/// Shortest word in which one letter may be wrong.
const MISTAKE_BYTES_MIN: usize = 5;
/// What a match counts of a word that only begins like the one that was typed, or has a letter wrong.
const LIKENESS: f32 = 0.5;
/// What a match counts of a part of a word that is not known.
const PART: f32 = 0.3;
/// What a match counts of a word that says nothing, in a heading that was written with it.
const STOP: f32 = 0.1;
/// What a match counts of a word that is in questions about anything.
const COMMON: f32 = 0.3;
/// What is left of the score of an entry that matches hardly anything of what was asked.
const PART_WORTH: f32 = 0.1;
/// How much more an entry counts whose name is just what was asked.
const NAME_LIKE: f32 = 0.3;
/// What is added for an entry whose name is all that was asked. No other score is as high.
const NAMED: f32 = 1_000_000.0;
/// Results below this part of the best score are noise.
const NOISE: f32 = 0.2;

/// The entries with the words that they are found by.
pub struct Index {
    entries: Vec<Entry>,
    /// The entries of a word, with how well it describes each.
    postings: BTreeMap<String, Vec<(usize, f32)>>,
    /// The words of each entry's excerpt with their places.
    marks: Vec<Vec<(usize, String)>>,
    /// The words of each entry's names.
    names: Vec<Vec<Vec<String>>>,
}

/// Words of a search that are known, each with its worth.
type Known<'i> = Vec<(&'i str, &'i [(usize, f32)], f32)>;

/// An entry that matches.
pub struct Match<'i> {
    /// The entry.
    pub entry: &'i Entry,
    /// Where words of the search are in its excerpt, in bytes; the number says which word.
    pub places: Vec<(usize, usize)>,
}

impl Index {
    /// An index of these entries.
    pub fn of(entries: Vec<Entry>) -> Self {
        let bodies: Vec<HashMap<String, f32>> = entries.iter().map(body).collect();
        let lengths: Vec<f32> = bodies.iter().map(|counts| counts.values().sum()).collect();
        let average = lengths.iter().sum::<f32>() / lengths.len().max(1) as f32;
        let mut postings: BTreeMap<String, Vec<(usize, f32)>> = BTreeMap::new();
        for (entry, counts) in bodies.into_iter().enumerate() {
            let long = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * lengths[entry] / average;
            let mut weights = head(&entries[entry]);
            for (term, count) in counts {
                *weights.entry(term).or_default() += count * (SATURATION + 1.0) / (count + SATURATION * long);
            }
            for (term, weight) in weights {
                postings.entry(term).or_default().push((entry, weight));
            }
        }
        let mark = |entry: &Entry| {
            words(&entry.found.excerpt).into_iter().map(|word| (word.from, word.term)).collect()
        };
        let marks = entries.iter().map(mark).collect();
        let names = entries.iter().map(|entry| entry.names.iter().map(|name| name_words(name)).collect());
        let names = names.collect();
        Self { entries, postings, marks, names }
    }

    /// The entries that match, the best first.
    pub fn find(&self, asked: &str, results_max: usize) -> Vec<Match<'_>> {
        let (known, is_whole) = self.known(asked);
        let whole: f32 = known.iter().map(|(.., worth)| worth).sum();
        // The score of an entry, and how much of what was asked it matches.
        let mut scores = vec![(0.0_f32, 0.0_f32); self.entries.len()];
        for (_, posting, worth) in &known {
            for (entry, weight) in *posting {
                scores[*entry].0 += worth * weight;
                scores[*entry].1 += worth;
            }
        }
        let asked = asked.trim().to_lowercase();
        let score = |(entry, (score, part)): (usize, (f32, f32))| {
            let entry_of = &self.entries[entry];
            let covered = PART_WORTH + (1.0 - PART_WORTH) * (part / whole).min(1.0);
            let is_it = entry_of.names.contains(&asked);
            let like = 1.0 + NAME_LIKE * self.likeness(entry, &known, whole);
            (entry, score * covered * like * entry_of.worth + if is_it { NAMED } else { 0.0 })
        };
        let least = if is_whole { whole * 0.99 } else { 0.0 };
        let is_found = |(_, (score, part)): &(usize, (f32, f32))| *score > 0.0 && *part >= least;
        let mut found: Vec<(usize, f32)> =
            scores.into_iter().enumerate().filter(is_found).map(score).collect();
        // Stable, so that entries of the same score stay in the order of the navigation.
        found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let best = found.iter().map(|(_, score)| *score).find(|score| *score < NAMED).unwrap_or_default();
        found.retain(|(_, score)| *score >= NOISE * best);
        found.truncate(results_max);
        let terms: Vec<&str> = known.iter().map(|(term, ..)| *term).collect();
        found.into_iter().map(|(entry, _)| self.matched(entry, &terms)).collect()
    }

    fn matched(&self, entry: usize, terms: &[&str]) -> Match<'_> {
        let place =
            |(from, term): &(usize, String)| Some((*from, terms.iter().position(|known| known == term)?));
        Match { entry: &self.entries[entry], places: self.marks[entry].iter().filter_map(place).collect() }
    }

    /// The known words of a search, each with how rare it is, and whether an entry must have all of them. It
    /// must where none of them says anything.
    fn known(&self, asked: &str) -> (Known<'_>, bool) {
        let mut asked: Vec<_> = words(asked);
        let is_whole = asked.iter().all(|word| word.kind == WordKind::Stop);
        if is_whole && asked.iter().any(|word| !self.postings.contains_key(&word.term)) {
            return (Vec::new(), true);
        }
        asked.sort_by_key(|word| word.kind == WordKind::Stop);
        asked.truncate(TERMS_MAX);
        let mut known: Known<'_> = Vec::new();
        for word in asked {
            let exact = self.postings.get_key_value(&word.term);
            let is_whole = word.kind == WordKind::Whole;
            let like = if exact.is_none() && is_whole { self.like(&word.term) } else { Vec::new() };
            let part = match word.kind {
                WordKind::Part => PART,
                WordKind::Stop if !is_whole => STOP,
                _ => 1.0,
            };
            let exact = exact.map(|found| (found, part));
            for ((term, posting), part) in
                exact.into_iter().chain(like.into_iter().map(|found| (found, LIKENESS)))
            {
                let worth = part * self.rarity(term, posting);
                match known.iter_mut().find(|(other, ..)| *other == term) {
                    Some(before) => before.2 = before.2.max(worth),
                    None => known.push((term, posting, worth)),
                }
            }
        }
        (known, is_whole)
    }

    /// How like a search the best of an entry's names is, from 0 to 1: how much of the one is in the other,
    /// both ways.
    fn likeness(&self, entry: usize, known: &Known<'_>, whole: f32) -> f32 {
        let worth = |term: &String| known.iter().find(|(other, ..)| other == term).map(|(.., worth)| *worth);
        let rarity =
            |term: &String| self.postings.get(term).map_or(0.0, |posting| self.rarity(term, posting));
        let like = |name: &Vec<String>| {
            let all: f32 = name.iter().map(rarity).sum();
            let both: f32 = name.iter().filter_map(worth).sum();
            if both > 0.0 { 2.0 * both / (all + whole) } else { 0.0 }
        };
        self.names[entry].iter().map(like).fold(0.0, f32::max).min(1.0)
    }

    /// How much a word says about what is asked.
    fn rarity(&self, term: &str, posting: &[(usize, f32)]) -> f32 {
        let (all, entries) = (self.entries.len() as f32, posting.len() as f32);
        let part = if is_common(term) { COMMON } else { 1.0 };
        part * (1.0 + (all - entries + 0.5) / (entries + 0.5)).ln()
    }

    /// The words that begin like an unknown one, or else those with one other letter.
    fn like(&self, word: &str) -> Vec<(&String, &Vec<(usize, f32)>)> {
        let first = word.chars().next().map_or(0, char::len_utf8);
        let alike = self.postings.range(word[..first].to_owned()..);
        let alike = alike.take_while(|(term, _)| term.starts_with(&word[..first]));
        let begins: Vec<_> =
            alike.clone().filter(|(term, _)| term.starts_with(word)).take(LIKENESSES_MAX).collect();
        match begins.is_empty() && word.is_ascii() && word.len() >= MISTAKE_BYTES_MIN {
            true => alike.filter(|(term, _)| is_mistake(word, term)).take(LIKENESSES_MAX).collect(),
            false => begins,
        }
    }
}

/// How often each word occurs in the texts of an entry, weighed by where it stands.
fn body(entry: &Entry) -> HashMap<String, f32> {
    let mut counts = HashMap::new();
    for (kind, text) in &entry.texts {
        let TextKind::Body(weight) = kind else { continue };
        for word in words(text).into_iter().filter(|word| word.kind != WordKind::Stop) {
            *counts.entry(word.term).or_default() += weight;
        }
    }
    counts
}

/// The weight of each word of the headings of an entry, and of those given for the search. Here words that
/// say nothing count too, so that a search of nothing else, such as "who am I", is found where it was
/// foreseen.
fn head(entry: &Entry) -> HashMap<String, f32> {
    let mut weights: HashMap<String, f32> = HashMap::new();
    for (kind, text) in &entry.texts {
        let TextKind::Head(weight) = kind else { continue };
        for word in words(text) {
            let known = weights.entry(word.term).or_default();
            *known = known.max(*weight);
        }
    }
    weights
}

/// The different words of a name.
fn name_words(name: &str) -> Vec<String> {
    let words = words(name).into_iter().filter(|word| word.kind != WordKind::Stop);
    let mut terms: Vec<String> = words.map(|word| word.term).collect();
    terms.sort();
    terms.dedup();
    terms
}

/// Whether one letter is missing, added or another, or two neighbours are swapped.
fn is_mistake(word: &str, term: &str) -> bool {
    let (word, term) = (word.as_bytes(), term.as_bytes());
    if word.len().abs_diff(term.len()) > 1 {
        return false;
    }
    let same = word.iter().zip(term).take_while(|(a, b)| a == b).count();
    let (word, term) = (&word[same..], &term[same..]);
    let is_swapped = match (word, term) {
        ([a, b, word @ ..], [c, d, term @ ..]) => a == d && b == c && word == term,
        _ => false,
    };
    is_swapped || word.get(1..) == term.get(1..) || word.get(1..) == Some(term) || term.get(1..) == Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_letter_may_be_wrong() {
        for (word, term, expected) in [
            ("webhok", "webhook", true),
            ("webhoook", "webhook", true),
            ("webhoko", "webhook", true),
            ("wehbook", "webhook", true),
            ("wabhook", "webhook", true),
            ("wabhoek", "webhook", false),
            ("web", "webhook", false),
        ] {
            assert_eq!(is_mistake(word, term), expected, "{word}");
        }
    }
}

//! The words of `Stagedoor-Reason` in both languages: what each means and what to do next.

use std::sync::LazyLock;

use super::figures::fill;
use crate::contract::{Operation, Security};
use crate::pages::Lang;

/// Blocks of five lines: the word and its status; meaning and remedy in English; the same in Korean.
const TEXT: &str = include_str!("reasons.txt");

/// A word with its texts in one language.
#[derive(Clone, Debug)]
pub struct ReasonText {
    /// The word.
    pub word: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// What it means.
    pub meaning: String,
    /// What to do next.
    pub remedy: String,
}

static REASONS: LazyLock<[Vec<ReasonText>; 2]> =
    LazyLock::new(|| Lang::ALL.map(|lang| ReasonText::read(TEXT, lang)));

impl ReasonText {
    /// The words of such blocks.
    pub fn read(blocks: &'static str, lang: Lang) -> Vec<Self> {
        let block = |block: &'static str| {
            let mut lines = block.trim().lines();
            let (word, status) = lines.next()?.split_once(' ')?;
            let texts: Vec<_> = lines.collect();
            let (meaning, remedy) = match (&texts[..], lang) {
                ([meaning, remedy, _, _], Lang::En) | ([_, _, meaning, remedy], Lang::Ko) => {
                    (meaning, remedy)
                }
                _ => return None,
            };
            let (meaning, remedy) = (fill(meaning, lang), fill(remedy, lang));
            Some(Self { word, status: status.parse().ok()?, meaning, remedy })
        };
        blocks.split("\n\n").filter_map(block).collect()
    }
}

/// Every word.
pub fn reasons(lang: Lang) -> &'static [ReasonText] {
    let [korean, english] = &*REASONS;
    if lang == Lang::Ko { korean } else { english }
}

/// The words with which an operation may be refused, besides those of every request.
pub fn reasons_of(operation: &Operation, lang: Lang) -> Vec<&'static ReasonText> {
    let Operation { summary, refusals, security, .. } = operation;
    let may = |status: u16| refusals.contains(&status) || summary.refusals.contains(&status);
    let mut words: Vec<&str> = Vec::new();
    if may(400) {
        words.push("invalid");
    }
    if may(401) {
        words.extend(credentials(*security));
    }
    if may(403) {
        words.push(if matches!(security, Security::Operator(_)) { "role-missing" } else { "scope-missing" });
    }
    if may(404) {
        words.push("not-found");
    }
    if may(429) {
        words.push("quota");
    }
    words.extend(own_words(summary.id));
    words.extend(["internal", "disk-full"]);
    reasons(lang).iter().filter(|reason| words.contains(&reason.word)).collect()
}

fn credentials(security: Security) -> &'static [&'static str] {
    match security {
        Security::User => &[
            "credential-missing",
            "credential-malformed",
            "credential-wrong-kind",
            "token-unknown",
            "token-expired",
            "token-revoked",
        ],
        Security::Client => {
            &["credential-missing", "credential-malformed", "credential-wrong-kind", "secret-wrong"]
        }
        Security::Operator(_) => {
            &["credential-missing", "credential-malformed", "credential-wrong-kind", "operator-key-wrong"]
        }
        Security::None => &["secret-wrong"],
    }
}

/// The words that follow from what the operation does.
fn own_words(id: &str) -> &'static [&'static str] {
    match id {
        "showSignIn" => &["client-unknown", "redirect-unregistered"],
        "submitSignIn" => &["client-unknown", "redirect-unregistered", "form-expired"],
        "issueToken" => &[
            "code-unknown",
            "code-expired",
            "code-used",
            "code-reused",
            "state-differs",
            "token-unknown",
            "token-expired",
            "token-revoked",
            "token-used",
            "token-reused",
        ],
        "hideMessage" => &["not-the-streamer"],
        "restrict" | "release" => &["restriction-rule"],
        "restrictTemporarily" | "releaseTemporarily" => &["restriction-rule", "not-your-chat"],
        "createUserSession" | "createClientSession" => &["cap"],
        "subscribeChat" | "subscribeDonation" | "subscribeSubscription" => &["cap"],
        "getRewardClaims"
        | "updateRewardClaims"
        | "beginListening"
        | "fetchListenerAttempts"
        | "reportListenerAttempt" => &["organization-not-verified"],
        "reportChat" => &["chat-rule"],
        "claimReward" => &["claim-rule"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use domain::Word;

    use super::*;

    #[test]
    fn every_word_is_explained_once_in_both_languages() {
        for lang in Lang::ALL {
            let mut words: Vec<_> = reasons(lang).iter().map(|reason| reason.word).collect();
            let mut expected: Vec<_> = Word::ALL.iter().map(|word| word.name()).collect();
            words.sort_unstable();
            expected.sort_unstable();
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn the_words_of_an_operation_have_a_status_of_the_operation() {
        for operation in crate::router::operations() {
            let id = operation.summary.id;
            for reason in reasons_of(operation, Lang::En) {
                let known = operation.refusals.contains(&reason.status)
                    || operation.summary.refusals.contains(&reason.status)
                    // The pages of the sign-in have statuses of their own.
                    || operation.path == "/account-interlock";
                assert!(known, "{id}: {} is a {}", reason.word, reason.status);
            }
            for word in own_words(id) {
                assert!(reasons(Lang::En).iter().any(|reason| reason.word == *word), "{word}");
            }
        }
    }
}

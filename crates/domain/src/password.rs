//! Passwords that people choose (`docs/accounts.md#passwords`), after NIST SP 800-63B: length first, no rules
//! about kinds of characters, and no password that is tried first.

use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use crate::limits::{CREDENTIAL_BYTES_MAX, PASSWORD_TYPED_BYTES_MAX};
use crate::password_fault::PasswordFault;

/// Words that common passwords are made of, separated by white space.
const COMMON_WORDS: &str = include_str!("password/common_words.txt");
/// Whole passwords that no rule below finds.
const COMMON_PASSWORDS: &str = include_str!("password/common_passwords.txt");

/// Maximum number of characters before and after a common word together. A password with more of them is no
/// decorated word.
const DECORATION_CHARS_MAX: usize = 6;
/// Maximum length of a group of characters that a password may not repeat from its beginning to its end.
const REPEATED_CHARS_MAX: usize = 4;
/// Minimum length of a sequence.
const SEQUENCE_CHARS_MIN: usize = 3;
/// A password of at most this many sequences is refused.
const SEQUENCES_MAX: usize = 4;
/// Minimum number of characters that a password has beside words about its owner.
const OTHER_CHARS_MIN: usize = 5;
/// A name of the service that is refused as a password.
const SERVICE: &str = "stagedoor";

/// Characters in the order in which they are typed or counted, in both directions.
const ROWS: [&str; 24] = [
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    "`1234567890-=",
    "!@#$%^&*()_+",
    "qwertyuiop[]\\",
    "asdfghjkl;'",
    "zxcvbnm,./",
    "1qaz",
    "2wsx",
    "3edc",
    "4rfv",
    "5tgb",
    "6yhn",
    "7ujm",
    "8ik,",
    "9ol.",
    "0p;/",
    "ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔ",
    "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ",
    "ㅋㅌㅊㅍㅠㅜㅡ",
    "가나다라마바사아자차카타파하",
    "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "147258369",
    "741852963",
];

/// A typed password in Unicode's form NFC, so that it is the same from every keyboard. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// The typed text; `None` for an empty one, and for one that is longer than any password.
    pub fn typed(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > PASSWORD_TYPED_BYTES_MAX {
            return None;
        }
        let composed: String = text.nfc().collect();
        (composed.len() <= CREDENTIAL_BYTES_MAX).then_some(Self(composed))
    }

    /// A password for a new account or in place of another one. `about` are words about its owner: login,
    /// name, e-mail address.
    ///
    /// # Errors
    /// The first fault.
    pub fn chosen(text: &str, chars_min: usize, about: &[&str]) -> Result<Self, PasswordFault> {
        let Some(password) = Self::typed(text) else {
            return Err(match text.is_empty() {
                true => PasswordFault::Short { min: chars_min },
                false => PasswordFault::Long { max: CREDENTIAL_BYTES_MAX },
            });
        };
        match fault(&password.0, chars_min, about) {
            Some(fault) => Err(fault),
            None => Ok(password),
        }
    }

    /// The bytes that are hashed.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

fn fault(password: &str, chars_min: usize, about: &[&str]) -> Option<PasswordFault> {
    let chars: Vec<char> = password.to_lowercase().chars().collect();
    if password.chars().count() < chars_min {
        return Some(PasswordFault::Short { min: chars_min });
    }
    if is_repeated(&chars) {
        return Some(PasswordFault::Repeated);
    }
    if is_made_of_sequences(&chars) {
        return Some(PasswordFault::Sequence);
    }
    if is_common(&chars) {
        return Some(PasswordFault::Common);
    }
    is_personal(&chars, about).then_some(PasswordFault::Personal)
}

/// Whether a short group of characters fills the password: `aaaaaaaa`, `12121212`.
fn is_repeated(chars: &[char]) -> bool {
    (1..=REPEATED_CHARS_MAX.min(chars.len() / 2)).any(|length| is_cycle(chars, length))
}

/// Whether the first `length` characters are repeated to the end, where the last copy may be cut.
fn is_cycle(chars: &[char], length: usize) -> bool {
    chars.iter().zip(&chars[length..]).all(|(one, next)| one == next)
}

/// Whether the password is a few sequences and nothing else: `12345678`, `qwer1234`, `abcabcabc`.
fn is_made_of_sequences(chars: &[char]) -> bool {
    let (mut at, mut sequences) = (0, 0);
    while at < chars.len() && sequences < SEQUENCES_MAX {
        let length = sequence_length(&chars[at..]);
        if length < SEQUENCE_CHARS_MIN {
            return false;
        }
        at += length;
        sequences += 1;
    }
    at == chars.len()
}

/// The length of the longest sequence at the beginning.
fn sequence_length(chars: &[char]) -> usize {
    let same = chars.iter().take_while(|c| **c == chars[0]).count();
    let follows = |reversed: bool| {
        ROWS.iter().map(move |row| {
            let row: Vec<char> = match reversed {
                true => row.chars().rev().collect(),
                false => row.chars().collect(),
            };
            let starts = row.iter().enumerate().filter(|(_, c)| **c == chars[0]);
            let lengths = starts
                .map(|(at, _)| row[at..].iter().zip(chars).take_while(|(one, other)| one == other).count());
            lengths.max().unwrap_or(0)
        })
    };
    follows(false).chain(follows(true)).max().unwrap_or(0).max(same)
}

/// Whether the password is on a list, as it stands, with digits and signs in place of letters, repeated, with
/// a few digits and signs around it, or is a date.
fn is_common(chars: &[char]) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| COMMON_WORDS.split_whitespace().collect());
    static WHOLE: LazyLock<HashSet<&str>> = LazyLock::new(|| COMMON_PASSWORDS.split_whitespace().collect());
    let plain: String = chars.iter().collect();
    let core = plain.trim_matches(|c: char| !c.is_alphabetic());
    // A sign at the end may stand for a letter: `pa$$`.
    let ending = plain.trim_matches(|c: char| c.is_ascii_digit() || c.is_whitespace());
    let listed = |text: &str| {
        let letters = with_letters(text);
        [text, letters.as_str(), without_cycle(text)].iter().any(|text| WORDS.contains(text))
    };
    let decoration = |part: &str| chars.len() - part.chars().count();
    WHOLE.contains(plain.as_str())
        || is_date(&plain)
        || [plain.as_str(), core, ending]
            .into_iter()
            .any(|part| decoration(part) <= DECORATION_CHARS_MAX && listed(part))
}

/// The text with the letters that digits and signs stand for.
fn with_letters(text: &str) -> String {
    let letter = |c| match c {
        '@' | '4' => 'a',
        '3' | '€' => 'e',
        '1' | '!' => 'i',
        '0' => 'o',
        '$' | '5' => 's',
        '7' | '+' => 't',
        other => other,
    };
    text.chars().map(letter).collect()
}

/// The shortest part of an ASCII text whose repetition is the text.
fn without_cycle(text: &str) -> &str {
    let is_part = |length: &usize| {
        text.is_char_boundary(*length)
            && text.len().is_multiple_of(*length)
            && text.as_bytes().chunks(*length).all(|chunk| chunk == &text.as_bytes()[..*length])
    };
    match (1..=text.len() / 2).find(is_part) {
        Some(length) => &text[..length],
        None => text,
    }
}

/// Whether the text is a date of eight digits, of the years 1900 to 2099.
fn is_date(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let signs = text.len() - digits;
    if digits != 8 || signs > 2 || !text.bytes().all(|b| b.is_ascii_digit() || b"-./ ".contains(&b)) {
        return false;
    }
    let number: u32 = text.bytes().filter(u8::is_ascii_digit).fold(0, |n, b| n * 10 + u32::from(b - b'0'));
    let is_year = |year| (1900..2100).contains(&year);
    let is_day = |one, other| {
        (1..=12).contains(&one) && (1..=31).contains(&other)
            || (1..=31).contains(&one) && (1..=12).contains(&other)
    };
    is_year(number / 10_000) && is_day(number / 100 % 100, number % 100)
        || is_year(number % 10_000) && is_day(number / 1_000_000, number / 10_000 % 100)
}

/// Whether hardly anything is left of the password without the words about its owner.
fn is_personal(chars: &[char], about: &[&str]) -> bool {
    let plain: String = chars.iter().collect();
    let letters = with_letters(&plain);
    let words = about.iter().flat_map(|text| {
        let text: String = text.nfc().collect::<String>().to_lowercase();
        let parts: Vec<String> = text.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
        parts.into_iter().chain([text])
    });
    let words = words.chain([SERVICE.to_owned()]).filter(|word| word.chars().count() > 1);
    words.into_iter().any(|word| {
        [&plain, &letters]
            .into_iter()
            .any(|text| text.contains(&word) && text.replace(&word, "").chars().count() < OTHER_CHARS_MIN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use PasswordFault::{Common, Long, Personal, Repeated, Sequence, Short};

    #[track_caller]
    fn check(text: &str, expected: Option<PasswordFault>) {
        let about = ["haneul", "하늘 방송국", "sky.haneul@example.com"];
        assert_eq!(Password::chosen(text, 8, &about).err(), expected, "{text:?}");
    }

    #[test]
    fn length_is_the_first_rule_and_no_kind_of_character_is_demanded() {
        check("", Some(Short { min: 8 }));
        check("kx9$Qv2", Some(Short { min: 8 }));
        check("kx9$Qv2p", None);
        check("wolkenbruchig", None);
        check("correct horse battery staple", None);
        check("조용한 아침의 나라", None);
        check("        x       ", None);
        check("84016395527184", None);
        check(&"ab cd ef gh ij kl mn op ".repeat(20), None);
        check(&"가나x".repeat(80), Some(Long { max: 512 }));
        check(&"나비를 보다 ".repeat(32), Some(Long { max: 512 }));
        assert!(Password::chosen("kx9$Qv2pkx", 15, &[]).is_err());
    }

    #[test]
    fn characters_are_counted_and_compared_in_nfc() {
        // The same word, composed and decomposed.
        let (composed, decomposed) = (
            "비밀번호는길다",
            "\u{1107}\u{1175}\u{1106}\u{1175}\u{11af}\u{1107}\u{1165}\u{11ab}\u{1112}\u{1169}\u{1102}\u{1173}\u{11ab}\u{1100}\u{1175}\u{11af}\u{1103}\u{1161}",
        );
        let typed = |text: &str| Password::typed(text).expect("it has a length");
        assert_eq!(typed(composed), typed(decomposed));
        assert_eq!(typed(decomposed).as_bytes(), composed.as_bytes());
        assert_eq!(Password::typed(""), None);
        assert_eq!(Password::typed(&"x".repeat(513)), None);
        assert!(Password::typed(&"x".repeat(512)).is_some());
        assert_eq!(format!("{:?}", typed("hunter2hunter")), "Password");
    }

    #[test]
    fn repetitions_and_sequences_are_refused() {
        for text in ["aaaaaaaa", "12121212", "abc1abc1abc1", "        ", "ㅋㅋㅋㅋㅋㅋㅋㅋ"] {
            check(text, Some(Repeated));
        }
        for text in [
            "12345678",
            "87654321",
            "qwertyuiop",
            "QWER1234",
            "asdfjkl;",
            "1qaz2wsx",
            "zxcvbnm,./",
            "abcdefgh1234",
            "zaq12wsx",
            "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ",
            "가나다라마바사아",
            "1234567890",
            "qweasdzxc",
        ] {
            check(text, Some(Sequence));
        }
        check("abcxyz123qwe789", None);
    }

    #[test]
    fn common_passwords_are_refused_in_every_dress() {
        for text in [
            "password",
            "Password",
            "P@ssw0rd",
            "p@$$w0rd",
            "password1",
            "Password123!",
            "123password",
            "passwordpassword",
            "iloveyou",
            "1loveyou",
            "letmein!!",
            "sunshine99",
            "monkey2024!",
            "admin1234",
            "1q2w3e4r",
            "dragon 12",
            "19900101",
            "31.12.1999",
            "2001-02-03",
            "dkssudgktpdy",
            "tkfkdgo12",
            "사랑해사랑해99",
            "비밀번호1234",
        ] {
            check(text, Some(Common));
        }
        // More around it than a decoration.
        check("password8401639", None);
        check("84016395", None);
    }

    #[test]
    fn words_about_the_owner_are_refused() {
        for text in [
            "haneul01",
            "Haneul!!",
            "haneulhaneul",
            "h4neul12",
            "방송국방송국방송국1",
            "방송국 방송국!",
            "sky.haneul@example.com",
            "stagedoor",
            "Stagedoor1!",
            "st4gedoor",
        ] {
            check(text, Some(Personal));
        }
        check("haneul sings at noon", None);
    }

    #[test]
    fn the_list_covers_more_than_ten_thousand_passwords() {
        let words: Vec<&str> = COMMON_WORDS.split_whitespace().collect();
        let distinct: HashSet<_> = words.iter().collect();
        assert_eq!(words.len(), distinct.len(), "{:?}", {
            let mut seen = HashSet::new();
            words.iter().filter(|word| !seen.insert(**word)).collect::<Vec<_>>()
        });
        assert!(words.iter().all(|word| *word == word.to_lowercase()));
        // One digit, or one of the years of a century, behind a word.
        assert!(words.len() * 110 > 10_000, "{}", words.len());
        assert!(words.len() > 900, "{}", words.len());
    }
}

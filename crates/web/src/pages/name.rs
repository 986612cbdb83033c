//! Makes untrusted names safe to display. The templates escape them. This module handles names that are far
//! too long, or that rearrange the text around them.

/// Maximum length of a displayed name, in characters.
pub const SHOWN_NAME_MAX_CHARS: usize = 60;

/// Maximum length of a host with port, in characters. No real host is longer, so its end, which identifies
/// the owner, is never cut off.
pub(super) const SHOWN_HOST_MAX_CHARS: usize = 253 + ":65535".len();

/// Maximum length of a displayed chat message or title, in characters.
pub(super) const SHOWN_LINE_MAX_CHARS: usize = 100;

/// Displayed in place of a name without visible characters.
const NO_NAME: &str = "?";

/// The name as a page displays it: one line, without control and direction characters, at most
/// [`SHOWN_NAME_MAX_CHARS`] characters. An ellipsis replaces the cut-off end.
pub fn shown(name: &str) -> String {
    shown_up_to(name, SHOWN_NAME_MAX_CHARS)
}

/// The same with another maximum.
pub(super) fn shown_up_to(name: &str, max_chars: usize) -> String {
    // Reading stops soon after the maximum, so the cost does not depend on the name's length.
    let mut visible =
        name.chars().filter(|&c| !is_disruptive(c)).map(|c| if c.is_whitespace() { ' ' } else { c });
    let mut shown: String = visible.by_ref().take(max_chars).collect();
    if visible.next().is_some() {
        shown.pop();
        shown.truncate(shown.trim_end().len());
        shown.push('…');
    }
    let shown = shown.trim();
    // Joiners alone are invisible.
    if shown.chars().all(|c| c.is_whitespace() || is_joiner(c)) {
        NO_NAME.to_owned()
    } else {
        shown.to_owned()
    }
}

/// The first character of the displayed name, in upper case, for the tile in place of a picture.
pub fn initial(name: &str) -> String {
    shown(name).chars().next().into_iter().flat_map(char::to_uppercase).collect()
}

/// Whether the page's policy allows this picture: a path on this origin, or a picture inside the address.
pub fn is_own_image(address: &str) -> bool {
    address.starts_with("data:image/")
        || (address.starts_with('/') && !address.starts_with("//") && !address.starts_with("/\\"))
}

/// Whether a character joins or separates others. Emoji and some scripts need these characters.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200C}' | '\u{200D}')
}

/// Control characters, invisible characters, characters that change the text direction, and marks that belong
/// before a number and otherwise prevent line breaks.
fn is_disruptive(c: char) -> bool {
    // White space is kept: tabs and line ends become spaces, which keeps words apart.
    (c.is_control() && !c.is_whitespace())
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D159}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
            | '\u{0600}'..='\u{0605}' | '\u{06DD}' | '\u{070F}' | '\u{0890}' | '\u{0891}' | '\u{08E2}'
            | '\u{110BD}' | '\u{110CD}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_on_one_line_without_invisible_characters() {
        let longest = "가".repeat(SHOWN_NAME_MAX_CHARS);
        let shortened = format!("{}…", "가".repeat(SHOWN_NAME_MAX_CHARS - 1));
        for (name, expected) in [
            ("별빛 채팅봇", "별빛 채팅봇"),
            ("  two\nlines\there ", "two lines here"),
            ("abc\u{202E}gpj.exe", "abcgpj.exe"),
            ("\u{2066}a\u{2069}\u{200F}\u{FEFF}b", "ab"),
            ("family 👨\u{200D}👩\u{200D}👧", "family 👨\u{200D}👩\u{200D}👧"),
            ("a\u{E0041}\u{E007F}\u{FE0F}\u{180B}\u{E0100}\u{2800}b", "ab"),
            ("\u{0600}\u{0605}12", "12"),
            ("\u{200D}\u{200C} \u{2800}", "?"),
            ("", "?"),
            (" \u{200B}\u{3164}\0 ", "?"),
            (longest.as_str(), longest.as_str()),
            (&"가".repeat(SHOWN_NAME_MAX_CHARS + 1), &shortened),
            (&"가".repeat(10_000), &shortened),
        ] {
            assert_eq!(shown(name), expected, "{name:?}");
        }
    }

    #[test]
    fn the_initial_is_the_first_visible_character() {
        for (name, expected) in [("bot", "B"), (" \u{202E}별빛", "별"), ("", "?"), ("ßtar", "SS")] {
            assert_eq!(initial(name), expected, "{name:?}");
        }
    }

    #[test]
    fn only_pictures_that_the_policy_allows_are_used() {
        for (address, own) in [
            ("/images/1.png", true),
            ("data:image/png;base64,AA==", true),
            ("//evil.example/1.png", false),
            ("/\\evil.example/1.png", false),
            ("https://evil.example/1.png", false),
            ("javascript:alert(1)", false),
            ("data:text/html,x", false),
            ("", false),
        ] {
            assert_eq!(is_own_image(address), own, "{address}");
        }
    }
}

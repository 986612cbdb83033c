//! Accounts of people: what a registered login and an e-mail address may be (`docs/accounts.md`).

use std::fmt;

use crate::limits::{CREDENTIAL_BYTES_MAX, EMAIL_BYTES_MAX, LOGIN_CHARS_MAX, LOGIN_CHARS_MIN};
use crate::{Invalid, Rule, invalid};

/// Bytes of the part of an e-mail address before the `@` (RFC 5321).
const EMAIL_LOCAL_BYTES_MAX: usize = 64;

/// Checks a login that a person chose: small letters, digits, `.`, `_` and `-`, with a letter or digit first.
/// So no two logins look alike.
///
/// # Errors
/// `Invalid` naming `login`.
pub fn check_login(login: &str) -> Result<(), Invalid> {
    let is_first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let fits = (LOGIN_CHARS_MIN..=LOGIN_CHARS_MAX).contains(&login.len())
        && login.bytes().next().is_some_and(is_first)
        && login.bytes().all(|b| is_first(b) || b"._-".contains(&b));
    if fits { Ok(()) } else { Err(Invalid::new("login", Rule::Login)) }
}

/// Checks a login that names a person, who may not exist. The operator's logins are not only words.
///
/// # Errors
/// `Invalid` naming `login`.
pub fn check_named_login(login: &str) -> Result<(), Invalid> {
    match login.trim().is_empty() {
        true => Err(Invalid::new("login", Rule::Required)),
        false => invalid::text("login", login, 1, CREDENTIAL_BYTES_MAX),
    }
}

/// An e-mail address in small letters. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    /// Reads an address: one `@` between a name and a domain with a dot, no spaces or control characters.
    /// Only a message proves that an address exists.
    ///
    /// # Errors
    /// `Invalid` naming `email`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("email", Rule::Email);
        let text = text.trim();
        let (local, host) = text.split_once('@').ok_or_else(invalid)?;
        let is_host = host.split('.').count() > 1
            && host
                .split('.')
                .all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'))
            && host.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '.');
        let is_local = !local.is_empty()
            && local.len() <= EMAIL_LOCAL_BYTES_MAX
            && !local.chars().any(|c| c.is_whitespace() || c.is_control() || "<>()[],;:\\\"@".contains(c));
        match is_host && is_local && text.len() <= EMAIL_BYTES_MAX {
            true => Ok(Self(text.to_lowercase())),
            false => Err(invalid()),
        }
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_short_ascii_words() {
        let check = |login: &str, ok| assert_eq!(check_login(login).is_ok(), ok, "{login:?}");
        check("abc", true);
        check("0-a_b.c", true);
        check(&"a".repeat(32), true);
        check(&"a".repeat(33), false);
        for login in ["", "ab", "Abc", "-abc", ".abc", "a b", "하늘이", "a@b.c", "abc\n", "abc\0"] {
            check(login, false);
        }
    }

    #[test]
    fn a_named_login_may_be_any_that_an_operator_gave() {
        for login in ["ab", "하늘이", "a b@c.co", &"a".repeat(512)] {
            assert_eq!(check_named_login(login), Ok(()), "{login:?}");
        }
        for login in ["", " "] {
            assert_eq!(check_named_login(login), Err(Invalid::new("login", Rule::Required)));
        }
        assert!(check_named_login(&"a".repeat(513)).is_err());
    }

    #[test]
    fn an_address_has_a_name_and_a_domain() {
        for (text, expected) in [
            ("a@b.co", Some("a@b.co")),
            (" Sky.Haneul+x@Example.COM ", Some("sky.haneul+x@example.com")),
            ("하늘@예시.한국", Some("하늘@예시.한국")),
            ("a@b", None),
            ("a.b.co", None),
            ("@b.co", None),
            ("a@", None),
            ("a@b..co", None),
            ("a@-b.co", None),
            ("a@b.co\r\nBcc: c@d.co", None),
            ("a b@c.co", None),
            ("a@b@c.co", None),
            ("<a@b.co>", None),
            ("a@b.co,c@d.co", None),
        ] {
            let email = Email::parse(text).ok();
            assert_eq!(email.as_ref().map(Email::as_str), expected, "{text:?}");
        }
        assert!(Email::parse(&format!("{}@b.co", "a".repeat(64))).is_ok());
        assert!(Email::parse(&format!("{}@b.co", "a".repeat(65))).is_err());
        assert!(Email::parse(&format!("a@{}.co", "b".repeat(250))).is_err());
        assert_eq!(format!("{:?}", Email::parse("a@b.co")), "Ok(Email)");
    }
}

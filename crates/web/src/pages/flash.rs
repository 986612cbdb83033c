//! Notices about what a form did, shown once on the page after it.

use super::Lang;

/// A notice on the page after a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flash {
    /// The person signed out.
    SignedOut,
}

impl Flash {
    /// Every notice.
    pub const ALL: [Self; 1] = [Self::SignedOut];

    /// The value of the cookie.
    pub const fn code(self) -> &'static str {
        match self {
            Self::SignedOut => "signed-out",
        }
    }

    /// The notice with this code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flash| flash.code() == code)
    }

    /// The sentence.
    pub const fn text(self, lang: Lang) -> &'static str {
        match self {
            Self::SignedOut => lang.pick("로그아웃했습니다.", "You are signed out."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notice_has_a_code_of_its_own() {
        for flash in Flash::ALL {
            assert_eq!(Flash::from_code(flash.code()), Some(flash));
            assert!(flash.code().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
        }
        assert_eq!(Flash::from_code(""), None);
    }
}

//! Notices about what a form did, shown once on the page after it.

use super::Lang;

/// A notice on the page after a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flash {
    /// The person signed out.
    SignedOut,
    /// The password was changed.
    PasswordChanged,
    /// The e-mail address was changed.
    EmailChanged,
    /// The second step of the sign-in is off.
    TwoFactorOff,
    /// The account was deleted.
    AccountDeleted,
    /// An application may do nothing any more.
    Withdrawn,
    /// An operator's change is made.
    Done,
}

impl Flash {
    /// Every notice.
    pub const ALL: [Self; 7] = [
        Self::SignedOut,
        Self::PasswordChanged,
        Self::EmailChanged,
        Self::TwoFactorOff,
        Self::AccountDeleted,
        Self::Withdrawn,
        Self::Done,
    ];

    /// The value of the cookie.
    pub const fn code(self) -> &'static str {
        match self {
            Self::SignedOut => "signed-out",
            Self::PasswordChanged => "password-changed",
            Self::EmailChanged => "email-changed",
            Self::TwoFactorOff => "two-factor-off",
            Self::AccountDeleted => "account-deleted",
            Self::Withdrawn => "withdrawn",
            Self::Done => "done",
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
            Self::PasswordChanged => lang.pick("비밀번호를 바꿨습니다.", "Your password is changed."),
            Self::EmailChanged => lang.pick("이메일을 바꿨습니다.", "Your e-mail address is changed."),
            Self::TwoFactorOff => lang.pick("2단계 인증을 껐습니다.", "The second step is off."),
            Self::AccountDeleted => lang.pick("계정을 삭제했습니다.", "Your account is deleted."),
            Self::Done => lang.pick("처리했습니다.", "Done."),
            Self::Withdrawn => {
                lang.pick("앱의 접근을 취소했습니다.", "The app can no longer access your account.")
            }
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

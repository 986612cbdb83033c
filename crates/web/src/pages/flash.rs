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
    /// Another browser was signed out.
    BrowserSignedOut,
    /// All other browsers were signed out.
    BrowsersSignedOut,
    /// A form was saved.
    Saved,
    /// A chat has a new notice.
    NoticePut,
    /// A chat message was hidden.
    MessageHidden,
    /// A channel was restricted.
    ChannelRestricted,
    /// A channel was restricted for a minute.
    ChannelRestrictedForAMinute,
    /// A restriction was ended.
    RestrictionLifted,
    /// A person has a role in a channel.
    RoleGiven,
    /// A person has no role in a channel any more.
    RoleRemoved,
    /// A channel has a new stream key.
    StreamKeyReplaced,
}

impl Flash {
    /// Every notice.
    pub const ALL: [Self; 18] = [
        Self::SignedOut,
        Self::PasswordChanged,
        Self::EmailChanged,
        Self::TwoFactorOff,
        Self::AccountDeleted,
        Self::Withdrawn,
        Self::Done,
        Self::BrowserSignedOut,
        Self::BrowsersSignedOut,
        Self::Saved,
        Self::NoticePut,
        Self::MessageHidden,
        Self::ChannelRestricted,
        Self::ChannelRestrictedForAMinute,
        Self::RestrictionLifted,
        Self::RoleGiven,
        Self::RoleRemoved,
        Self::StreamKeyReplaced,
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
            Self::BrowserSignedOut => "browser-signed-out",
            Self::BrowsersSignedOut => "browsers-signed-out",
            Self::Saved => "saved",
            Self::NoticePut => "notice-put",
            Self::MessageHidden => "message-hidden",
            Self::ChannelRestricted => "channel-restricted",
            Self::ChannelRestrictedForAMinute => "channel-restricted-briefly",
            Self::RestrictionLifted => "restriction-lifted",
            Self::RoleGiven => "role-given",
            Self::RoleRemoved => "role-removed",
            Self::StreamKeyReplaced => "stream-key-replaced",
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
            Self::BrowserSignedOut => {
                lang.pick("그 브라우저에서 로그아웃했습니다.", "That browser is signed out.")
            }
            Self::BrowsersSignedOut => {
                lang.pick("다른 모든 브라우저에서 로그아웃했습니다.", "All other browsers are signed out.")
            }
            Self::Saved => lang.pick("저장했습니다.", "Saved."),
            Self::NoticePut => lang.pick("공지를 올렸습니다.", "The notice is up."),
            Self::MessageHidden => lang.pick("메시지를 숨겼습니다.", "The message is hidden."),
            Self::ChannelRestricted => lang.pick("활동을 제한했습니다.", "The person is restricted."),
            Self::ChannelRestrictedForAMinute => {
                lang.pick("1분 동안 제한했습니다.", "The person is restricted for a minute.")
            }
            Self::RestrictionLifted => lang.pick("제한을 해제했습니다.", "The restriction is lifted."),
            Self::RoleGiven => lang.pick("역할을 주었습니다.", "The person has the role."),
            Self::RoleRemoved => lang.pick("역할을 해제했습니다.", "The role is taken back."),
            Self::StreamKeyReplaced => {
                lang.pick("새 스트림 키를 만들었습니다.", "There is a new stream key.")
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

//! Notices about what a form did, shown once on the page after it.

use super::Lang;

/// A notice on the page after a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flash {
    /// The person signed out.
    SignedOut,
    /// The sign-in had ended when a form was posted.
    SignInEnded,
    /// The password was changed.
    PasswordChanged,
    /// The e-mail address was changed.
    EmailChanged,
    /// A link that proves the e-mail address was sent, or one was sent not long ago.
    EmailProofSent,
    /// The second step of the sign-in is off.
    TwoFactorOff,
    /// The account was made.
    AccountCreated,
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
    /// A chat has no notice any more.
    NoticeTakenDown,
    /// A chat message was hidden.
    MessageHidden,
    /// A hidden chat message is shown again.
    MessageShown,
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
    /// The operator was asked for something.
    Requested,
    /// A request to the operator was withdrawn.
    RequestWithdrawn,
    /// A secret of an application was revoked.
    SecretRevoked,
    /// All secrets of an application were revoked.
    SecretsRevoked,
    /// All tokens of an application were ended.
    TokensEnded,
    /// An application was disabled by its owner.
    AppDisabled,
    /// It was enabled.
    AppEnabled,
    /// It was deleted.
    AppDeleted,
    /// It was restored.
    AppRestored,
    /// It has another owner.
    AppHandedOver,
    /// A session of an application was ended.
    SessionEnded,
    /// It is offered to a login.
    AppOffered,
    /// A login was invited.
    Invited,
    /// A provider is linked to the account.
    ProviderLinked,
    /// A provider is not linked to the account any more.
    ProviderUnlinked,
    /// A provider stays linked, because the person could not sign in without it.
    LastWayIn,
}

impl Flash {
    /// Every notice.
    pub const ALL: [Self; 39] = [
        Self::SignedOut,
        Self::SignInEnded,
        Self::PasswordChanged,
        Self::EmailChanged,
        Self::EmailProofSent,
        Self::TwoFactorOff,
        Self::AccountCreated,
        Self::AccountDeleted,
        Self::Withdrawn,
        Self::Done,
        Self::BrowserSignedOut,
        Self::BrowsersSignedOut,
        Self::Saved,
        Self::NoticePut,
        Self::NoticeTakenDown,
        Self::MessageHidden,
        Self::MessageShown,
        Self::ChannelRestricted,
        Self::ChannelRestrictedForAMinute,
        Self::RestrictionLifted,
        Self::RoleGiven,
        Self::RoleRemoved,
        Self::StreamKeyReplaced,
        Self::Requested,
        Self::RequestWithdrawn,
        Self::SecretRevoked,
        Self::SecretsRevoked,
        Self::TokensEnded,
        Self::AppDisabled,
        Self::AppEnabled,
        Self::AppDeleted,
        Self::AppRestored,
        Self::AppHandedOver,
        Self::SessionEnded,
        Self::AppOffered,
        Self::Invited,
        Self::ProviderLinked,
        Self::ProviderUnlinked,
        Self::LastWayIn,
    ];

    /// The value of the cookie.
    pub const fn code(self) -> &'static str {
        match self {
            Self::SignedOut => "signed-out",
            Self::SignInEnded => "sign-in-ended",
            Self::PasswordChanged => "password-changed",
            Self::EmailChanged => "email-changed",
            Self::EmailProofSent => "email-proof-sent",
            Self::TwoFactorOff => "two-factor-off",
            Self::AccountCreated => "account-created",
            Self::AccountDeleted => "account-deleted",
            Self::Withdrawn => "withdrawn",
            Self::Done => "done",
            Self::BrowserSignedOut => "browser-signed-out",
            Self::BrowsersSignedOut => "browsers-signed-out",
            Self::Saved => "saved",
            Self::NoticePut => "notice-put",
            Self::NoticeTakenDown => "notice-taken-down",
            Self::MessageHidden => "message-hidden",
            Self::MessageShown => "message-shown",
            Self::ChannelRestricted => "channel-restricted",
            Self::ChannelRestrictedForAMinute => "channel-restricted-briefly",
            Self::RestrictionLifted => "restriction-lifted",
            Self::RoleGiven => "role-given",
            Self::RoleRemoved => "role-removed",
            Self::StreamKeyReplaced => "stream-key-replaced",
            Self::Requested => "requested",
            Self::RequestWithdrawn => "request-withdrawn",
            Self::SecretRevoked => "secret-revoked",
            Self::SecretsRevoked => "secrets-revoked",
            Self::TokensEnded => "tokens-ended",
            Self::AppDisabled => "app-disabled",
            Self::AppEnabled => "app-enabled",
            Self::AppDeleted => "app-deleted",
            Self::AppRestored => "app-restored",
            Self::AppHandedOver => "app-handed-over",
            Self::SessionEnded => "session-ended",
            Self::AppOffered => "app-offered",
            Self::Invited => "invited",
            Self::ProviderLinked => "provider-linked",
            Self::ProviderUnlinked => "provider-unlinked",
            Self::LastWayIn => "last-way-in",
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
            Self::SignInEnded => lang.pick(
                "로그인이 끝나 있었습니다. 다시 로그인하면 입력하던 화면으로 돌아갑니다.",
                "Your sign-in had ended. Sign in again, and you come back to what you typed.",
            ),
            Self::PasswordChanged => lang.pick("비밀번호를 바꿨습니다.", "Your password is changed."),
            Self::EmailChanged => lang.pick("이메일을 바꿨습니다.", "Your e-mail address is changed."),
            Self::EmailProofSent => lang.pick(
                "주소로 확인 링크를 보냈습니다. 오지 않으면 한 시간 뒤에 다시 요청해 주세요.",
                "A link is on its way to the address. If none arrives, ask again in an hour.",
            ),
            Self::TwoFactorOff => lang.pick("2단계 인증을 껐습니다.", "The second step is off."),
            Self::AccountCreated => lang.pick("계정을 만들었습니다.", "Your account is created."),
            Self::AccountDeleted => lang.pick("계정을 삭제했습니다.", "Your account is deleted."),
            Self::Done => lang.pick("처리했습니다.", "Done."),
            Self::ProviderLinked => lang.pick("연결했습니다.", "It is linked."),
            Self::LastWayIn => lang.pick(
                "로그인할 수 있는 유일한 방법이라 연결을 끊지 않았습니다.",
                "It stays linked: it is your only way to sign in.",
            ),
            Self::ProviderUnlinked => lang.pick("연결을 끊었습니다.", "It is no longer linked."),
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
            Self::NoticeTakenDown => lang.pick("공지를 내렸습니다.", "The notice is taken down."),
            Self::MessageShown => lang.pick("메시지를 다시 표시합니다.", "The message is shown again."),
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
            Self::Requested => {
                lang.pick("신청했습니다. 운영자가 심사합니다.", "Request sent. The operator will review it.")
            }
            Self::RequestWithdrawn => lang.pick("신청을 취소했습니다.", "The request is withdrawn."),
            Self::SecretRevoked => lang.pick("시크릿을 폐기했습니다.", "The secret is revoked."),
            Self::SecretsRevoked => lang.pick("시크릿을 모두 폐기했습니다.", "All secrets are revoked."),
            Self::TokensEnded => {
                lang.pick("토큰과 세션을 모두 끝냈습니다.", "All tokens and sessions are ended.")
            }
            Self::AppDisabled => lang.pick("앱을 사용 중지했습니다.", "The app is disabled."),
            Self::AppEnabled => lang.pick("앱을 다시 사용합니다.", "The app is enabled."),
            Self::AppDeleted => lang.pick(
                "앱을 삭제했습니다. 30일 안에 복구할 수 있습니다.",
                "The app is deleted. You can restore it for 30 days.",
            ),
            Self::AppRestored => lang.pick("앱을 복구했습니다.", "The app is restored."),
            Self::AppHandedOver => lang.pick("소유자를 바꿨습니다.", "The app has a new owner."),
            Self::SessionEnded => lang.pick("세션을 종료했습니다.", "The session is ended."),
            Self::AppOffered => lang.pick(
                "지금 그 아이디를 쓰는 사람이 7일 안에 수락할 수 있습니다.",
                "Offered. The person who has that username now can accept for 7 days.",
            ),
            Self::Invited => lang.pick(
                "초대했습니다. 지금 그 아이디를 쓰는 사람이 7일 안에 수락할 수 있습니다.",
                "Invited. The person who has that username now can accept for 7 days.",
            ),
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

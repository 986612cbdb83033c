//! The problems of the pages, and their texts.

use domain::quota::QuotaName;
use domain::refusal::{DISK_FULL_RETRY_S, Resource};
use domain::{Invalid, Reason, Refusal, Rule, Word};

use super::Lang;

/// Why an attempt to sign in failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInError {
    /// Login or password is wrong. The page never shows which one.
    WrongLoginOrPassword,
    /// Login or password was left empty.
    Missing,
    /// The form was open for too long, or its CSRF token is wrong.
    Expired,
    /// Too many attempts.
    TooManyAttempts {
        /// The quota that is used up.
        quota: QuotaName,
        /// How long to wait, in seconds.
        retry_after_seconds: u32,
    },
    /// Too many other sign-ins are running.
    Busy {
        /// How long to wait, in seconds.
        retry_after_seconds: u32,
    },
}

impl SignInError {
    /// The sentence above the form.
    pub(super) fn text(self, lang: Lang) -> String {
        match (self, lang) {
            (Self::WrongLoginOrPassword, Lang::Ko) => "아이디 또는 비밀번호가 올바르지 않습니다.".into(),
            (Self::WrongLoginOrPassword, Lang::En) => "That username or password is not right.".into(),
            (Self::Missing, Lang::Ko) => "아이디와 비밀번호를 모두 입력해 주세요.".into(),
            (Self::Missing, Lang::En) => "Enter both your username and your password.".into(),
            (Self::Expired, Lang::Ko) => "화면이 오래 열려 있었습니다. 다시 로그인해 주세요.".into(),
            (Self::Expired, Lang::En) => "This page was open for too long. Please sign in again.".into(),
            (Self::TooManyAttempts { retry_after_seconds, .. }, Lang::Ko) => {
                format!(
                    "로그인 시도가 너무 많습니다. {} 뒤에 다시 시도해 주세요.",
                    wait(retry_after_seconds, lang)
                )
            }
            (Self::TooManyAttempts { retry_after_seconds, .. }, Lang::En) => {
                format!("Too many tries. Please try again in {}.", wait(retry_after_seconds, lang))
            }
            (Self::Busy { retry_after_seconds }, Lang::Ko) => {
                let wait = wait(retry_after_seconds, lang);
                format!("지금 로그인하는 사람이 많습니다. {wait} 뒤에 다시 시도해 주세요.")
            }
            (Self::Busy { retry_after_seconds }, Lang::En) => {
                let wait = wait(retry_after_seconds, lang);
                format!("Many people are signing in right now. Please try again in {wait}.")
            }
        }
    }

    /// The value of `Stagedoor-Reason`, if a limit refused the attempt.
    pub fn reason(self) -> Option<Reason> {
        let retry_after_s = self.retry_after_seconds()?;
        let refusal = match self {
            Self::TooManyAttempts { quota, .. } => Refusal::TooManyRequests { quota, retry_after_s },
            _ => Refusal::Busy { retry_after_s },
        };
        Some(refusal.reason())
    }

    /// The error of an attempt that a limit refused; `None` for other refusals.
    pub fn limited(refusal: &Refusal) -> Option<Self> {
        let retry_after_seconds = refusal.retry_after_s()?;
        match refusal {
            Refusal::TooManyRequests { quota, .. } => {
                Some(Self::TooManyAttempts { quota: *quota, retry_after_seconds })
            }
            Refusal::Busy { .. } => Some(Self::Busy { retry_after_seconds }),
            _ => None,
        }
    }

    /// Seconds to wait before the next attempt, if waiting helps.
    pub const fn retry_after_seconds(self) -> Option<u32> {
        match self {
            Self::TooManyAttempts { retry_after_seconds, .. } | Self::Busy { retry_after_seconds } => {
                Some(retry_after_seconds)
            }
            Self::WrongLoginOrPassword | Self::Missing | Self::Expired => None,
        }
    }

    /// Whether the typed values are wrong, so that the fields are marked.
    pub(super) fn marks_fields(self) -> bool {
        matches!(self, Self::WrongLoginOrPassword | Self::Missing)
    }
}

/// A problem without a form to return to. Parameter names are those of the request
/// (`docs/spec/authorization.md#sign-in`). Untrusted values are never repeated on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageProblem {
    /// No application has this `clientId`.
    UnknownApplication,
    /// `redirectUri` is not, byte for byte, a registered address of the application.
    RedirectNotRegistered,
    /// A required parameter is missing or empty.
    MissingParameter(&'static str),
    /// A parameter occurs more than once.
    RepeatedParameter(&'static str),
    /// A parameter has an invalid value.
    InvalidParameter(&'static str),
    /// A form was posted too late or with a wrong CSRF token.
    FormExpired,
    /// A form is larger than 64 KiB.
    FormTooLarge,
    /// A form cannot be read.
    FormUnreadable,
    /// There is no such page, or it is not the person's.
    NotFound,
    /// The page cannot be used in this way: its address is that of a form.
    WrongMethod,
    /// Too many requests.
    TooMany {
        /// The quota that is used up; `None` if the service is busy.
        quota: Option<QuotaName>,
        /// How long to wait, in seconds.
        retry_after_seconds: u32,
    },
    /// The request is refused for another reason.
    Refused {
        /// The status.
        status: u16,
    },
    /// The disk of the database is full.
    DiskFull,
    /// The service failed.
    ServerError,
}

impl PageProblem {
    /// The HTTP status to answer with.
    pub const fn status(self) -> u16 {
        match self {
            Self::UnknownApplication
            | Self::RedirectNotRegistered
            | Self::MissingParameter(_)
            | Self::RepeatedParameter(_)
            | Self::InvalidParameter(_)
            | Self::FormExpired
            | Self::FormUnreadable => 400,
            Self::FormTooLarge => 413,
            Self::NotFound => 404,
            Self::WrongMethod => 405,
            Self::TooMany { .. } => 429,
            Self::Refused { status } => status,
            Self::ServerError => 500,
            Self::DiskFull => 503,
        }
    }

    /// Seconds to wait before the next attempt, if waiting helps.
    pub const fn retry_after_seconds(self) -> Option<u32> {
        match self {
            Self::DiskFull => Some(DISK_FULL_RETRY_S),
            Self::TooMany { retry_after_seconds, .. } => Some(retry_after_seconds),
            _ => None,
        }
    }

    /// The problem of a refused request for a page.
    pub fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::NotFound(_) => Self::NotFound,
            Refusal::MethodNotAllowed => Self::WrongMethod,
            Refusal::DiskFull => Self::DiskFull,
            Refusal::TooManyRequests { quota, retry_after_s } => {
                Self::TooMany { quota: Some(*quota), retry_after_seconds: *retry_after_s }
            }
            Refusal::Busy { retry_after_s } => {
                Self::TooMany { quota: None, retry_after_seconds: *retry_after_s }
            }
            refusal if refusal.status() < 500 => Self::Refused { status: refusal.status() },
            _ => Self::ServerError,
        }
    }

    /// Whether another page of this service helps more than a new start.
    pub(super) const fn is_lost(self) -> bool {
        matches!(self, Self::NotFound | Self::WrongMethod)
    }

    /// The value of the header `Stagedoor-Reason`.
    pub fn reason(self) -> Reason {
        let invalid = |field, rule: Rule| Refusal::from(Invalid::new(field, rule)).reason();
        match self {
            Self::UnknownApplication => Word::ClientUnknown.into(),
            Self::RedirectNotRegistered => Word::RedirectUnregistered.into(),
            Self::MissingParameter(name) => invalid(name, Rule::Required),
            Self::RepeatedParameter(name) => invalid(name, Rule::Once),
            Self::InvalidParameter(name) => Reason::new(Word::Invalid).with("field", name),
            Self::FormExpired => Word::FormExpired.into(),
            Self::FormTooLarge => Reason::new(Word::Invalid).with("field", "form"),
            Self::FormUnreadable => Reason::new(Word::Invalid).with("field", "form"),
            Self::NotFound => Refusal::NotFound(Resource::Path).reason(),
            Self::WrongMethod => Refusal::MethodNotAllowed.reason(),
            Self::TooMany { quota, retry_after_seconds: retry_after_s } => match quota {
                Some(quota) => Refusal::TooManyRequests { quota, retry_after_s }.reason(),
                None => Refusal::Busy { retry_after_s }.reason(),
            },
            Self::Refused { .. } => Word::Invalid.into(),
            Self::DiskFull => Word::DiskFull.into(),
            Self::ServerError => Word::Internal.into(),
        }
    }

    pub(super) fn title(self, lang: Lang) -> String {
        let (ko, en) = match self {
            Self::UnknownApplication => ("알 수 없는 앱입니다", "We don’t know this app"),
            Self::RedirectNotRegistered => {
                ("돌아갈 주소가 등록되어 있지 않습니다", "This app’s return address is not registered")
            }
            Self::MissingParameter(_) | Self::RepeatedParameter(_) | Self::InvalidParameter(_) => {
                ("로그인 요청이 올바르지 않습니다", "This sign-in request is not valid")
            }
            Self::FormExpired => ("화면이 만료되었습니다", "This page has expired"),
            Self::FormTooLarge => ("입력한 내용이 너무 큽니다", "This form is too large"),
            Self::FormUnreadable => ("입력한 내용을 읽을 수 없습니다", "This form can’t be read"),
            Self::NotFound | Self::WrongMethod => ("페이지를 찾을 수 없습니다", "We can’t find this page"),
            Self::TooMany { .. } => ("요청이 너무 많습니다", "Too many requests"),
            Self::Refused { .. } => ("요청을 처리할 수 없습니다", "We can’t do this"),
            Self::DiskFull | Self::ServerError => {
                ("서버에 문제가 생겼습니다", "Something went wrong on our side")
            }
        };
        lang.pick(ko, en).into()
    }

    /// The explanation.
    pub(super) fn explanation(self, lang: Lang) -> &'static str {
        let (ko, en) = match self {
            Self::UnknownApplication => (
                "로그인을 요청한 앱이 등록되어 있지 않거나 삭제되었습니다.",
                "The app that sent you here is not registered, or it has been deleted.",
            ),
            Self::RedirectNotRegistered => (
                "로그인한 뒤 돌아갈 주소가 이 앱에 등록된 주소와 다릅니다. 회원님을 보호하기 위해 이동하지 않았습니다.",
                "The address to return to after sign-in is not one this app has registered. To protect you, we did not go there.",
            ),
            Self::MissingParameter(_) | Self::RepeatedParameter(_) | Self::InvalidParameter(_) => (
                "앱이 보낸 로그인 요청을 이해할 수 없습니다.",
                "The app that sent you here made a request we can’t understand.",
            ),
            Self::FormExpired => (
                "화면이 오래 열려 있었거나 다른 탭에서 다시 시작되었습니다. 아무것도 바뀌지 않았습니다.",
                "It was open for too long, or you started again in another tab. Nothing has been changed.",
            ),
            Self::FormTooLarge => (
                "한 번에 64 KiB까지 보낼 수 있습니다. 아무것도 바뀌지 않았습니다.",
                "A form holds up to 64 KiB. Nothing has been changed.",
            ),
            Self::FormUnreadable => (
                "쓸 수 없는 문자가 있거나 내용이 끊겼습니다. 아무것도 바뀌지 않았습니다.",
                "It has characters that can’t be used, or it broke off. Nothing has been changed.",
            ),
            Self::NotFound | Self::WrongMethod => (
                "주소가 잘못되었거나, 페이지가 없어졌거나, 볼 수 없는 페이지입니다.",
                "The address may be wrong, the page may be gone, or it may not be yours to see.",
            ),
            Self::TooMany { .. } => (
                "짧은 시간에 너무 많은 요청을 보냈습니다. 아무것도 바뀌지 않았습니다.",
                "There were too many requests in a short time. Nothing has been changed.",
            ),
            Self::Refused { .. } => (
                "요청한 내용을 지금은 할 수 없습니다. 아무것도 바뀌지 않았습니다.",
                "What you asked for is not possible now. Nothing has been changed.",
            ),
            Self::DiskFull | Self::ServerError => (
                "요청을 처리하지 못했습니다. 회원님의 잘못이 아닙니다.",
                "We could not handle the request. It is not your fault.",
            ),
        };
        lang.pick(ko, en)
    }

    /// The next step for the person.
    pub(crate) fn next_step(self, lang: Lang) -> String {
        let (ko, en) = match self {
            Self::UnknownApplication
            | Self::RedirectNotRegistered
            | Self::MissingParameter(_)
            | Self::RepeatedParameter(_)
            | Self::InvalidParameter(_) => (
                "앱으로 돌아가 다시 시도해 주세요. 계속되면 앱 개발자에게 알려 주세요.",
                "Go back to the app and try again. If this keeps happening, tell the app’s developer.",
            ),
            Self::FormExpired => (
                "이전 화면으로 돌아가 새로고침한 뒤 다시 시도해 주세요. 앱에서 왔다면 앱에서 다시 시작해 주세요.",
                "Go back, reload the page and try again. If an app sent you here, start again from the app.",
            ),
            Self::NotFound | Self::WrongMethod => (
                "주소를 확인하거나 처음 화면에서 시작해 주세요.",
                "Check the address, or begin at the start page.",
            ),
            Self::TooMany { retry_after_seconds, .. } => {
                let wait = wait(retry_after_seconds, lang);
                return match lang {
                    Lang::Ko => format!("{wait} 뒤에 다시 시도해 주세요."),
                    Lang::En => format!("Please try again in {wait}."),
                };
            }
            Self::FormTooLarge => (
                "이전 화면으로 돌아가 글을 줄이거나 더 작은 파일을 고른 뒤 다시 시도해 주세요.",
                "Go back, shorten the text or choose a smaller file, and try again.",
            ),
            Self::Refused { .. } | Self::FormUnreadable => {
                ("이전 화면으로 돌아가 다시 시도해 주세요.", "Go back and try again.")
            }
            Self::DiskFull | Self::ServerError => (
                "잠시 뒤에 다시 시도해 주세요. 계속되면 아래 요청 번호와 함께 알려 주세요.",
                "Please try again in a moment. If this keeps happening, report it with the request ID below.",
            ),
        };
        lang.pick(ko, en).into()
    }

    /// A hint for the application's developer.
    pub(super) fn developer_hint(self, lang: Lang) -> Option<String> {
        Some(match (self, lang) {
            (Self::UnknownApplication, Lang::Ko) => {
                "clientId가 이 서비스의 운영자가 등록한 애플리케이션의 ID와 같은지 확인해 주세요.".into()
            }
            (Self::UnknownApplication, Lang::En) => {
                "Check that clientId is the id under which the operator of this service registered your application.".into()
            }
            (Self::RedirectNotRegistered, Lang::Ko) => "redirectUri는 등록된 로그인 리디렉션 URL과 한 글자도 다르지 않아야 합니다. 끝의 /와 대소문자, 포트도 확인해 주세요.".into(),
            (Self::RedirectNotRegistered, Lang::En) => "redirectUri must equal a registered login redirect URL byte for byte. Look at a trailing slash, upper and lower case, and the port.".into(),
            (Self::MissingParameter(name), Lang::Ko) => {
                format!("{name} 값이 없습니다. clientId, redirectUri, state는 모두 필요합니다.")
            }
            (Self::MissingParameter(name), Lang::En) => {
                format!("{name} is missing. clientId, redirectUri and state are all required.")
            }
            (Self::RepeatedParameter(name), Lang::Ko) => format!("{name} 값이 여러 번 있습니다. 한 번만 보내 주세요."),
            (Self::RepeatedParameter(name), Lang::En) => format!("{name} is there more than once. Send it once."),
            (Self::InvalidParameter(name), Lang::Ko) => format!("{name} 값을 사용할 수 없습니다."),
            (Self::InvalidParameter(name), Lang::En) => format!("The value of {name} cannot be used."),
            (_, _) => return None,
        })
    }
}

/// A waiting time in words, rounded up: seconds up to a minute and a half, then minutes, then hours.
fn wait(seconds: u32, lang: Lang) -> String {
    let (count, ko, en) = match seconds {
        0..=90 => (seconds.max(1), "초", "second"),
        91..=5_400 => (seconds.div_ceil(60), "분", "minute"),
        _ => (seconds.div_ceil(3_600), "시간", "hour"),
    };
    match lang {
        Lang::Ko => format!("{count}{ko}"),
        Lang::En => format!("{count} {en}{}", if count == 1 { "" } else { "s" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_times_are_rounded_up_to_words() {
        for (seconds, ko, en) in [
            (0, "1초", "1 second"),
            (30, "30초", "30 seconds"),
            (90, "90초", "90 seconds"),
            (91, "2분", "2 minutes"),
            (3_601, "61분", "61 minutes"),
            (5_401, "2시간", "2 hours"),
            (u32::MAX, "1193047시간", "1193047 hours"),
        ] {
            assert_eq!(wait(seconds, Lang::Ko), ko);
            assert_eq!(wait(seconds, Lang::En), en);
        }
    }
}

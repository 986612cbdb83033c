//! Why a sign-in at a provider did not work, and what to do next.

use askama::Template;
use axum::http::StatusCode;
use domain::upstream::provider_path;
use upstream::{Failure, Outcome, Provider};
use web::pages::{Lang, Shell, filters, local_page, with_next};
use web::{FormTarget, PageAnswer, SIGN_IN, Visitor};

use crate::account::ACCOUNT;
use crate::providers::{label, link_path};

/// Why a sign-in at a provider did not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderProblem {
    /// The browser came back too late, twice, or is not the one that left.
    Expired,
    /// The person cancelled, or the provider sent the person back with an error.
    Denied,
    /// The provider cannot be reached, or has too many sign-ins at once.
    Unavailable,
    /// The provider does not accept this service.
    ClientRefused,
    /// The answer of the provider is wrong.
    Invalid,
    /// There is no account, and none is made.
    NoAccount,
    /// The account is barred.
    Barred,
    /// The person of the provider has another account.
    OtherAccount,
    /// The account is linked to another person of the provider.
    OtherPerson,
}

impl ProviderProblem {
    const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Unavailable => Self::Unavailable,
            Outcome::ClientRefused => Self::ClientRefused,
            _ => Self::Invalid,
        }
    }

    const fn outcome(self) -> Outcome {
        match self {
            Self::Expired => Outcome::Expired,
            Self::Denied => Outcome::Denied,
            Self::Unavailable => Outcome::Unavailable,
            Self::ClientRefused => Outcome::ClientRefused,
            Self::Invalid => Outcome::Invalid,
            Self::NoAccount => Outcome::NoAccount,
            Self::Barred | Self::OtherAccount | Self::OtherPerson => Outcome::Refused,
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::Expired | Self::Denied => StatusCode::BAD_REQUEST,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::ClientRefused | Self::Invalid => StatusCode::BAD_GATEWAY,
            Self::NoAccount | Self::Barred => StatusCode::FORBIDDEN,
            Self::OtherAccount | Self::OtherPerson => StatusCode::CONFLICT,
        }
    }

    /// Whether another try can help.
    const fn may_retry(self) -> bool {
        matches!(self, Self::Expired | Self::Denied | Self::Unavailable | Self::ClientRefused | Self::Invalid)
    }

    /// Title, explanation and next step.
    const fn texts(self, lang: Lang) -> [&'static str; 3] {
        match lang {
            Lang::Ko => self.korean(),
            Lang::En => self.english(),
        }
    }

    const fn korean(self) -> [&'static str; 3] {
        match self {
            Self::Expired => [
                "로그인을 이어갈 수 없습니다",
                "로그인을 시작한 지 10분이 지났거나, 이미 쓰인 주소이거나, 다른 브라우저에서 시작한 로그인입니다.",
                "이 브라우저에서 다시 로그인해 주세요.",
            ],
            Self::Denied => [
                "로그인하지 않았습니다",
                "로그인 화면에서 취소했거나, 그쪽에서 로그인을 거절했습니다.",
                "다시 시도하거나 다른 방법으로 로그인해 주세요.",
            ],
            Self::Unavailable => [
                "지금은 이 방법으로 로그인할 수 없습니다",
                "로그인을 맡은 서버가 응답하지 않습니다. 다른 로그인 방법은 그대로 쓸 수 있습니다.",
                "잠시 뒤에 다시 시도해 주세요.",
            ],
            Self::ClientRefused => [
                "로그인을 확인하지 못했습니다",
                "로그인을 맡은 서버가 이 서비스의 확인 요청을 거절했습니다.",
                "다시 시도해 주세요. 계속되면 아래 요청 번호와 함께 운영자에게 알려 주세요.",
            ],
            Self::Invalid => [
                "로그인을 확인하지 못했습니다",
                "로그인을 맡은 서버의 응답이 올바르지 않아 회원님을 보호하기 위해 멈췄습니다.",
                "다시 시도해 주세요. 계속되면 아래 요청 번호와 함께 운영자에게 알려 주세요.",
            ],
            Self::NoAccount => [
                "연결된 계정이 없습니다",
                "이 방법으로는 새 계정을 만들 수 없습니다.",
                "가지고 있는 계정으로 로그인한 뒤 내 계정 화면에서 연결하거나, 운영자에게 문의해 주세요.",
            ],
            Self::Barred => [
                "이용이 정지된 계정입니다",
                "운영자가 이 계정의 이용을 정지했습니다.",
                "운영자에게 문의해 주세요.",
            ],
            Self::OtherAccount => [
                "다른 계정에 연결되어 있습니다",
                "방금 로그인한 쪽은 이미 이 서비스의 다른 계정에 연결되어 있습니다.",
                "그 계정으로 로그인해 연결을 끊은 뒤 다시 연결해 주세요.",
            ],
            Self::OtherPerson => [
                "이미 연결되어 있습니다",
                "이 계정에는 같은 곳의 다른 사람이 연결되어 있습니다.",
                "내 계정 화면에서 연결을 끊은 뒤 다시 연결해 주세요.",
            ],
        }
    }

    const fn english(self) -> [&'static str; 3] {
        match self {
            Self::Expired => [
                "We can’t go on with this sign-in",
                "It began more than ten minutes ago, or in another browser, or its address was used already.",
                "Please sign in again in this browser.",
            ],
            Self::Denied => [
                "You are not signed in",
                "You cancelled, or the other side did not let you in.",
                "Try again, or sign in another way.",
            ],
            Self::Unavailable => [
                "This sign-in does not work right now",
                "The server that signs you in does not answer. Other ways to sign in still work.",
                "Please try again in a moment.",
            ],
            Self::ClientRefused => [
                "We could not confirm your sign-in",
                "The server that signs you in did not accept our request.",
                "Please try again. If it happens again, tell the operator the request ID below.",
            ],
            Self::Invalid => [
                "We could not confirm your sign-in",
                "The answer of the server that signs you in was not right. To protect you, we stopped.",
                "Please try again. If it happens again, tell the operator the request ID below.",
            ],
            Self::NoAccount => [
                "No account is linked",
                "New accounts cannot be made this way.",
                "Sign in to your account another way and link this one on the page of your account, or ask the operator.",
            ],
            Self::Barred => [
                "This account is suspended",
                "The operator has suspended this account.",
                "Please ask the operator.",
            ],
            Self::OtherAccount => [
                "It is linked to another account",
                "What you just signed in to belongs to another account of this service.",
                "Sign in to that account, unlink it there, and link it here again.",
            ],
            Self::OtherPerson => [
                "Your account is linked already",
                "Your account is linked to another person of the same provider.",
                "Unlink it on the page of your account, and link it again.",
            ],
        }
    }
}

/// The words around a problem.
#[derive(Debug)]
pub(crate) struct ProblemWords {
    next_step: &'static str,
    retry: &'static str,
    sign_in: &'static str,
    account: &'static str,
    for_operator: &'static str,
    request_id: &'static str,
}

const KO: ProblemWords = ProblemWords {
    next_step: "이렇게 해 보세요",
    retry: "다시 시도",
    sign_in: "로그인 화면",
    account: "내 계정",
    for_operator: "운영자에게 알릴 내용",
    request_id: "요청 번호",
};

const EN: ProblemWords = ProblemWords {
    next_step: "What you can do",
    retry: "Try again",
    sign_in: "All ways to sign in",
    account: "Your account",
    for_operator: "For the operator",
    request_id: "Request ID",
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "site/provider_problem.html")]
pub(crate) struct ProblemPage<'a> {
    shell: Shell<'a>,
    problem: ProviderProblem,
    label: &'a str,
    retry: Option<FormTarget>,
    next: &'a str,
    request_id: String,
    links: bool,
    back: String,
    words: &'static ProblemWords,
}

impl ProblemPage<'_> {
    fn title(&self) -> &'static str {
        self.text(0)
    }

    fn text(&self, n: usize) -> &'static str {
        self.problem.texts(self.shell.lang)[n]
    }
}

/// What a sign-in is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    /// The page after it.
    pub next: &'a str,
    /// Whether the provider is linked to the account of the signed-in person.
    pub links: bool,
}

impl<'a> Attempt<'a> {
    /// A sign-in that leads to a page.
    pub(crate) const fn to(next: &'a str) -> Self {
        Self { next, links: false }
    }
}

/// The page about a problem, which is counted.
pub(crate) fn problem_page(
    visitor: &Visitor,
    provider: &Provider,
    problem: ProviderProblem,
    attempt: Attempt<'_>,
) -> PageAnswer {
    provider.count(problem.outcome());
    let mut shell = visitor.shell_alone();
    shell.language_href = None;
    let (name, next) = (&provider.settings().name, local_page(attempt.next).unwrap_or("/"));
    let retry = if attempt.links { link_path(name) } else { provider_path(name) };
    let back = if attempt.links { ACCOUNT.to_owned() } else { with_next(SIGN_IN, next) };
    let page = ProblemPage {
        shell,
        problem,
        label: label(provider, visitor.lang()),
        retry: problem.may_retry().then(|| visitor.form(retry)),
        links: attempt.links,
        next,
        request_id: visitor.request().id().to_string(),
        back,
        words: match visitor.lang() {
            Lang::Ko => &KO,
            Lang::En => &EN,
        },
    };
    let mut response = visitor.page_alone(&page)?;
    *response.status_mut() = problem.status();
    Ok(response)
}

/// The page about a failure of a provider. It goes to the log.
pub(crate) fn failed(
    visitor: &Visitor,
    provider: &Provider,
    failure: &Failure,
    attempt: Attempt<'_>,
) -> PageAnswer {
    provider.log(failure, visitor.web().service().clock().monotonic());
    problem_page(visitor, provider, ProviderProblem::of(failure.outcome()), attempt)
}

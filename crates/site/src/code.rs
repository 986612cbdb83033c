//! `/sign-in/code`: the second step of a sign-in.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use domain::limits::{CODE_FAILURES_MS, SECOND_MS};
use service::two_factor::EnteredCode;
use web::pages::{FieldErrors, Lang, Shell, filters, with_next};
use web::{FormTarget, PageAnswer, Posted, SIGN_IN, Visitor};

#[derive(Template)]
#[template(path = "site/code.html")]
struct CodePage<'a> {
    shell: Shell<'a>,
    t: &'static CodeTexts,
    form: FormTarget,
    again: String,
    is_limited: bool,
    errors: FieldErrors,
}

impl CodePage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

impl<'a> CodePage<'a> {
    fn new(visitor: &'a Visitor) -> Self {
        Self {
            t: texts(visitor.lang()),
            shell: visitor.shell_alone(),
            form: visitor.form(visitor.request().path_and_query()),
            again: with_next(SIGN_IN, &next(visitor)),
            is_limited: false,
            errors: FieldErrors::default(),
        }
    }
}

/// The page after the sign-in.
fn next(visitor: &Visitor) -> String {
    visitor.request().parameter("next").unwrap_or_else(|| "/".to_owned())
}

/// `GET /sign-in/code`, for a browser whose sign-in waits for a code.
pub(crate) async fn show(visitor: Visitor) -> PageAnswer {
    if visitor.is_signed_in() {
        return Ok(visitor.redirect(&next(&visitor), None));
    }
    if !visitor.web().service().awaits_code(visitor.browser_token()).await? {
        return Ok(visitor.redirect(&with_next(SIGN_IN, &next(&visitor)), None));
    }
    visitor.page_alone(&CodePage::new(&visitor))
}

/// `POST /sign-in/code`.
pub(crate) async fn submit(Posted { visitor, fields }: Posted) -> PageAnswer {
    let entered = visitor.web().service().enter_code(visitor.browser_token(), fields.text("code")).await?;
    match entered {
        EnteredCode::SignedIn(token) => visitor.signed_in(&token, &next(&visitor)).await,
        EnteredCode::Expired => Ok(visitor.redirect(&with_next(SIGN_IN, &next(&visitor)), None)),
        EnteredCode::Wrong => {
            let mut errors = FieldErrors::default();
            errors.add("code", texts(visitor.lang()).wrong);
            visitor.form_again_alone(&CodePage { errors, ..CodePage::new(&visitor) })
        }
        EnteredCode::Limited => {
            let mut response =
                visitor.page_alone(&CodePage { is_limited: true, ..CodePage::new(&visitor) })?;
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            let seconds = HeaderValue::from(CODE_FAILURES_MS / SECOND_MS);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
            Ok(response)
        }
    }
}

struct CodeTexts {
    title: &'static str,
    lead: &'static str,
    code: &'static str,
    hint: &'static str,
    submit: &'static str,
    wrong: &'static str,
    limited: &'static str,
    again: &'static str,
}

fn texts(lang: Lang) -> &'static CodeTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: CodeTexts = CodeTexts {
    title: "2단계 인증",
    lead: "인증 앱에 지금 표시된 코드를 입력해 주세요.",
    code: "인증 코드",
    hint: "기기가 없으면 복구 코드를 입력하세요. 복구 코드는 하나를 한 번만 쓸 수 있습니다.",
    submit: "로그인",
    wrong: "맞지 않거나 이미 쓰인 코드입니다.",
    limited: "틀린 코드가 너무 많았습니다. 15분 뒤에 다시 시도하거나 복구 코드를 입력해 주세요.",
    again: "처음부터 다시 로그인",
};

const EN: CodeTexts = CodeTexts {
    title: "Two-factor authentication",
    lead: "Enter the code that your authenticator app shows now.",
    code: "Code",
    hint: "Without your device, enter a recovery code. Each works once.",
    submit: "Sign in",
    wrong: "This code is wrong, or was used.",
    limited: "There were too many wrong codes. Try again in 15 minutes, or enter a recovery code.",
    again: "Begin again",
};

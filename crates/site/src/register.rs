//! `/register`: a new account.

use askama::Template;
use axum::http::StatusCode;
use service::accounts::NewAccount;
use web::pages::{FieldErrors, Flash, Lang, Shell, filters, local_page, with_next};
use web::{FormTarget, PageAnswer, Posted, SIGN_IN, Visitor, charge_registration, client_of_sign_in};

use crate::forms::{at_field, proof_page};

/// The address.
pub(crate) const REGISTER: &str = "/register";
/// Where a registration leads without `next`.
const HOME: &str = "/account";

#[derive(Template)]
#[template(path = "site/register.html")]
struct RegisterPage<'a> {
    shell: Shell<'a>,
    t: &'static RegisterTexts,
    form: Option<FormTarget>,
    sign_in: String,
    /// The application that asks for access after the registration.
    app: Option<String>,
    login: &'a str,
    email: &'a str,
    channel_name: &'a str,
    password_hint: String,
    errors: FieldErrors,
}

impl RegisterPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

impl<'a> RegisterPage<'a> {
    async fn new(visitor: &'a Visitor) -> Result<Self, service::Error> {
        let settings = visitor.web().service().account_settings();
        let next = visitor.request().parameter("next").unwrap_or_default();
        Ok(Self {
            t: texts(visitor.lang()),
            shell: visitor.shell_alone(),
            form: settings.registration.then(|| visitor.form(with_next(REGISTER, &next))),
            sign_in: with_next(SIGN_IN, &next),
            app: app_of(visitor, &next).await?,
            login: "",
            email: "",
            channel_name: "",
            password_hint: password_hint(visitor.lang(), settings.password_chars_min),
            errors: FieldErrors::default(),
        })
    }
}

/// The name of the application whose sign-in is the next page.
async fn app_of(visitor: &Visitor, next: &str) -> Result<Option<String>, service::Error> {
    let Some(client_id) = client_of_sign_in(next) else { return Ok(None) };
    let found = visitor.web().service().application(&client_id).await?;
    Ok(found.map(|application| application.name))
}

/// What a new password needs, as a sentence below its label.
pub(crate) fn password_hint(lang: Lang, chars_min: usize) -> String {
    match lang {
        Lang::Ko => format!("{chars_min}자 이상. 길수록 좋고, 띄어쓰기도 쓸 수 있습니다."),
        Lang::En => format!("At least {chars_min} characters. Longer is better, and spaces are fine."),
    }
}

/// The page after the registration: `next`, or that of the new account.
fn next(visitor: &Visitor) -> String {
    let next = visitor.request().parameter("next").unwrap_or_default();
    local_page(&next).unwrap_or(HOME).to_owned()
}

/// `GET /register`. With `next` the new account leads to that page.
pub(crate) async fn show(visitor: Visitor) -> PageAnswer {
    if visitor.is_signed_in() {
        return Ok(visitor.redirect(&next(&visitor), None));
    }
    let page = RegisterPage::new(&visitor).await?;
    let is_open = page.form.is_some();
    let mut response = visitor.page_alone(&page)?;
    if !is_open {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    Ok(response)
}

/// `POST /register`.
pub(crate) async fn submit(Posted { visitor, fields }: Posted) -> PageAnswer {
    let (login, email, channel_name) =
        (fields.text("login"), fields.text("email"), fields.text("channelName"));
    let account = NewAccount {
        login: login.to_owned(),
        email: Some(email.to_owned()),
        channel_name: channel_name.to_owned(),
        password: fields.text("password").to_owned(),
    };
    let service = visitor.service();
    let faults = service.faults_of_account(&account);
    let again = async |errors| {
        let page = RegisterPage::new(&visitor).await?;
        visitor.form_again_alone(&RegisterPage { login, email, channel_name, errors, ..page })
    };
    // Only a form without faults costs a registration: it may tell that a login is taken.
    if !faults.is_empty() {
        let mut errors = FieldErrors::default();
        faults.iter().for_each(|fault| errors.add_invalid(fault, visitor.lang()));
        return again(errors).await;
    }
    charge_registration(visitor.web(), visitor.request())?;
    match service.register(account).await {
        Ok((channel, token)) => {
            let page = proof_page(&visitor);
            visitor.web().service().send_email_proof(&channel, &page, visitor.lang().into()).await?;
            visitor.signed_in_with(&token, &next(&visitor), Some(Flash::AccountCreated)).await
        }
        Err(error) => again(at_field(error, visitor.lang())?).await,
    }
}

struct RegisterTexts {
    title: &'static str,
    lead: &'static str,
    closed: &'static str,
    /// What stands before and after the name of an application that asks for access next.
    then: [&'static str; 2],
    login: &'static str,
    login_hint: &'static str,
    channel_name: &'static str,
    channel_name_hint: &'static str,
    email: &'static str,
    email_hint: &'static str,
    password: &'static str,
    submit: &'static str,
    sign_in: &'static str,
}

fn texts(lang: Lang) -> &'static RegisterTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: RegisterTexts = RegisterTexts {
    title: "계정 만들기",
    lead: "계정을 만들면 채널도 함께 생깁니다.",
    closed: "이 서버에서는 계정을 직접 만들 수 없습니다. 운영자에게 문의해 주세요.",
    then: ["계정을 만들면 바로 ", " 앱의 접근을 허용할지 묻습니다."],
    login: "아이디",
    login_hint: "영문 소문자, 숫자, '.', '_', '-'로 3자에서 32자까지. 로그인할 때만 씁니다.",
    channel_name: "채널 이름",
    channel_name_hint: "다른 사람에게 보이는 이름입니다.",
    email: "이메일 (선택)",
    email_hint: "비밀번호를 잊었을 때 재설정 링크를 받을 주소입니다.",
    password: "비밀번호",
    submit: "계정 만들기",
    sign_in: "이미 계정이 있습니다",
};

const EN: RegisterTexts = RegisterTexts {
    title: "Create an account",
    lead: "An account comes with a channel.",
    closed: "Registration is closed on this server. Ask the operator for an account.",
    then: ["Next, ", " asks for access to your account."],
    login: "Username",
    login_hint: "3 to 32 small letters, digits, '.', '_' or '-'. Only you see it, when you sign in.",
    channel_name: "Name of the channel",
    channel_name_hint: "Others see this name.",
    email: "E-mail address (optional)",
    email_hint: "A link to a new password goes there when you forget yours.",
    password: "Password",
    submit: "Create account",
    sign_in: "I already have an account",
};

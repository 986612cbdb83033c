//! `/reset-password`: a link to a new password, and the page behind the link.

use askama::Template;
use domain::Refusal;
use domain::refusal::Resource;
use service::password_resets::ResetOutcome;
use web::pages::{FieldErrors, Flash, Lang, Shell, filters};
use web::{FormTarget, PageAnswer, Posted, SIGN_IN, Visitor, charge_password_reset};

use crate::after_reset::AFTER_RESET;
use crate::forms::at_field;
use crate::register::password_hint;

/// The address. Links of password resets begin with it.
pub(crate) const RESET_PASSWORD: &str = "/reset-password";

/// What the page asks for or says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResetStep {
    /// Asks for login or address.
    Request,
    /// The server sends no links.
    NoMail,
    /// A link was sent, if there is such an account.
    Requested,
    /// Asks for the new password.
    Choose,
    /// The link does not work.
    LinkInvalid,
}

#[derive(Template)]
#[template(path = "site/reset_password.html")]
struct ResetPage<'a> {
    shell: Shell<'a>,
    t: &'static ResetTexts,
    step: ResetStep,
    form: FormTarget,
    token: &'a str,
    password_hint: String,
    errors: FieldErrors,
}

impl ResetPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

impl<'a> ResetPage<'a> {
    fn new(visitor: &'a Visitor, step: ResetStep, token: &'a str) -> Self {
        let settings = visitor.web().service().account_settings();
        let step = match step {
            ResetStep::Request | ResetStep::Requested if !settings.sends_mail => ResetStep::NoMail,
            step => step,
        };
        Self {
            t: texts(visitor.lang()),
            shell: visitor.shell_alone(),
            step,
            form: visitor.form(RESET_PASSWORD),
            token,
            password_hint: password_hint(visitor.lang(), settings.password_chars_min),
            errors: FieldErrors::default(),
        }
    }
}

/// Without passwords there is no such page.
fn check_passwords(visitor: &Visitor) -> Result<(), Refusal> {
    match visitor.web().service().account_settings().passwords {
        true => Ok(()),
        false => Err(Refusal::NotFound(Resource::Path)),
    }
}

/// `GET /reset-password`, with `token` behind a link.
pub(crate) async fn show(visitor: Visitor) -> PageAnswer {
    check_passwords(&visitor)?;
    let Some(token) = visitor.request().parameter("token") else {
        return visitor.page_alone(&ResetPage::new(&visitor, ResetStep::Request, ""));
    };
    let step = match visitor.web().service().is_password_reset(&token).await? {
        true => ResetStep::Choose,
        false => ResetStep::LinkInvalid,
    };
    visitor
        .page_alone(&ResetPage { shell: without_token(&visitor), ..ResetPage::new(&visitor, step, &token) })
}

/// The layout without a link that has the token in it.
fn without_token(visitor: &Visitor) -> Shell<'_> {
    let mut shell = visitor.shell_alone();
    shell.language_href = None;
    shell
}

/// `POST /reset-password`: asks for a link, or sets the password with one. The answer to the former does not
/// depend on the account.
pub(crate) async fn submit(Posted { visitor, fields }: Posted) -> PageAnswer {
    check_passwords(&visitor)?;
    let (service, lang) = (visitor.service(), visitor.lang());
    let token = fields.text("token");
    if token.is_empty() {
        charge_password_reset(visitor.web(), visitor.request())?;
        let page = format!("{}{RESET_PASSWORD}", visitor.web().config().base_url);
        service.request_password_reset(fields.text("account"), &page, lang.into()).await?;
        return visitor.page_alone(&ResetPage::new(&visitor, ResetStep::Requested, ""));
    }
    match service.reset_password(token, fields.text("newPassword"), lang.into()).await {
        Ok(ResetOutcome::Done { has_providers }) => {
            let next =
                if has_providers { format!("{SIGN_IN}?next={AFTER_RESET}") } else { SIGN_IN.to_owned() };
            Ok(visitor.redirect(&next, Some(Flash::PasswordChanged)))
        }
        Ok(ResetOutcome::LinkInvalid) => {
            visitor.form_again_alone(&ResetPage::new(&visitor, ResetStep::LinkInvalid, ""))
        }
        Err(error) => {
            let errors = at_field(error, lang)?;
            visitor
                .form_again_alone(&ResetPage { errors, ..ResetPage::new(&visitor, ResetStep::Choose, token) })
        }
    }
}

struct ResetTexts {
    title: &'static str,
    request_lead: &'static str,
    account: &'static str,
    request: &'static str,
    no_mail: &'static str,
    requested: &'static str,
    choose_lead: &'static str,
    new_password: &'static str,
    choose: &'static str,
    link_invalid: &'static str,
    another: &'static str,
    sign_in: &'static str,
}

fn texts(lang: Lang) -> &'static ResetTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ResetTexts = ResetTexts {
    title: "비밀번호 재설정",
    request_lead: "아이디나 이메일 주소를 입력하면 새 비밀번호를 정하는 링크를 이메일로 보내 드립니다.",
    account: "아이디 또는 이메일",
    request: "링크 받기",
    no_mail: "이 서버는 이메일을 보내지 않습니다. 운영자에게 재설정 링크를 요청해 주세요.",
    requested: "해당하는 계정에 이메일 주소가 있으면 링크를 보냈습니다. 링크는 30분 동안 한 번 쓸 수 있습니다.",
    choose_lead: "새 비밀번호를 정하면 모든 브라우저에서 로그아웃됩니다. 연결한 앱은 그대로 남습니다.",
    new_password: "새 비밀번호",
    choose: "비밀번호 바꾸기",
    link_invalid: "이미 쓰였거나 기한이 지난 링크입니다.",
    another: "새 링크 받기",
    sign_in: "로그인으로 돌아가기",
};

const EN: ResetTexts = ResetTexts {
    title: "Reset the password",
    request_lead: "Enter your username or e-mail address. You get an e-mail with a link to a new password.",
    account: "Username or e-mail address",
    request: "Send a link",
    no_mail: "This server sends no e-mails. Ask the operator for a link.",
    requested: "If there is such an account with an e-mail address, a link is on its way. It works once, for 30 minutes.",
    choose_lead: "A new password signs you out of every browser. Connected apps stay connected.",
    new_password: "New password",
    choose: "Change the password",
    link_invalid: "This link was used, or is too old.",
    another: "Get a new link",
    sign_in: "Back to sign-in",
};

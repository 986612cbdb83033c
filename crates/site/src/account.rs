//! `/account`: the account of a signed-in person, and its forms: e-mail address, password, removal.

use askama::Template;
use axum::Extension;
use domain::Refusal;
use domain::refusal::Resource;
use service::accounts::{AccountDetails, Confirmation};
use upstream::Upstreams;
use web::pages::{Area, FieldErrors, Flash, Lang, Shell, filters};
use web::{FormFields, FormTarget, PageAnswer, Person, PostedBy, check_guess};

use crate::forms::{ConfirmWords, EMAIL_LINK, at_field, confirm_words, proof_page};
use crate::provider_rows::{LinkTexts, ProviderRow, link_texts, provider_rows};
use crate::register::password_hint;

/// The overview.
pub(crate) const ACCOUNT: &str = "/account";
/// The form of the e-mail address.
pub(crate) const EMAIL: &str = "/account/email";
/// The form of the password.
pub(crate) const PASSWORD: &str = "/account/password";
/// The form that removes the account.
pub(crate) const DELETE: &str = "/account/delete";

#[derive(Template)]
#[template(path = "site/account.html")]
struct AccountPage<'a> {
    shell: Shell<'a>,
    t: &'static AccountTexts,
    account: AccountDetails,
    /// The form that sends a link to an unproven address.
    prove: Option<FormTarget>,
    channel_id: &'a str,
    providers: Vec<ProviderRow<'a>>,
    p: &'static LinkTexts,
}

impl AccountPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// `GET /account`.
pub(crate) async fn show(Extension(upstreams): Extension<Upstreams>, person: Person) -> PageAnswer {
    let visitor = &person.visitor;
    let account = visitor.web().service().account(&person.channel_id).await?;
    let providers = provider_rows(&person, &upstreams, account.has_password).await?;
    let (shell, t, p) = (visitor.shell(Area::Elsewhere), texts(visitor.lang()), link_texts(visitor.lang()));
    let sends_mail = visitor.web().service().account_settings().sends_mail;
    let prove = sends_mail && account.email.is_some() && !account.email_is_proven;
    let prove = prove.then(|| visitor.form(EMAIL_LINK));
    visitor.page(&AccountPage {
        shell,
        t,
        account,
        prove,
        channel_id: person.channel_id.as_str(),
        providers,
        p,
    })
}

/// Which form the page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccountForm {
    Email,
    Password,
    Delete,
}

#[derive(Template)]
#[template(path = "site/account_form.html")]
struct AccountFormPage<'a> {
    shell: Shell<'a>,
    t: &'static AccountTexts,
    kind: AccountForm,
    form: FormTarget,
    account: AccountDetails,
    password_hint: String,
    c: &'static ConfirmWords,
    here: &'static str,
    errors: FieldErrors,
}

impl AccountFormPage<'_> {
    fn title(&self) -> &'static str {
        match self.kind {
            AccountForm::Email => self.t.change_email,
            AccountForm::Password => self.t.change_password,
            AccountForm::Delete => self.t.delete,
        }
    }
}

impl<'a> AccountFormPage<'a> {
    async fn new(person: &'a Person, kind: AccountForm) -> Result<Self, service::Error> {
        let visitor = &person.visitor;
        let service = visitor.web().service();
        let action = match kind {
            AccountForm::Email => EMAIL,
            AccountForm::Password => PASSWORD,
            AccountForm::Delete => DELETE,
        };
        Ok(Self {
            t: texts(visitor.lang()),
            shell: visitor.shell(Area::Elsewhere),
            kind,
            form: visitor.form(action),
            c: confirm_words(visitor.lang()),
            here: action,
            account: service.account(&person.channel_id).await?,
            password_hint: password_hint(visitor.lang(), service.account_settings().password_chars_min),
            errors: FieldErrors::default(),
        })
    }
}

/// `GET /account/email`.
pub(crate) async fn show_email(person: Person) -> PageAnswer {
    person.visitor.page(&AccountFormPage::new(&person, AccountForm::Email).await?)
}

/// `GET /account/password`.
pub(crate) async fn show_password(person: Person) -> PageAnswer {
    let page = AccountFormPage::new(&person, AccountForm::Password).await?;
    if !page.account.has_password {
        return Err(Refusal::NotFound(Resource::Path).into());
    }
    person.visitor.page(&page)
}

/// `GET /account/delete`.
pub(crate) async fn show_delete(person: Person) -> PageAnswer {
    person.visitor.page(&AccountFormPage::new(&person, AccountForm::Delete).await?)
}

/// `POST /account/email`.
pub(crate) async fn submit_email(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let (email, proof) = (fields.text("email"), confirmation(&person, &fields));
    let (service, lang) = (person.visitor.service(), person.visitor.lang());
    let new = (Some(email), fields.text("code"));
    let changed = guessed(&person, service.change_email(&person.channel_id, proof, new, lang.into())).await;
    if changed.is_ok() {
        service.send_email_proof(&person.channel_id, &proof_page(&person.visitor), lang.into()).await?;
    }
    answer(&person, AccountForm::Email, &fields, changed).await
}

/// `POST /account/password`.
pub(crate) async fn submit_password(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let visitor = &person.visitor;
    let passwords = (fields.text("password"), fields.text("newPassword"));
    let (service, lang) = (visitor.service(), visitor.lang());
    let changed =
        service.change_password(&person.channel_id, visitor.browser_token(), passwords, lang.into());
    let changed = guessed(&person, changed).await.map(|token| visitor.renew_browser(token));
    answer(&person, AccountForm::Password, &fields, changed).await
}

/// `POST /account/delete`.
pub(crate) async fn submit_delete(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let (login, proof) = (fields.text("login"), confirmation(&person, &fields));
    let service = person.visitor.service();
    let deleted = service.delete_account(&person.channel_id, login, fields.text("code"), proof);
    let deleted = guessed(&person, deleted).await;
    answer(&person, AccountForm::Delete, &fields, deleted).await
}

/// What confirms a change of the account.
pub(crate) fn confirmation<'a>(person: &'a Person, fields: &'a FormFields) -> Confirmation<'a> {
    Confirmation::new(fields.text("password"), person.visitor.browser_token())
}

/// Runs a change that checks the current password, within the limits on guessing.
pub(crate) async fn guessed<T>(
    person: &Person,
    change: impl Future<Output = Result<T, service::Error>>,
) -> Result<T, service::Error> {
    let visitor = &person.visitor;
    check_guess(visitor.web(), visitor.request(), &person.channel_id, change).await
}

async fn answer(
    person: &Person,
    kind: AccountForm,
    fields: &FormFields,
    done: Result<(), service::Error>,
) -> PageAnswer {
    let visitor = &person.visitor;
    match (done, kind) {
        (Ok(()), AccountForm::Email) => Ok(visitor.redirect(ACCOUNT, Some(Flash::EmailChanged))),
        (Ok(()), AccountForm::Password) => Ok(visitor.redirect(ACCOUNT, Some(Flash::PasswordChanged))),
        (Ok(()), AccountForm::Delete) => Ok(visitor.redirect("/", Some(Flash::AccountDeleted))),
        (Err(error), _) => {
            let errors = at_field(error, visitor.lang())?;
            let mut page = AccountFormPage { errors, ..AccountFormPage::new(person, kind).await? };
            if kind == AccountForm::Email {
                page.account.email = Some(fields.text("email").to_owned());
            }
            visitor.form_again(&page)
        }
    }
}

struct AccountTexts {
    title: &'static str,
    lead: &'static str,
    login: &'static str,
    channel_id: &'static str,
    channel_id_hint: &'static str,
    email: &'static str,
    no_email: &'static str,
    unproven: &'static str,
    prove: &'static str,
    change_email: &'static str,
    email_hint: &'static str,
    change_password: &'static str,
    password_lead: &'static str,
    password: &'static str,
    new_password: &'static str,
    two_factor: &'static str,
    two_factor_on: &'static str,
    two_factor_off: &'static str,
    two_factor_set: &'static str,
    two_factor_manage: &'static str,
    sign_in: &'static str,
    sign_in_about: &'static str,
    browsers: &'static str,
    browsers_about: &'static str,
    browsers_show: &'static str,
    apps: &'static str,
    apps_about: &'static str,
    save: &'static str,
    delete: &'static str,
    delete_lead: &'static str,
    delete_login: &'static str,
    delete_login_hint: &'static str,
    code: &'static str,
    code_hint: &'static str,
    back: &'static str,
}

fn texts(lang: Lang) -> &'static AccountTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: AccountTexts = AccountTexts {
    title: "내 계정",
    lead: "로그인과 보안 설정을 관리합니다.",
    login: "아이디",
    channel_id: "내 채널 ID",
    channel_id_hint: "스트리머가 매니저로 정하거나 앱 개발자가 물을 때 알려 주는 ID입니다. 비밀이 아닙니다.",
    email: "이메일",
    no_email: "등록하지 않음. 비밀번호를 잊으면 운영자만 재설정할 수 있습니다.",
    unproven: "확인되지 않은 주소입니다. 확인하기 전에는 보안 알림을 보내지 않습니다.",
    prove: "확인 링크 받기",
    change_email: "이메일 바꾸기",
    email_hint: "비밀번호 재설정 링크를 받을 주소입니다. 비워 두면 주소를 지웁니다.",
    change_password: "비밀번호 바꾸기",
    password_lead: "바꾸면 다른 브라우저에서 로그아웃됩니다. 연결한 앱은 그대로 남습니다.",
    password: "현재 비밀번호",
    new_password: "새 비밀번호",
    two_factor: "2단계 인증",
    two_factor_on: "켜짐",
    two_factor_off: "꺼짐",
    two_factor_set: "설정",
    two_factor_manage: "관리",
    sign_in: "비밀번호",
    sign_in_about: "로그인할 때와 중요한 설정을 바꿀 때 씁니다.",
    browsers: "로그인한 브라우저",
    browsers_about: "어디에 로그인되어 있는지 확인하고 로그아웃할 수 있습니다.",
    browsers_show: "목록 보기",
    apps: "연결된 앱",
    apps_about: "내 계정에 접근할 수 있는 앱을 확인하고 접근을 취소합니다.",
    save: "저장",
    delete: "계정 삭제",
    delete_lead: "채널과 채팅, 팔로우, 구독, 앱 연결, 내가 등록한 앱, 로그인 정보가 모두 삭제되며 되돌릴 수 없습니다. 다른 채널에 남긴 메시지와 후원, 드롭스 보상 기록은 이름 없이 남습니다.",
    delete_login: "확인을 위해 아이디를 입력해 주세요",
    delete_login_hint: "이 계정의 아이디:",
    code: "인증 코드",
    code_hint: "앱에 표시된 코드나 복구 코드",
    back: "취소",
};

const EN: AccountTexts = AccountTexts {
    title: "Your account",
    lead: "Your sign-in and security settings.",
    login: "Username",
    channel_id: "Your channel id",
    channel_id_hint: "Give it to a streamer who makes you a manager, or to the developer of an app who asks for it. It is no secret.",
    email: "E-mail address",
    no_email: "None. If you forget your password, only the operator can help.",
    unproven: "Not confirmed. Until then you get no security notices there.",
    prove: "Send a link",
    change_email: "Change email",
    email_hint: "A link to a new password goes there. Leave it empty to remove the address.",
    change_password: "Change password",
    password_lead: "This signs you out of other browsers. Connected apps stay connected.",
    password: "Current password",
    new_password: "New password",
    two_factor: "Two-factor authentication",
    two_factor_on: "On",
    two_factor_off: "Off",
    two_factor_set: "Set up",
    two_factor_manage: "Manage",
    sign_in: "Password",
    sign_in_about: "For signing in, and for changes that matter.",
    browsers: "Signed-in browsers",
    browsers_about: "See where you are signed in, and sign out there.",
    browsers_show: "Show the list",
    apps: "Connected apps",
    apps_about: "See which apps can access your account, and remove their access.",
    save: "Save",
    delete: "Delete the account",
    delete_lead: "Your channel, its chat, follows, subscriptions, connected apps, the apps that you own and your sign-in are deleted for good. Messages in other channels, donations and rewards stay without your name.",
    delete_login: "Enter your username to confirm",
    delete_login_hint: "The username of this account:",
    code: "Code",
    code_hint: "The code that the app shows, or a recovery code",
    back: "Cancel",
};
